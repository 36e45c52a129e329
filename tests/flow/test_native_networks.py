# SPDX-License-Identifier: Apache-2.0
"""Whole light networks in our own CPU kernels: every node taken, one layout inside, the recorded numbers."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from nndeploy_native.plugin import Plugin

from nndeploy.frontend.load import load_model
from nndeploy.passes import optimise
from nndeploy.plugin.interface import Artifact, BuildOptions, OpenOptions
from nndeploy.target.target import host_target

MODELS = Path(__file__).resolve().parents[2] / "../shared/models"
WHOLE = {
    "ultraface_rfb320": ("input", 0, 1e-5), "fastestdet": ("input.1", 2, 1e-4), "ppocr_det_mobile_v2": ("x", 0, 1e-4),
}  # fmt: skip
"""Input, layout conversions, and the largest difference to ONNX Runtime's recorded float32 outputs."""

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", WHOLE)
def test_network_is_taken_whole_and_gives_the_recorded_numbers(name, tmp_path) -> None:
    if not (MODELS / f"{name}.onnx").exists():
        pytest.skip("the real models are not here")
    input_name, conversions, most = WHOLE[name]
    sample = np.load(MODELS / "samples" / f"{name}.npz")
    loaded = load_model(MODELS / f"{name}.onnx", shapes={input_name: sample["in0"].shape})
    optimise(loaded.model)
    artifact = _built(loaded.model, tmp_path)
    assert f" {conversions} layout conversions" in artifact.log
    found = _run(artifact, {loaded.inputs[0].name: sample["in0"]})
    for index, output in enumerate(loaded.outputs):
        assert np.abs(found[output.name] - sample[f"out{index}"]).max() < most


def _built(model: ir.Model, workdir: Path) -> Artifact:
    workdir.mkdir(exist_ok=True)
    probe = Plugin().probe(host_target())
    if not (probe.can_build and probe.can_run):
        pytest.skip(probe.reason)
    answers = Plugin().supports(model, host_target(), BuildOptions())
    assert [answer.reason for answer in answers if not answer.ok] == []
    return Plugin().build(model, host_target(), BuildOptions(), workdir)


def _run(artifact: Artifact, inputs: dict[str, Any]) -> dict[str, Any]:
    files = {name: memoryview(data) for name, data in artifact.files.items()}
    return Plugin().open(files, artifact.metadata, OpenOptions(threads=1)).run(inputs)
