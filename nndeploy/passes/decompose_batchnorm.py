# SPDX-License-Identifier: Apache-2.0
"""BatchNormalization(x) -> x * a + (bias - mean * a), or (x - mean) * a + bias; a = scale / sqrt(variance + epsilon).

What no filter could take becomes plain arithmetic, so that a backend without batch-norm still takes it. Two nodes are
enough where the subtraction may go last: the product x * a is then larger than the result by |mean| / deviation, and
its rounding error with it. Above `MAX_AMPLIFICATION`, and for types with short significands, the mean is subtracted
first, as the definition says; the difference then has no error worth speaking of.

Conditions: inference; the four parameters are constant and of the type of x; a, and bias - mean * a, are finite and
keep their precision in that type; the number of axes of x is known, at least 2; from opset 7 (before, Mul and Add
broadcast in another way).

Source: ONNX BatchNormalization (spatial, not training).
"""

import numpy as np
import onnx_ir as ir

from nndeploy.graph.batchnorm import Batchnorm, batchnorm_of
from nndeploy.graph.constants import Array, rounded
from nndeploy.graph.edits import GraphEdits
from nndeploy.graph.operators import operand, rank_of
from nndeploy.passes.model_pass import NodePass

MAX_AMPLIFICATION = 64.0
"""Bound of |mean| / deviation for x * a + c: float loses 6 of its 24 bits at worst, and ONNX Runtime's own
batch-norm kernel computes the same two steps."""

_LONG_SIGNIFICANDS = frozenset({ir.DataType.FLOAT, ir.DataType.DOUBLE})


class DecomposeBatchnorm(NodePass):
    """Writes a BatchNormalization as a multiplication and an addition."""

    name = "decompose-batchnorm"
    ops = frozenset({"BatchNormalization"})

    def rewrite_node(self, node: ir.Node, edits: GraphEdits) -> bool:
        """Returns whether the node became plain arithmetic."""
        norm = batchnorm_of(node, edits.opset) if edits.opset >= 7 else None
        source, rank = operand(node, 0), rank_of(operand(node, 0))
        if norm is None or source is None or rank is None or rank < 2 or not _is_of_one_type(node):
            return False
        if _may_shift_last(norm, source):
            steps = [("Mul", norm.factor), ("Add", norm.shift)]
        else:
            steps = [("Sub", norm.mean), ("Mul", norm.factor), ("Add", norm.bias)]
        return _chain(node, source, steps, (-1, *(1,) * (rank - 2)), edits)


def _is_of_one_type(node: ir.Node) -> bool:
    return len({value.dtype for value in node.inputs if value is not None}) == 1


def _may_shift_last(norm: Batchnorm, source: ir.Value) -> bool:
    amplification = float(np.max(np.abs(norm.mean) / norm.deviation, initial=0.0))
    return source.dtype in _LONG_SIGNIFICANDS and amplification <= MAX_AMPLIFICATION


def _chain(
    node: ir.Node, source: ir.Value, steps: list[tuple[str, Array]], shape: tuple[int, ...], edits: GraphEdits
) -> bool:
    assert source.dtype is not None, "the caller looked at it"
    assert node.graph is not None, "the node is in its graph"
    dtype = source.dtype.numpy()
    constants = [rounded(constant, dtype, axis=0 if op_type == "Mul" else None) for op_type, constant in steps]
    if any(constant is None for constant in constants):
        return False
    name, value = node.outputs[0].name, source
    *first, last = [
        (op_type, edits.constant(node.graph, constant.reshape(shape), f"{name}.{op_type.lower()}"))
        for (op_type, _), constant in zip(steps, constants, strict=True)
        if constant is not None
    ]
    for op_type, constant in first:
        value = edits.insert_before(node, op_type, (value, constant), f"{name}.{op_type.lower()}ed")
    edits.become(node, last[0], (value, last[1]))
    return True
