# SPDX-License-Identifier: Apache-2.0
"""A small depthwise-separable block, which our own CPU kernels fuse, for the tests of the commands."""

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

from nndeploy.plugin.registry import backend
from nndeploy.target.target import host_target

TEXT = """<ir_version: 8, opset_import: ["": 17]>
separable (float[1,32,24,24] x) => (float[1,48,24,24] y) {
  d = Conv<group = 32, pads = [1, 1, 1, 1]>(x, depthwise)
  r = Relu(d)
  y = Conv(r, pointwise)
}"""


def separable_model(path: Path) -> Path:
    """Writes the block and returns its path."""
    random = np.random.default_rng(0)
    model = onnx.parser.parse_model(TEXT)
    for name, shape in (("depthwise", (32, 1, 3, 3)), ("pointwise", (48, 32, 1, 1))):
        weights = random.standard_normal(shape).astype(np.float32) / 4
        model.graph.initializer.append(onnx.numpy_helper.from_array(weights, name))
    onnx.save(model, path)
    return path


def needs_native() -> None:
    """Skips where our own CPU kernels cannot be built and run."""
    probe = backend("native").probe(host_target())
    if not (probe.can_build and probe.can_run):
        pytest.skip(probe.reason)
