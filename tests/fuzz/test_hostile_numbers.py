# SPDX-License-Identifier: Apache-2.0
"""No legal call of an operator ends the process, on any CPU backend; more: `make fuzz-hostile-numbers`."""

import subprocess
import sys
from pathlib import Path

import pytest

TRIALS = Path(__file__).with_name("fuzz_hostile_numbers.py")
STEP = 61
"""Trials of one in so many operators, of each backend in turn."""


@pytest.mark.slow
def test_no_legal_call_ends_the_process() -> None:
    command = [sys.executable, "-W", "ignore", str(TRIALS), "--count", "90", "--step", str(STEP)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{done.stdout[-2000:]} {done.stderr[-1000:]}"
    assert "'ran': " in done.stdout
