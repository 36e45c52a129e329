# SPDX-License-Identifier: Apache-2.0
"""A network with one operator that TensorRT refuses is cut around it, and the parser's own words are kept."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[1] / "bench" / "bench_targets.py"


@pytest.mark.slow
def test_tensorrt_then_another_then_tensorrt() -> None:
    if find_spec("tensorrt_rtx_bindings") is None or find_spec("triton") is None:
        pytest.skip("TensorRT-RTX or Triton is not installed")
    command = [sys.executable, str(BENCH), "--split", "--target", "rtx4090"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    chain = done.stdout.split("submodels of the chain rtx4090")[1].split("variants, best first")[0]
    rows = [line.split()[:2] for line in chain.splitlines() if line.startswith("rtx4090.s")]
    assert rows == [["rtx4090.s0", "tensorrt"], ["rtx4090.s1", "triton"], ["rtx4090.s2", "tensorrt"]]
    assert "tensorrt: Resize 'shrink': Antialiasing is not supported currently" in chain
