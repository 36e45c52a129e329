# SPDX-License-Identifier: Apache-2.0
"""A bundle of this machine on a box of the other architecture: trusted, installed, run, updated, rolled back."""

import json
import platform
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from arm64_box import Arm64Box, arm64_box
from onnx import numpy_helper

import nndeploy
from nndeploy.bundle.reader import open_bundle
from nndeploy.cli.main import run_command
from nndeploy.comparison.compare import compare_values, tolerance_for
from nndeploy.registry.push import push
from nndeploy.target.known_targets import target_of

sys.path += [str(Path(__file__).parents[1] / "unit" / "registry"), str(Path(__file__).parents[1] / "packaging")]

from registry_server import BLOB, Asked, Handler, RegistryServer
from weighty_bundles import QUICK
from wheel_builds import ROOT, built

DIGITS = ROOT / "examples" / "digits"
RUN = ("run", "digits@", "--input", "lines.jsonl", "--output")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the other architecture is here aarch64"),
]


@pytest.fixture
def bare(tmp_path: Path) -> Arm64Box:
    """A box with nothing of ours on it."""
    pytest.importorskip("requests", reason="the extra `registry` is not installed")
    return arm64_box(tmp_path / "scratch")


@pytest.fixture
def farm(bare: Arm64Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder of who compiles: unsigned.nnd, one.nnd and two.nnd with other weights, farm.pub."""
    folder = tmp_path / "farm"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("DOCKER_CONFIG", str(folder))
    assert run_command(["key", "new", "farm"]) == 0
    model = onnx.load(DIGITS / "digits.onnx")
    compiled(model, "unsigned.nnd")
    compiled(model, "one.nnd")
    for tensor in model.graph.initializer:
        values = numpy_helper.to_array(tensor)
        if values.dtype == np.float32 and values.ndim > 1:
            tensor.CopyFrom(numpy_helper.from_array(values * np.float32(1.125), tensor.name))
    compiled(model, "two.nnd")
    for name, release in (("one.nnd", "1.0"), ("two.nnd", "2.0")):
        assert run_command(["sign", name, "--key", "farm.key", "--release", release]) == 0
    return folder


def compiled(model: onnx.ModelProto, name: str) -> None:
    options = nndeploy.CompileOptions(targets=(target_of("raspberry-pi-5"),), shapes={"image": (1, 1, 8, 8)})
    nndeploy.compile_model(model, name, options)


@pytest.fixture
def box(bare: Arm64Box, tmp_path: Path, farm: Path) -> Arm64Box:
    """A box with the wheel of this checkout, that has got two bundles and the key of the farm."""
    bare.install(built("wheel", ROOT, tmp_path / "dist", NNDEPLOY_KERNELS_ARCH="aarch64").parent)
    for path in (farm / "unsigned.nnd", farm / "one.nnd", farm / "farm.pub", DIGITS / "lines.jsonl"):
        (bare.folder / path.name).write_bytes(path.read_bytes())
    return bare


@pytest.fixture
def registry(farm: Path) -> Iterator[RegistryServer]:
    """A registry that has two.nnd as 2, and cuts the first answer with weights in its middle."""
    with RegistryServer() as server:
        push(farm / "two.nnd", server.reference("2"), options=QUICK)
        server.asked.clear()
        server.fault = cut_once(largest(server))
        yield server


def largest(server: RegistryServer) -> str:
    return max(server.blobs, key=lambda digest: len(server.blobs[digest]))


def cut_once(digest: str) -> "Callable[[Handler, Asked], bool]":
    waiting = [digest]

    def fault(handler: Handler, asked: Asked) -> bool:
        found = BLOB.fullmatch(asked.path)
        if asked.method != "GET" or found is None or found["name"] not in waiting:
            return False
        waiting.clear()
        data = handler.owner.blobs[digest]
        handler.answer(200, data[: len(data) // 2], Content_Length=str(len(data)))
        handler.cut()
        return True

    return fault


def test_a_box_of_the_other_architecture_lives_as_one_of_this(box, farm, registry) -> None:
    first = box.nndeploy(
        ("key", "trust", "farm.pub"), ("key", "need", "data=1"), ("install", "digits", "unsigned.nnd"),
        ("install", "digits", "one.nnd"), (*RUN, "one.jsonl"), (*RUN, "isolated.jsonl", "--isolate", "all"),
        ("verify", "digits@", "--signatures"),
    )  # fmt: skip
    assert [code for code, _ in first] == [0, 0, 77, 0, 0, 0, 0]
    agree(box.folder / "one.jsonl", farm / "one.nnd")
    assert outputs_in(box.folder / "isolated.jsonl") == outputs_in(box.folder / "one.jsonl")

    then = box.nndeploy(
        ("pull", registry.reference("2"), "-o", "two.nnd", "--have", "one.nnd"), ("install", "digits", "two.nnd"),
        (*RUN, "two.jsonl"), ("rollback", "digits"), (*RUN, "back.jsonl"), ("doctor", "--json"),
    )  # fmt: skip
    assert [code for code, _ in then] == [0] * 6
    assert (box.folder / "two.nnd").read_bytes() == (farm / "two.nnd").read_bytes()
    assert went_on(registry)
    agree(box.folder / "two.jsonl", farm / "two.nnd")
    with pytest.raises(AssertionError, match="probabilities"):  # so a rollback that did nothing would be seen
        agree(box.folder / "two.jsonl", farm / "one.nnd")
    assert outputs_in(box.folder / "back.jsonl") == outputs_in(box.folder / "one.jsonl")
    findings = {one["what"]: one for one in json.loads(then[-1][1])["findings"]}
    assert findings["machine"]["about"].startswith("aarch64, aarch64, ")
    assert (findings["backend native"]["state"], findings["backend native"]["about"]) == ("ok", "aarch64")
    assert findings["backend onnxruntime"]["state"] == "lacks"  # so that it was our own kernels that computed
    assert re.fullmatch(r"release 1\.0, [0-9a-f]{12}, native; rolled back: by hand", findings["digits@"]["about"])


def outputs_in(results: Path) -> list[dict[str, Any]]:
    return [json.loads(line)["outputs"] for line in results.read_text().splitlines()]


def agree(results: Path, bundle: Path) -> None:
    """Asserts that results of the box are what the bundle gives here, within its own tolerances."""
    inputs = [json.loads(line) for line in (DIGITS / "lines.jsonl").read_text().splitlines()]
    with open_bundle(bundle) as opened:
        tolerances = opened.manifest.tolerances
    with nndeploy.load_bundle(bundle) as program:
        assert len(outputs_in(results)) == len(inputs) > 0
        for record, outputs in zip(inputs, outputs_in(results), strict=True):
            here = program.run({"image": np.array(record["image"], np.float32)})
            for output in program.outputs:
                there = np.array(outputs[output.name], np.float32)
                found = compare_values(there, here[output.name], tolerance_for(output.type, tolerances))
                assert found.ok, f"{output.name} differ: {found}"


def went_on(server: RegistryServer) -> bool:
    """Whether the weights were asked for twice, the second time from where they were cut."""
    digest = largest(server)
    ranges = [one.headers.get("Range") for one in server.asked if one.method == "GET" and digest in one.path]
    return ranges == [None, f"bytes={len(server.blobs[digest]) // 2}-"]
