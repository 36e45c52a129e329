# SPDX-License-Identifier: Apache-2.0
"""Whether shape inference finds a contradiction where some sizes of inputs are fixed: a quick no, without a run."""

from collections.abc import Mapping

import onnx
import onnx.shape_inference

from nndeploy.frontend.internal_model import without_large_weights


def do_sizes_fit(model: onnx.ModelProto, sizes: Mapping[tuple[str, int], int]) -> bool:
    """Returns False where no node can work if inputs have these sizes, by (input, axis)."""
    light, _ = without_large_weights(model)
    for value in light.graph.input:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if (value.name, axis) in sizes:
                dim.dim_value = sizes[value.name, axis]
    for output in light.graph.output:
        output.ClearField("type")
    try:
        onnx.shape_inference.infer_shapes(light, strict_mode=True)
    except Exception:  # whatever the library's C++ throws
        return False
    return True
