# SPDX-License-Identifier: Apache-2.0
"""The same model and options give the same bytes, in whatever folder and with whatever hash seed."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
DIGITS = TESTS.parent / "examples" / "digits" / "digits.onnx"
SCRIPT = """
import sys, nndeploy
from pathlib import Path
nndeploy.compile_model(sys.argv[1], sys.argv[2], nndeploy.CompileOptions(decisions=Path(sys.argv[3])))
"""


def compiled(model: Path, folder: Path, seed: str) -> str:
    folder.mkdir()
    shutil.copy(model, folder / "model.onnx")
    environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": "Asia/Tokyo" if seed == "1" else "UTC"}
    out = folder / "model.nnd"
    subprocess.run(
        [sys.executable, "-c", SCRIPT, "model.onnx", out, folder.parent / "decisions.json"], check=True, cwd=folder,
        env=environment, capture_output=True,
    )  # fmt: skip
    return hashlib.sha256(out.read_bytes()).hexdigest()


@pytest.mark.parametrize("model", [
    DIGITS, pytest.param(TESTS / "zoo" / "graphs" / "kept_boxes.onnx", marks=pytest.mark.slow)
], ids=["digits", "boxes"])  # fmt: skip
def test_a_model_compiles_to_the_same_bytes(model, tmp_path) -> None:
    first = compiled(model, tmp_path / "a", "1")
    assert compiled(model, tmp_path / "b", "2") == first
