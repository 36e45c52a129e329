# SPDX-License-Identifier: Apache-2.0
"""Models as rivals of a race get them: their weights are constants, which a library may fold."""

from pathlib import Path

import onnx


def with_constant_weights(path: str | Path) -> onnx.ModelProto:
    """Returns the model of a file without those inputs that are weights: a library would take these for variable."""
    model = onnx.load(path)
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in weights]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    return model
