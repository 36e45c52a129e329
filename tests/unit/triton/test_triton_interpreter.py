# SPDX-License-Identifier: Apache-2.0
"""Runs the numerical checks of the kernels in processes where Triton interprets instead of compiling.

Triton decides that when a kernel is defined, so the checks cannot share a process with the tests of the compiler.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKS = sorted((Path(__file__).parent / "interpreted").glob("check_*.py"))
NUM_PROCESSES = 2
"""Each takes more than a second to begin, and two share the cores."""


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="triton is not installed")
@pytest.mark.parametrize("number", range(NUM_PROCESSES))
def test_kernels_in_the_interpreter(number: int) -> None:
    checks = map(str, CHECKS[number::NUM_PROCESSES])
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-x", *checks]
    environment = {**os.environ, "TRITON_INTERPRET": "1", "ORT_DISABLE_TELEMETRY": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
