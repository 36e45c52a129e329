# SPDX-License-Identifier: Apache-2.0
"""A bundle that is overwritten, cut or replaced while a program runs it: the bytes that were checked are used, always.

Each program is a process of its own, because what must not happen is its end by SIGBUS.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import pytest
from compile_with import compile_with
from onnx import helper, numpy_helper

SIZE = 256


@pytest.fixture(scope="module", params=["onnxruntime", "openvino"])
def bundle(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle whose weights lie in a member of their own."""
    if find_spec(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    folder = tmp_path_factory.mktemp("changes")
    weights = np.random.default_rng(0).standard_normal((SIZE, SIZE)).astype(np.float32)
    border = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, SIZE]) for name in ("x", "y")]
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "g", border[:1], border[1:], [numpy_helper.from_array(weights, "w")])
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), folder / "m.onnx")
    compile_with(folder / "m.onnx", folder / "m.nnd", backends=[request.param], keep_fallback=False)
    return folder / "m.nnd"


@pytest.fixture
def in_use(bundle: Path, tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    path = tmp_path / "m.nnd"
    path.write_bytes(bundle.read_bytes())
    return path


def overwrite(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(bytes(path.stat().st_size))


def cut(path: Path) -> None:
    os.truncate(path, 0)


def replace(path: Path) -> None:
    other = path.with_suffix(".other")
    other.write_bytes(bytes(64))
    other.replace(path)


def line() -> bytes:
    return json.dumps({"x": [[1.0] * SIZE]}).encode() + b"\n"


def outputs_of(process: "subprocess.Popen[bytes]") -> list[float]:
    return json.loads(process.stdout.readline())["outputs"]["y"]


@pytest.fixture
def running(in_use: Path) -> Iterator["subprocess.Popen[bytes]"]:
    command = [sys.executable, "-m", "nndeploy", "run", str(in_use), "--input", "-", "--output", "-"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        yield process
        process.kill()


def test_a_run_goes_on_with_what_was_checked(running, in_use) -> None:
    def answer() -> list[float]:
        running.stdin.write(line())
        running.stdin.flush()
        return outputs_of(running)

    want = answer()
    for change in (overwrite, cut, replace):
        change(in_use)
        assert [answer() for _ in range(3)] == [want] * 3
    running.stdin.close()
    assert running.wait(60) == 0


@pytest.mark.parametrize(("change", "code"), [(overwrite, 65), (cut, 74)])
def test_a_bundle_that_changes_before_it_is_loaded_is_refused(in_use, change, code) -> None:
    script = """
import sys
from pathlib import Path
from nndeploy.bundle.reader import open_bundle
from nndeploy.runtime import program
real = program.open_bundle
def opened(path):
    bundle = real(path)
    print(flush=True)
    sys.stdin.readline()
    return bundle
program.open_bundle = opened
from nndeploy.cli.main import run_command
sys.exit(run_command(["bench", sys.argv[1], "--iterations", "1"]))
"""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", script, str(in_use)]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        process.stdout.readline()
        change(in_use)
        _, errors = process.communicate(b"\n", timeout=60)
    assert process.returncode == code, errors
    assert errors.count(b"\n") == 1
