# SPDX-License-Identifier: Apache-2.0
"""The same model and options give the same bytes, in whatever folder and with whatever hash seed."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.onnx"
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
        [sys.executable, "-c", SCRIPT, "model.onnx", out, folder.parent / "decisions.json"],
        check=True,
        cwd=folder,
        env=environment,
        capture_output=True,
    )
    return hashlib.sha256(out.read_bytes()).hexdigest()


def assert_same_bytes(model: Path, tmp_path: Path) -> None:
    first = compiled(model, tmp_path / "a", "1")
    assert compiled(model, tmp_path / "b", "2") == first


def test_the_digit_reader_compiles_to_the_same_bytes(tmp_path: Path) -> None:
    assert_same_bytes(DIGITS, tmp_path)


@pytest.mark.parametrize("name", ["mobilenet_v2_quant", "random_forest_iris", "silero_vad_v5"])
def test_a_real_model_compiles_to_the_same_bytes(name: str, models_folder: Path, tmp_path: Path) -> None:
    assert_same_bytes(models_folder / f"{name}.onnx", tmp_path)
