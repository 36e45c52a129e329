# SPDX-License-Identifier: Apache-2.0
"""Models that ask for more time or memory than anybody has end inside the limits, with one line, and leave nothing."""

import os
import subprocess
import sys
import time
from pathlib import Path

import onnx.parser
import pytest

EXPAND = """<ir_version: 9, opset_import: ["": 17]>
g (float[1] x) => (float[N] y) { s = Constant<value_ints = [17179869184]>() y = Expand(x, s) }"""

FOLDED = """<ir_version: 9, opset_import: ["": 17]>
g (float[1] x) => (float[N] y) {
  n = Constant<value_ints = [17179869184]>() p = Concat<axis = 0>(n, n) y = Pad(x, p) }"""

LOOP = """<ir_version: 9, opset_import: ["": 17]>
g (float[1] x) => (float[1] y) {
  n = Constant<value_int = 1099511627776>() t = Constant<value = bool {1}>()
  y = Loop<body = b (int64 i, bool c, float[1] v) => (bool d, float[1] w) { d = Identity(c) w = Add(v, v) }>(n, t, x)
}"""

GROWING = """<ir_version: 9, opset_import: ["": 17]>
g (float[1] x) => (float[N] y) {
  n = Constant<value_int = 64>() t = Constant<value = bool {1}>()
  y = Loop<body = b (int64 i, bool c, float[M] v) => (bool d, float[K] w) {
    d = Identity(c) w = Concat<axis = 0>(v, v) }>(n, t, x)
}"""


def compiled(tmp_path: Path, text: str, *options: str) -> "tuple[subprocess.CompletedProcess[str], float]":
    """Compiles a model with a folder of its own for temporary files, which must be empty in the end."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    (tmp_path / "m.onnx").write_bytes(onnx.parser.parse_model(text).SerializeToString())
    command = [sys.executable, "-m", "nndeploy", "compile", "m.onnx", "-o", "m.nnd", *options]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    assert list(temporary.iterdir()) == []
    assert "Traceback" not in done.stderr
    return done, time.monotonic() - began


@pytest.mark.parametrize(("text", "said"), [
    (EXPAND, "(Expand): makes 'y' of 64 GiB, FLOAT [17179869184]"),
    (FOLDED, "(Pad): makes 'y' of 128 GiB, FLOAT [34359738369]"),
], ids=["at once", "once constants are folded"])  # fmt: skip
def test_a_size_that_can_be_told_is_refused_before_anything_is_computed(tmp_path, text, said) -> None:
    done, _ = compiled(tmp_path, text, "--memory-limit", "8GiB")
    assert done.returncode == 65
    (line,) = [line for line in done.stderr.splitlines() if "error[" in line]
    assert f"{said}; the limit of the memory is 8 GiB" in line
    assert not (tmp_path / "m.nnd").exists()


def ended_at_a_limit(tmp_path: Path, text: str) -> tuple[int, str]:
    """Returns the exit code and the error of a compile with little time and memory, which leaves nothing behind."""
    done, seconds = compiled(tmp_path, text, "--total-time-limit", "3", "--memory-limit", "1GiB")
    assert seconds < 40
    assert not (tmp_path / "m.nnd").exists()
    (line,) = [line for line in done.stderr.splitlines() if "error[" in line]
    return done.returncode, line


def test_time_that_cannot_be_told_ends_at_the_limit(tmp_path) -> None:
    exit_code, line = ended_at_a_limit(tmp_path, LOOP)
    assert exit_code == 124
    assert "the compile was ended in stage" in line
    assert "it took more than" in line


@pytest.mark.slow
def test_memory_that_cannot_be_told_ends_at_the_limit(tmp_path) -> None:
    """A slow machine comes to the limit of the time, a fast one to that of the memory, where no engine goes on."""
    exit_code, line = ended_at_a_limit(tmp_path, GROWING)
    assert exit_code == 124 or (exit_code == 1 and "error[check-failed]" in line)
