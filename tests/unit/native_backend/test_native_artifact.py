# SPDX-License-Identifier: Apache-2.0
"""Artifacts: the same bytes each time, for every machine; refused where they are damaged or nothing runs them."""

import hashlib
import json
import re
import struct
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from native_models import HEADER, built, model_of, reals
from nndeploy_kernels.levels import LEVELS
from nndeploy_native import build as build_module
from nndeploy_native import kernel_library
from nndeploy_native import session as session_module
from nndeploy_native.plan import (
    DOCUMENT_FILE,
    PLAN_FILE,
    WEIGHTS_FILE,
    PlanBorder,
    PlanDocument,
    document_from_json,
    document_to_json,
)
from nndeploy_native.plan_writer import WeightBytes
from nndeploy_native.plugin import Plugin
from nndeploy_native.session import NativeSession, open_session

from nndeploy import CompileOptions, compile_model
from nndeploy.errors import BuildRefusedError, BundleError, UnavailableError
from nndeploy.files.file_content import MIN_MAPPED_BYTES
from nndeploy.jobs.workers import InProcessWorkers
from nndeploy.plugin.interface import Artifact, BuildOptions, Json, OpenOptions
from nndeploy.target.known_targets import known_targets
from nndeploy.target.target import Target, host_target, target_from_toml, with_window_buffer

TEXT = """g (float[1,4,5,5] x) => (float[1,6,5,5] y) {
    d = Conv<group=4, pads=[1,1,1,1]>(x, w) a = Relu(d) y = Conv(a, v) }"""
WEIGHTS = {"w": reals(4, 1, 3, 3), "v": reals(6, 4, 1, 1)}


def _artifact() -> Artifact:
    return built(model_of(TEXT, WEIGHTS))


def _open(artifact: Artifact, metadata: dict[str, Json] | None = None, **changed: bytes) -> NativeSession:
    if Plugin().probe(host_target()).reason:
        pytest.skip(Plugin().probe(host_target()).reason)
    files = {name: memoryview(data) for name, data in {**artifact.files, **changed}.items()}
    return open_session(files, {**artifact.metadata, **(metadata or {})}, OpenOptions())


@pytest.mark.parametrize(("arch", "reason"), [("riscv64", "no fp32 kernels for riscv64"), ("x86_64", "lacks")])
def test_target_without_the_instructions_is_refused_with_a_reason(arch: str, reason: str, tmp_path: Path) -> None:
    target, model = Target("old", arch), model_of(TEXT, WEIGHTS)
    assert reason in Plugin().probe(target).reason
    assert all(reason in answer.reason for answer in Plugin().supports(model, target, BuildOptions()))
    with pytest.raises(BuildRefusedError, match=reason):
        Plugin().build(model, target, BuildOptions(), tmp_path)


def test_one_artifact_serves_the_machines_of_all_levels(tmp_path: Path) -> None:
    raspberry, model = target_from_toml(known_targets()["raspberry-pi-5"]), model_of(TEXT, WEIGHTS)
    artifact = Plugin().build(model, raspberry, BuildOptions(), tmp_path)
    assert artifact.files == Plugin().build(model, host_target(), BuildOptions(), tmp_path).files
    assert not artifact.native_code
    machines = artifact.requires["machines"]
    assert isinstance(machines, list)
    assert [one["arch"] for one in machines] == ["aarch64", "x86_64"]
    assert all(set(level.cpu_features) >= set(machines[level.arch == "x86_64"]["cpu_features"]) for level in LEVELS)


def test_another_process_gives_the_same_bytes() -> None:
    script = "import sys; sys.path[:0] = sys.argv[1:3]; import test_native_artifact as t; print(t._told(t._artifact()))"
    here = Path(__file__).parent
    command = [sys.executable, "-c", script, str(here), str(here.parents[1])]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == _told(_artifact())


def _told(artifact: Artifact) -> str:
    return str(sorted((name, hashlib.sha256(data).hexdigest()) for name, data in artifact.files.items())) + repr(
        artifact.log
    )


@pytest.mark.parametrize("size", [1 << 10, MIN_MAPPED_BYTES - 128, MIN_MAPPED_BYTES, MIN_MAPPED_BYTES + 128, 3 << 20])
def test_weights_of_any_size_are_whole(size: int, tmp_path: Path) -> None:
    arrays = [(np.arange(size // 2) % 251).astype(np.uint8), np.ones(size // 2, np.uint8)]
    with tempfile.SpooledTemporaryFile(MIN_MAPPED_BYTES, dir=tmp_path) as file:
        weights = WeightBytes(file)
        offsets = [weights.offset(array) for array in (*arrays, *arrays)]
        content = weights.content()
    assert offsets == [0, size // 2] * 2
    assert bytes(content) == b"".join(array.tobytes() for array in arrays)


def test_what_the_library_refuses_is_refused_by_the_build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    artifact = replace(_artifact(), files={**_artifact().files, PLAN_FILE: b"no plan"})
    _open(_artifact()).close()
    monkeypatch.setattr(build_module, "build", lambda *_, **__: artifact)
    with pytest.raises(BuildRefusedError, match=r"plan\.bin: "):
        Plugin().build(model_of(TEXT, WEIGHTS), host_target(), BuildOptions(), tmp_path)


def test_a_machine_without_a_library_builds_and_says_why_it_does_not_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    poor = replace(host_target(), cpu_features=())
    monkeypatch.setattr(kernel_library, "host_target", lambda: poor)
    artifact = Plugin().build(model_of(TEXT, WEIGHTS), host_target(), BuildOptions(), tmp_path)
    files = {name: memoryview(data) for name, data in artifact.files.items()}
    with pytest.raises(UnavailableError, match="the target lacks"):
        open_session(files, artifact.metadata, OpenOptions())
    assert session_module.steps_here(files, artifact.metadata, {}) is None
    with pytest.raises(UnavailableError, match="run on the CPU"):
        open_session(files, artifact.metadata, OpenOptions(device="cuda:0"))


@pytest.mark.parametrize(("files", "why"), [
    ({WEIGHTS_FILE: b""}, r"plan\.bin: "), ({PLAN_FILE: b""}, r"plan\.bin: "),
    ({DOCUMENT_FILE: b'{"inputs": -1}'}, r"a malformed plan\.json"),
])  # fmt: skip
def test_damaged_artifacts_are_refused(files: dict[str, bytes], why: str) -> None:
    with pytest.raises(BundleError, match=why):
        _open(_artifact(), **files)


def test_a_plan_and_a_document_of_two_builds_are_refused() -> None:
    other = built(model_of("g (float[1,4,5,5] x) => (float[1,4,5,5] y) { a = Relu(x) y = Softmax(a) }"))
    with pytest.raises(BundleError, match="are of two builds"):
        _open(_artifact(), **{DOCUMENT_FILE: other.files[DOCUMENT_FILE]})


def test_what_a_newer_library_knows_is_not_available_here() -> None:
    plan = _artifact().files[PLAN_FILE]
    version = struct.unpack_from("<q", plan, 8)[0]
    newer = plan[:8] + struct.pack("<q", version + 1) + plan[16:]
    with pytest.raises(UnavailableError, match=f"the plan is of version {version + 1}, this one reads {version}"):
        _open(_artifact(), **{PLAN_FILE: newer})
    assert b"planar_separable" in plan
    with pytest.raises(UnavailableError, match="step 0 is planar_separablx, which this one does not know"):
        _open(_artifact(), **{PLAN_FILE: plan.replace(b"planar_separable", b"planar_separablx", 1)})
    with pytest.raises(UnavailableError, match="an artifact of format 4; this nndeploy reads 5 to 12"):
        _open(_artifact(), {"format": 4})


def test_an_artifact_without_a_file_is_refused() -> None:
    files = {name: memoryview(data) for name, data in _artifact().files.items() if name != WEIGHTS_FILE}
    with pytest.raises(BundleError, match=r"the artifact has no weights\.bin"):
        open_session(files, _artifact().metadata, OpenOptions())


def test_a_buffer_that_the_user_sets_makes_the_windows_that_it_allows(tmp_path: Path) -> None:
    windows = []
    for num_bytes in (1, 1 << 20):
        target = with_window_buffer(host_target(), num_bytes)
        artifact = Plugin().build(model_of(TEXT, WEIGHTS), target, BuildOptions(), tmp_path)
        _open(artifact).close()
        files = {name: memoryview(data) for name, data in artifact.files.items()}
        (step,) = session_module.steps_here(files, artifact.metadata, {}) or ()
        windows.append((step["window"], step["buffer_bytes"]))
    assert windows[0][0] == "1x1x4"
    assert windows[1][0] == "5x5x4"
    assert windows[0][1] == 1


@pytest.mark.parametrize(("member", "value"), [
    ("inputs", [["x", "int16", [1]]]), ("inputs", [["x", "fp32", [-1]]]), ("inputs", [["x", "fp32", [True]]]),
    ("inputs", [["x", "fp32", [2**41]]]), ("inputs", [["x", "fp32", [1]], ["x", "fp32", [1]]]),
    ("outputs", [["y", "fp32", [1] * 9]]), ("outputs", [["y", "fp32"]]), ("outputs", []), ("steps", 1),
])  # fmt: skip
def test_malformed_document_is_refused(member: str, value: object) -> None:
    borders = (PlanBorder("x", "fp32", (1,)),), (PlanBorder("y", "fp32", (1,)),)
    good = json.loads(document_to_json(PlanDocument(*borders, (), ())))
    with pytest.raises(BundleError, match=r"malformed plan\.json"):
        document_from_json(json.dumps({**good, member: value}).encode())


def test_a_mistake_of_ours_is_told_with_its_place_and_the_next_backend_takes_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(build_module, "solved_symbols", lambda _: ())
    model = onnx.parser.parse_model(
        HEADER + "g (float[1,4,5,5] x) => (float[1,4,1,1] y) { a = Relu(x) y = Conv(a, w) }"
    )
    model.graph.initializer.append(onnx.numpy_helper.from_array(reals(4, 4, 5, 5), "w"))
    report = compile_model(
        model, tmp_path / "m.nnd", CompileOptions(backends=("native", "onnxruntime"), objective="priority"),
        workers=InProcessWorkers(),
    )  # fmt: skip
    assert [one.backend for one in report.submodels] == ["onnxruntime"]
    (line,) = [line for line in report.dropped if line.startswith("native lost")]
    assert re.search(r"a bug of .*, line \d+: AttributeError: ", line)
