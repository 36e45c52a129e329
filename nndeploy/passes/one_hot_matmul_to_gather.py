# SPDX-License-Identifier: Apache-2.0
"""MatMul(Cast(x == [0, 1, ..., n - 1]), w) -> Gather([w; 0], Clip(x, -1, n)): a product with one-hot rows picks rows.

x ends with an axis of 1, and so each row of the product is row x of w, or zeros where w has none. Those stand behind
the last row of w, which is row n and row -1. The matrix of zeros and ones, as large as n times x, is not made.

Conditions: w is a constant matrix of finite floats (times 0 they are 0), x is int32 or int64; from opset 13 (axes of
Squeeze are an input).

Source: ONNX Gather, opset 11: negative indices count from the end; Clip, opset 12: whole numbers.
"""

import numpy as np
import onnx_ir as ir

from nndeploy.graph.constants import Array, constant_array
from nndeploy.graph.edits import GraphEdits
from nndeploy.graph.operators import FLOATS, operand, rank_of
from nndeploy.passes.model_pass import NodePass

_WHOLE = (ir.DataType.INT32, ir.DataType.INT64)


class OneHotMatmulToGather(NodePass):
    """Replaces products with one-hot rows by the rows that they pick."""

    name = "one-hot-matmul-to-gather"
    ops = frozenset({"MatMul"})

    def rewrite_node(self, node: ir.Node, edits: GraphEdits) -> bool:
        """Returns whether the product became a Gather."""
        weights = constant_array(operand(node, 1))
        if edits.opset < 13 or weights is None or weights.ndim != 2 or not _is_finite(weights, node):
            return False
        numbers = _compared(operand(node, 0), len(weights), edits)
        if numbers is None or node.graph is None or rank_of(numbers) is None:
            return False
        name, dtype = node.outputs[0].name, numbers.dtype
        assert dtype is not None
        zeros = np.zeros((1, weights.shape[1]), weights.dtype)
        table = np.concatenate([weights, zeros]) + zeros  # no -0.0: sums have none
        last, low, high = (
            edits.constant(node.graph, array, f"{name}.{what}")
            for what, array in (
                ("axis", np.array([-1])),
                ("below", np.array(-1, dtype.numpy())),
                ("behind", np.array(len(weights), dtype.numpy())),
            )
        )
        rows = edits.insert_before(node, "Squeeze", (numbers, last), f"{name}.numbers")
        found = edits.insert_before(node, "Clip", (rows, low, high), f"{name}.rows")
        for value in (rows, found):
            value.type, value.shape = numbers.type, ir.Shape(tuple(numbers.shape or ())[:-1])
        edits.become(node, "Gather", (edits.constant(node.graph, table, f"{name}.table"), found))
        return True


def _is_finite(weights: Array, node: ir.Node) -> bool:
    return node.outputs[0].dtype in FLOATS and bool(np.isfinite(weights).all())


def _compared(one_hot: ir.Value | None, count: int, edits: GraphEdits) -> ir.Value | None:
    """Returns the whole numbers (..., 1) that are compared with 0 to count - 1 to make a value; None otherwise."""
    cast = one_hot.producer() if one_hot is not None else None
    source = operand(cast, 0) if cast is not None and cast.op_type == "Cast" and edits.is_standard(cast) else None
    equal = source.producer() if source is not None else None
    if equal is None or equal.op_type != "Equal" or not edits.is_standard(equal):
        return None
    for numbers, other in (equal.inputs, equal.inputs[::-1]):
        known = constant_array(other)
        rank, shape = rank_of(numbers), tuple(numbers.shape or ()) if numbers is not None else ()
        if known is None or numbers is None or numbers.dtype not in _WHOLE or rank is None or shape[-1:] != (1,):
            continue
        if known.ndim <= rank and known.shape[-1:] == (known.size,) and known.tolist() == _line(known, count):
            return numbers
    return None


def _line(like: Array, count: int) -> object:
    """Returns 0 to count - 1 along the last axis of as many axes."""
    return np.arange(count).reshape((1,) * (like.ndim - 1) + (count,)).tolist()
