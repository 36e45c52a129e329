# SPDX-License-Identifier: Apache-2.0
"""What transforms ask of a graph: which operator makes a value, which number it is, who else reads it."""

from collections.abc import Iterator, Sequence

import onnx_ir as ir

from nndeploy.graph.constants import constant_floats, constant_ints
from nndeploy.graph.edits import GraphEdits
from nndeploy.graph.operators import has_one_output, int_attribute, ints_attribute, operand, rank_of


def maker_of(value: ir.Value | None, edits: GraphEdits, *operators: str) -> ir.Node | None:
    """Returns the node that makes a value where it is one of `operators`, with one output."""
    node = value.producer() if value is not None else None
    if node is None or node.op_type not in operators or not edits.is_standard(node) or not has_one_output(node):
        return None
    return node


def number_of(value: ir.Value | None) -> float | None:
    """Returns the constant number that a value is; None where it is none, or several."""
    array = constant_floats(value)
    return float(array.reshape(())) if array is not None and array.size == 1 else None


def operands_either_way(node: ir.Node) -> Iterator[tuple[ir.Value | None, ir.Value | None]]:
    """Passes the two operands of a node in both orders."""
    yield operand(node, 0), operand(node, 1)
    yield operand(node, 1), operand(node, 0)


def axes_kept(node: ir.Node, edits: GraphEdits) -> tuple[int, ...] | None:
    """Returns the axes of a reduction that keeps them as axes of one; None where it does not, or they are not known.

    Source: ONNX ReduceMean (18: axes as an input, before as an attribute).
    """
    axes = ints_attribute(node, "axes") if edits.opset < 18 else constant_ints(operand(node, 1))
    rank = rank_of(operand(node, 0))
    if not axes or rank is None or not int_attribute(node, "keepdims", 1):
        return None
    return tuple(sorted(axis % rank for axis in axes))


def is_read_within(inner: Sequence[ir.Node], root: ir.Node) -> bool:
    """Whether nobody but `root` and the nodes themselves reads what `inner` make."""
    nodes = {root, *inner}
    return all(
        not output.is_graph_output() and all(use.node in nodes for use in output.uses())
        for node in inner
        for output in node.outputs
    )
