# SPDX-License-Identifier: Apache-2.0
"""A disk that is full, wherever and in whatever process it is met, ends a command with 74 and leaves nothing of it."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx.parser
import pytest

MODEL = """<ir_version: 8, opset_import: ["": 17]>
g (float[N,4] x) => (float[N,3] y) <float[4,3] w = {1,2,3,4,5,6,7,8,9,10,11,12}> { h = MatMul(x, w) y = Softmax(h) }"""
FLEET = '[[models]]\nfiles = ["m.onnx"]\noptions = { objective = "priority" }\n'
ON_A_SMALL_DISK = """mount -t tmpfs -o size="$0" none disk && "$@"; code=$?; find disk -mindepth 1 >left; exit $code"""
COMPILE = ("compile", "m.onnx", "--objective", "priority", "--no-cache", "-o")
IN_TEMPORARY, IN_OUTPUT = {"TMPDIR": "disk"}, dict[str, str]()


def can_mount() -> bool:
    try:
        tried = subprocess.run(
            ["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False
        )
    except OSError:
        return False
    return tried.returncode == 0


pytestmark = [
    pytest.mark.skipif(not can_mount(), reason="a process may have no mounts of its own here"),
    pytest.mark.slow,  # a compile for each size
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, its bundle as it is where there is room, inputs and a place for a small disk."""
    folder = tmp_path_factory.mktemp("full")
    onnx.save(onnx.parser.parse_model(MODEL), folder / "m.onnx")
    np.savez(folder / "x.npz", x=np.ones((4000, 4), np.float32))
    (folder / "fleet.toml").write_text(FLEET)
    (folder / "disk").mkdir()
    subprocess.run(
        [sys.executable, "-m", "nndeploy", *COMPILE, "want.nnd"], cwd=folder, check=True, capture_output=True
    )
    return folder


def ended(folder: Path, kib: int, command: tuple[str, ...], environment: dict[str, str]) -> tuple[int, list[str]]:
    """Returns the exit code of a command with a disk of so many KiB, and what is left on the disk."""
    named = {name: str(folder / value) for name, value in environment.items()}
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", ON_A_SMALL_DISK, f"{kib}k", sys.executable, "-m", "nndeploy", *command],
        cwd=folder, env={**os.environ, **named}, capture_output=True, check=False,
    )  # fmt: skip
    return done.returncode, (folder / "left").read_text().split()


@pytest.mark.parametrize("kib", [12, 28, 36, 38, 40, 44])
def test_a_compile_is_whole_or_has_no_room(folder, kib) -> None:
    (folder / "m.nnd").unlink(missing_ok=True)
    code, left = ended(folder, kib, (*COMPILE, "m.nnd"), IN_TEMPORARY)
    assert code in (0, 74)
    assert left == []
    assert list(folder.glob(".nndeploy-*")) == []
    assert (folder / "m.nnd").exists() == (code == 0)
    if code == 0:
        assert (folder / "m.nnd").read_bytes() == (folder / "want.nnd").read_bytes()


@pytest.mark.parametrize(("command", "environment", "left"), [
    ((*COMPILE, "disk/m.nnd"), IN_OUTPUT, []),
    (("run", "want.nnd", "--input", "x.npz", "--output", "disk/y.npz"), IN_OUTPUT, []),
    (("run", "want.nnd", "--input", "x.npz", "--output", "disk/out"), IN_OUTPUT, ["disk/out"]),
    (("install", "m", "want.nnd", "--store", "disk/store"), IN_OUTPUT, ["disk/store"]),
    (("batch", "fleet.toml", "--fresh"), {**IN_TEMPORARY, "NNDEPLOY_CACHE_DIR": ""}, []),
], ids=["compile", "run", "run to a folder", "install", "batch"])  # fmt: skip
def test_no_command_calls_it_something_else(folder, command, environment, left) -> None:
    assert ended(folder, 12, command, environment) == (74, left)
