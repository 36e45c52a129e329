# SPDX-License-Identifier: Apache-2.0
"""ONNX text -> model: an input whose name begins with "w" or that has a value becomes a constant.

`{t}` in the text is the element type; random constants are scaled so that what is computed stays near 1.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnx.parser

TEXT_TYPES = {"float32": "float", "float16": "float16"}


def model_of(body: str, dtype: str = "float32", constants: Mapping[str, Any] | None = None) -> onnx.ModelProto:
    """Returns the checked model of a graph's text."""
    text = f'<ir_version: 10, opset_import: ["": 21]> {body.replace("{t}", TEXT_TYPES[dtype])}'
    proto = onnx.parser.parse_model(text)
    random = np.random.default_rng(7)
    for value in list(proto.graph.input):
        known = constants or {}
        if value.name not in known and not value.name.startswith("w"):
            continue
        kind = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        data = known[value.name] if value.name in known else _weights(random, shape)
        proto.graph.input.remove(value)
        array = np.asarray(data).astype(kind).reshape(shape)
        proto.graph.initializer.append(onnx.numpy_helper.from_array(array, value.name))
    onnx.checker.check_model(proto)
    return proto


def _weights(random: np.random.Generator, shape: list[int]) -> Any:
    """Returns normal values; of matrices and kernels so small that a sum over all inputs stays near 1."""
    inputs_a_sum = int(np.prod(shape[1:])) if len(shape) > 1 else 1
    return random.standard_normal(shape) / max(1.0, inputs_a_sum) ** 0.5
