# SPDX-License-Identifier: Apache-2.0
"""Gemm becomes a product and a sum, for a backend that has these alone.

    Gemm(a, b, c)  =>  Add(MatMul(a, b), c)      a and b transposed, the product and c scaled where Gemm says so

Constants are transposed and scaled here; a Transpose or Mul remains for what is known only when it runs.

Law: an output does not change but for rounding. Source: ONNX Gemm (13): y = alpha * a' * b' + beta * c.
"""

import numpy as np
import onnx_ir as ir

from nndeploy.graph.constants import constant_array, constant_floats, rounded
from nndeploy.graph.edits import GraphEdits
from nndeploy.graph.operators import FLOATS, float_attribute, int_attribute, operand
from nndeploy.plugin.interface import MayTouch

OLDEST_OPSET = 7
"""Before, c was only broadcast where an attribute said so."""


class SplitGemm:
    """Puts a product and a sum in the place of each Gemm."""

    name = "split-gemm"

    def __call__(self, model: ir.Model, may_touch: MayTouch) -> int:
        """Rewrites, in place, nodes of the main graph that `may_touch` allows; returns how many it replaced."""
        edits, count = GraphEdits(model), 0
        for node in tuple(model.graph):
            is_gemm = node.op_type == "Gemm" and edits.is_standard(node) and edits.opset >= OLDEST_OPSET
            if is_gemm and may_touch(node) and _can_be_split(node):
                _split(node, edits)
                count += 1
        return count


def _can_be_split(node: ir.Node) -> bool:
    scales = float_attribute(node, "alpha", 1.0) != 1.0 or float_attribute(node, "beta", 1.0) != 1.0
    return node.outputs[0].dtype in FLOATS or (node.outputs[0].dtype is not None and not scales)


def _split(node: ir.Node, edits: GraphEdits) -> None:
    a, b, c = (operand(node, index) for index in range(3))
    assert a is not None and b is not None, "Gemm has two operands"  # noqa: PT018 - one fact
    alpha, beta = float_attribute(node, "alpha", 1.0), float_attribute(node, "beta", 1.0)
    a = _transposed(a, node, edits) if int_attribute(node, "transA", 0) else a
    b = _transposed(b, node, edits) if int_attribute(node, "transB", 0) else b
    if constant_floats(b) is not None or c is None:
        b, alpha = _scaled(b, alpha, node, edits), 1.0
    if c is None:
        edits.become(node, "MatMul", (a, b))
        return
    product = edits.insert_before(node, "MatMul", (a, b), f"{node.outputs[0].name}/product")
    edits.become(node, "Add", (_scaled(product, alpha, node, edits), _scaled(c, beta, node, edits)))


def _transposed(value: ir.Value, node: ir.Node, edits: GraphEdits) -> ir.Value:
    array = constant_array(value)
    assert node.graph is not None, "the node stands in its graph"
    if array is not None:
        return edits.constant(node.graph, np.ascontiguousarray(array.T), f"{value.name}/transposed")
    turned = edits.insert_before(
        node, "Transpose", (value,), f"{value.name}/transposed", (ir.AttrInt64s("perm", (1, 0)),)
    )
    turned.shape = None if value.shape is None else ir.Shape(list(reversed(value.shape.dims)))
    return turned


def _scaled(value: ir.Value, factor: float, node: ir.Node, edits: GraphEdits) -> ir.Value:
    """Returns a value times a factor: a constant, or what a Mul before the node makes."""
    if factor == 1.0:
        return value
    exact, graph, name = constant_floats(value), node.graph, f"{value.name}/scaled"
    assert graph is not None, "the node stands in its graph"
    assert node.outputs[0].dtype is not None, "only floating-point numbers are scaled"
    dtype = node.outputs[0].dtype.numpy()
    constant = None if exact is None else rounded(exact * factor, dtype)
    if constant is not None:
        return edits.constant(graph, constant, name)
    scale = edits.constant(graph, np.asarray(factor).astype(dtype), f"{name}/factor")
    scaled = edits.insert_before(node, "Mul", (value, scale), name)
    scaled.shape = value.shape
    return scaled
