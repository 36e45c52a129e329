# SPDX-License-Identifier: Apache-2.0
"""Real networks through cuDNN's plans: taken whole, and the numbers of the recorded sample.

The plans are the real ones for an H200; numpy computes what they say (see tests/unit/cudnn/cudnn_interpreter.py).
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from nndeploy_cudnn import session as session_module
from nndeploy_cudnn.library import HINT, installed_path
from nndeploy_cudnn.plugin import Plugin

from nndeploy.cuda.current_driver import injected_driver
from nndeploy.frontend.load import load_model
from nndeploy.passes import optimise
from nndeploy.plugin.interface import BuildOptions
from nndeploy.testing.host_driver import HostDriver

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit" / "cudnn"))
from cudnn_interpreter import InterpretedHandle
from cudnn_models import cudnn_target, run_artifact

MODELS = Path(__file__).resolve().parents[2] / "../shared/models"
WHOLE = {"ultraface_rfb320": 1e-4, "fastestdet": 1e-4, "unet_stress_field": 1e-4}
"""Networks of which cuDNN takes every node, and the largest difference to ONNX Runtime's recorded float32 outputs."""

pytestmark = pytest.mark.slow


@contextmanager
def pretended_gpu() -> Iterator[SimpleNamespace]:
    """A machine whose GPU is host memory and whose cuDNN is numpy."""
    found = SimpleNamespace(library=SimpleNamespace(version=0))
    with pytest.MonkeyPatch.context() as patch, injected_driver(HostDriver()):
        patch.setattr(session_module, "Handle", lambda _library: InterpretedHandle())
        patch.setattr(session_module, "cudnn_library", lambda: found.library)
        yield found


@pytest.mark.parametrize("name", WHOLE)
def test_network_is_taken_whole_and_gives_the_recorded_numbers(name) -> None:
    if not installed_path():
        pytest.skip(f"cuDNN is not installed ({HINT})")
    if not (MODELS / f"{name}.onnx").exists():
        pytest.skip("the real models are not here")
    target, sample = cudnn_target("h200"), np.load(MODELS / "samples" / f"{name}.npz")
    loaded = load_model(MODELS / f"{name}.onnx", shapes={_input_name(name): sample["in0"].shape})
    optimise(loaded.model)
    assert [s.reason for s in Plugin().supports(loaded.model, target, BuildOptions()) if not s.ok] == []
    artifact = Plugin().build(loaded.model, target, BuildOptions(), Path())
    with pretended_gpu() as gpu:
        found = run_artifact(artifact, {loaded.inputs[0].name: sample["in0"]}, gpu)
    for index, output in enumerate(loaded.outputs):
        expected = sample[f"out{index}"]
        np.testing.assert_allclose(found[output.name], expected, rtol=1e-3, atol=WHOLE[name] * np.abs(expected).max())


def _input_name(name: str) -> str:
    return load_model(MODELS / f"{name}.onnx").inputs[0].name
