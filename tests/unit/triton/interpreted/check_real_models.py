# SPDX-License-Identifier: Apache-2.0
"""A real network, whole, through all kernels it needs: its outputs against those that ONNX Runtime gave.

One of several that were run; the others take minutes in the interpreter.
"""

from pathlib import Path

import numpy as np
import pytest
from gpu_on_numpy import Interpreter, run_on_gpu, session_on_gpu

from nndeploy.frontend.load import load_model
from nndeploy.passes import optimise
from nndeploy.values.types import DimRange

MODELS = Path(__file__).resolve().parents[4] / "../shared/models"


@pytest.mark.skipif(not MODELS.is_dir(), reason="the real models are not here")
def test_voice_activity_with_separable_convolutions_attention_and_layer_normalisation() -> None:
    sample = np.load(MODELS / "samples/silero_vad_v2_mini.npz")
    loaded = load_model(MODELS / "silero_vad_v2_mini.onnx")
    shapes = {value.name: list(sample[f"in{number}"].shape) for number, value in enumerate(loaded.inputs)}
    loaded = load_model(MODELS / "silero_vad_v2_mini.onnx", shapes=shapes)
    optimise(loaded.model)
    inputs = {value.name: sample[f"in{number}"] for number, value in enumerate(loaded.inputs)}
    (got,) = run_on_gpu(loaded.model, inputs).values()
    np.testing.assert_allclose(got, sample["out0"], rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(not MODELS.is_dir(), reason="the real models are not here")
def test_voice_activity_of_any_length_from_one_artifact() -> None:
    sample = np.load(MODELS / "samples/fsmn_vad_online.npz")
    ranges = {"feats_length": DimRange(1, 300, 100)}
    model = load_model(MODELS / "fsmn_vad_online.onnx").model
    optimise(model, ranges)
    inputs = {value.name: sample[f"in{number}"] for number, value in enumerate(model.graph.inputs)}
    with session_on_gpu(model, Interpreter(), ranges) as session:
        for length in (1, 133):  # the least, and past a tile of 128; what comes later does not change what came before
            speech, *_ = session.run({**inputs, "speech": inputs["speech"][:, :length]}).values()
            np.testing.assert_allclose(speech.numpy(), sample["out0"][:, :length], rtol=1e-5, atol=1e-5)
