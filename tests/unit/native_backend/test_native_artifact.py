# SPDX-License-Identifier: Apache-2.0
"""Artifacts: built for the target's instructions, the same bytes each time, and refused where they cannot run."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from native_models import HEADER, built, model_of, needs_zig, reals
from nndeploy_native import library, plan_build
from nndeploy_native import session as session_module
from nndeploy_native.isa import ISAS, isa_for
from nndeploy_native.plan import (
    CONSTANTS_FILE,
    LIBRARY_FILE,
    PLAN_FILE,
    Border,
    NativePlan,
    plan_from_json,
    plan_to_json,
)
from nndeploy_native.plan_check import seal_of
from nndeploy_native.plugin import Plugin
from nndeploy_native.session import open_session
from nndeploy_native.steps.step import Machine

from nndeploy import CompileOptions, compile_model
from nndeploy.errors import BuildRefusedError, BundleError, UnavailableError, UsageError
from nndeploy.jobs.workers import InProcessWorkers
from nndeploy.plugin.interface import Artifact, BuildOptions, OpenOptions
from nndeploy.target.known_targets import known_targets
from nndeploy.target.target import Target, host_target, target_from_toml

TEXT = """g (float[1,4,5,5] x) => (float[1,6,5,5] y) {
    d = Conv<group=4, pads=[1,1,1,1]>(x, w) a = Relu(d) y = Conv(a, v) }"""
WEIGHTS = {"w": reals(4, 1, 3, 3), "v": reals(6, 4, 1, 1)}


def _artifact(folder: Path, machine: Machine | None = None) -> Artifact:
    return built(model_of(TEXT, WEIGHTS), folder, machine)


def _open(artifact: Artifact, **changed: bytes) -> session_module.NativeSession:
    files = {name: memoryview(data) for name, data in {**artifact.files, **changed}.items()}
    return open_session(files, artifact.metadata, OpenOptions())


def _raspberry() -> Target:
    return target_from_toml(known_targets()["raspberry-pi-5"])


def test_widest_instruction_set_of_the_target() -> None:
    v4 = Target("t", "x86_64", ISAS[0].cpu_features)
    assert isa_for(v4) == ISAS[0]
    assert isa_for(replace(v4, cpu_features=ISAS[1].cpu_features)) == ISAS[1]
    assert isa_for(Target("t", "aarch64", ("asimd", "fp"))) == ISAS[2]
    assert isa_for(replace(v4, cpu_features=("sse2",))) is None


@pytest.mark.parametrize(("arch", "reason"), [("riscv64", "no fp32 kernels for riscv64"), ("x86_64", "lacks")])
def test_target_without_the_instructions_is_refused_with_a_reason(arch: str, reason: str, tmp_path: Path) -> None:
    target, model = Target("old", arch), model_of(TEXT, WEIGHTS)
    assert reason in Plugin().probe(target).reason
    assert all(reason in answer.reason for answer in Plugin().supports(model, target, BuildOptions()))
    with pytest.raises(BuildRefusedError, match=reason):
        Plugin().build(model, target, BuildOptions(), tmp_path)


def test_missing_compiler_is_one_line_with_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(library, "find_spec", lambda _name: None)
    with pytest.raises(BuildRefusedError, match=r"^ziglang is not installed: .*nndeploy-toolchain\[native\]$"):
        library.library_from_source("", ISAS[0], tmp_path)


@pytest.mark.parametrize("isa", ISAS, ids=lambda isa: isa.name)
def test_builds_for_every_instruction_set_here(isa, tmp_path: Path) -> None:
    artifact = _artifact(tmp_path, Machine(isa))
    machine_number = int.from_bytes(artifact.files[LIBRARY_FILE][18:20], "little")
    assert machine_number == {"x86_64": 62, "aarch64": 183}[isa.arch]  # e_machine of ELF
    assert artifact.requires == {"arch": isa.arch, "cpu_features": list(isa.cpu_features)}


def test_known_target_of_another_architecture_is_built_for(tmp_path: Path) -> None:
    needs_zig()
    artifact = Plugin().build(model_of(TEXT, WEIGHTS), _raspberry(), BuildOptions(), tmp_path)
    assert "aarch64" in [machine["arch"] for machine in artifact.requires["machines"]]


def test_two_processes_give_the_same_bytes(tmp_path: Path, forget_libraries: Callable[[], None]) -> None:
    needs_zig()
    script = (
        "import hashlib, sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]);"
        "import test_native_artifact as t; a = t._artifact(Path(sys.argv[2]));"
        "print(sorted((k, hashlib.sha256(v).hexdigest()) for k, v in a.files.items()), a.log)"
    )
    texts = []
    for name in ("a", "b"):
        forget_libraries()
        folder = tmp_path / name
        folder.mkdir()
        command = [sys.executable, "-c", script, str(Path(__file__).parent), str(folder)]
        texts.append(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert texts[0] == texts[1]


def test_machine_that_lacks_an_instruction_never_opens_the_library(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    artifact = _artifact(tmp_path)
    poor = replace(host_target(), cpu_features=("sse2",))
    monkeypatch.setattr(session_module, "host_target", lambda: poor)
    monkeypatch.setattr(session_module, "library_from_bytes", lambda _data: pytest.fail("opened"))
    with pytest.raises(UnavailableError, match="needs CPU features this machine lacks"):
        _open(artifact)


def test_damaged_artifacts_are_refused(tmp_path: Path) -> None:
    artifact = _artifact(tmp_path)
    with pytest.raises(BundleError, match="plan says"):
        _open(artifact, **{CONSTANTS_FILE: b""})
    with pytest.raises(BundleError, match=r"malformed plan\.json"):
        _open(artifact, **{PLAN_FILE: b'{"arena_bytes": -1}'})
    with pytest.raises(BundleError, match="made with another"):
        _open(artifact, **{LIBRARY_FILE: b"no library"})
    seal = seal_of(artifact.files[PLAN_FILE], artifact.files[CONSTANTS_FILE])
    with pytest.raises(UnavailableError, match="cannot be loaded"):
        _open(artifact, **{LIBRARY_FILE: seal.encode()})
    with pytest.raises(BundleError, match="format"):
        open_session({}, {"format": 7}, OpenOptions())


def test_closed_session_is_an_error(tmp_path: Path) -> None:
    session = _open(_artifact(tmp_path))
    session.close()
    with pytest.raises(UsageError):
        session.run({"x": np.zeros((1, 4, 5, 5), np.float32)})


def test_libraries_of_two_artifacts_are_not_mixed_up(tmp_path: Path) -> None:
    """The loader knows a library by its path; a file in memory may get the path of an earlier one."""
    x = np.ones((1, 4, 5, 5), np.float32)
    results = []
    for operator in ("Relu", "Neg"):
        folder = tmp_path / operator
        folder.mkdir()
        model = model_of(f"g (float[1,4,5,5] x) => (float[1,4,5,5] y) {{ y = {operator}(x) }}")
        results.append(_open(built(model, folder)).run({"x": x})["y"])
    assert (results[0] == 1).all()
    assert (results[1] == -1).all()


def test_plan_survives_the_round_trip() -> None:
    borders = (Border("x", (1, 2)), Border("z", (1, 1, 2, 2, 16), "blocked bf16"))
    plan = NativePlan("x86-64-v3", 64, 4096, 128, borders, (Border("y", ()),), ({"kernel": "pointwise", "n": 1},))
    assert plan_from_json(plan_to_json(plan)) == plan


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("scratch_bytes", -1),
        ("arena_bytes", 2**41),
        ("constants_bytes", True),
        ("inputs", [["x", [1], "int8"]]),
        ("inputs", [["x", [-1], "fp32"]]),
        ("outputs", [["y", [1] * 65, "fp32"]]),
        ("outputs", [["y", [1]]]),
        ("steps", 1),
    ],
)
def test_malformed_plan_is_refused(member: str, value: object) -> None:
    good = json.loads(plan_to_json(NativePlan("x86-64-v3", 64, 0, 0, (Border("x", (1,)),), (Border("y", (1,)),))))
    with pytest.raises(BundleError, match=r"malformed plan\.json"):
        plan_from_json(json.dumps({**good, member: value}).encode())


def test_a_mistake_of_ours_is_told_with_its_place_and_the_next_backend_takes_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    needs_zig()
    monkeypatch.setattr(plan_build, "solved_symbols", lambda _: {"not a symbol": {}["nothing"]})
    model = onnx.parser.parse_model(
        HEADER + "g (float[1,4,5,5] x) => (float[1,4,1,1] y) { a = Relu(x) y = Conv(a, w) }"
    )
    model.graph.initializer.append(onnx.numpy_helper.from_array(reals(4, 4, 5, 5), "w"))
    report = compile_model(
        model,
        tmp_path / "m.nnd",
        CompileOptions(backends=("native", "onnxruntime"), objective="priority"),
        workers=InProcessWorkers(),
    )
    assert [one.backend for one in report.submodels] == ["onnxruntime"]
    (line,) = [line for line in report.dropped if line.startswith("native lost")]
    assert re.search(r"a bug of .*, line \d+: KeyError: ", line)
