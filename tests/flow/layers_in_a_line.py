# SPDX-License-Identifier: Apache-2.0
"""A network that is a line of layers, one of which is narrow: where a chain over several places is to be cut."""

from itertools import pairwise
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SIZES = (64, 256, 256, 32, 256, 256, 8)
"""Of the layers, with weights of 648 KiB: least crosses after the third, 4 KiB; before it are weights of 352 KiB."""
ROWS = 32


def network() -> onnx.ModelProto:
    """Layers in a line, `v0` to `v6`."""
    random = np.random.default_rng(0)
    nodes, weights = [], []
    for i, (rows, columns) in enumerate(pairwise(SIZES)):
        weight = (random.standard_normal((rows, columns)) / rows**0.5).astype(np.float32)
        weights.append(numpy_helper.from_array(weight, f"w{i}"))
        nodes.append(helper.make_node("MatMul", [f"v{i}", f"w{i}"], [f"m{i}"], name=f"matmul{i}"))
        nodes.append(helper.make_node("Tanh", [f"m{i}"], [f"v{i + 1}"], name=f"tanh{i}"))
    ends = [[helper.make_tensor_value_info(f"v{i}", TensorProto.FLOAT, [ROWS, SIZES[i]])] for i in (0, len(SIZES) - 1)]
    graph = helper.make_graph(nodes, "network", *ends, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


INPUT = {"v0": np.linspace(-2, 2, ROWS * SIZES[0], dtype=np.float32).reshape(ROWS, SIZES[0])}


def assert_right(outputs: dict[str, Any]) -> None:
    value = INPUT["v0"].astype(np.float64)
    for weight in network().graph.initializer:
        value = np.tanh(value @ numpy_helper.to_array(weight))
    np.testing.assert_allclose(outputs[f"v{len(SIZES) - 1}"], value, rtol=1e-3, atol=1e-4)
