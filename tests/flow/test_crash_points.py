# SPDX-License-Identifier: Apache-2.0
"""Calls that touch files are killed and failed one by one: a share of `make bench-crash-points`."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[1] / "bench" / "bench_crash_points.py"
pytestmark = pytest.mark.skipif(
    find_spec("ziglang") is None, reason="ziglang, which builds what injects faults, is not here"
)


CASES = (
    "a bundle written over=61", "install, a third=97", "key revoke=7", "uninstall=5", "wheelhouse=83", "JSON lines=797",
)  # fmt: skip


def test_whatever_call_fails_there_is_the_old_or_the_new() -> None:
    command = [sys.executable, str(BENCH), *(f"--only={case}" for case in CASES), "--jobs", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall(r"^\| (?!what is done|-)", done.stdout, re.M)) == len(CASES) + 1  # and all of them together
