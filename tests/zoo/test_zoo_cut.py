# SPDX-License-Identifier: Apache-2.0
"""Small forms of the graphs that people export: a default compile of each gives the numbers of ONNX Runtime.

`tests/zoo/export.py --small` writes the files again; `make bench-zoo` does the same with graphs of usual size, and
measures.
"""

from pathlib import Path

import numpy as np
import pytest
from zoo_agreement import compared_with_model

import nndeploy

GRAPHS = Path(__file__).with_name("graphs")
LONG = (
    "clip", "llama", "llama_int4", "llama_int4_qdq", "mobilenet_v2_qdq_channel", "resnet18_qdq_tensor",
    "resnet18_qoperator", "t5_decoder_merged", "wav2vec2",
)  # fmt: skip
"""Those whose compile takes longest."""
NAMES = [
    pytest.param(name, marks=pytest.mark.slow if name in LONG else ())
    for name in sorted(path.stem for path in GRAPHS.glob("*.onnx"))
]


@pytest.mark.parametrize("name", NAMES)
def test_a_default_bundle_gives_the_models_numbers(name: str, tmp_path: Path) -> None:
    nndeploy.compile_model(GRAPHS / f"{name}.onnx", tmp_path / "model.nnd")
    with np.load(GRAPHS / "inputs" / f"{name}.npz") as arrays:
        feed = {key: arrays[key] for key in arrays.files}
    checks = compared_with_model(GRAPHS / f"{name}.onnx", tmp_path / "model.nnd", feed)
    assert checks
    assert [check for check in checks if not check.ok] == []


def test_the_cut_is_wide_and_small() -> None:
    assert len(NAMES) >= 35
    assert sum(path.stat().st_size for path in GRAPHS.rglob("*") if path.is_file()) < 1_500_000
