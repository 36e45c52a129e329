# SPDX-License-Identifier: Apache-2.0
"""LayerNormalization and RMSNormalization as they were spelled before there were such operators.

    d / sqrt(mean(d^2) + e)                         =>  RMSNormalization(d)
    the same of d = x - mean(x)                     =>  LayerNormalization(x)
    either, * scale, or * scale + bias of the first =>  the operator with them

The square is Pow(d, 2) or d * d; what is divided by may be Sqrt or Pow(., 0.5), and the quotient a Div, or a product
with Reciprocal, 1 / . or Pow(., -0.5); factors and terms stand in either order; x - mean(x) may be there twice.

Conditions: float32; means along the last axes, of known sizes, which are kept as ones; nobody else reads what is in
between (x - mean(x) may be read: it is then made, and normalised by its root alone).

Source: ONNX LayerNormalization (17), RMSNormalization (23), whose function bodies these are.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from nndeploy.graph.edits import GraphEdits
from nndeploy.graph.operators import only_user, operand
from nndeploy.plugin.interface import MayTouch
from nndeploy_native.transforms.matching import axes_kept, is_read_within, maker_of, number_of, operands_either_way


class _Norm(NamedTuple):
    """`node` makes x normalised from `axis` on; `inner` are the nodes that led there, each behind who reads it."""

    node: ir.Node
    operator: str
    x: ir.Value
    axis: int
    epsilon: float
    inner: tuple[ir.Node, ...]


class FuseNormalisation:
    """Makes one operator of what normalises the last axes."""

    name = "fuse-normalisation"

    def __call__(self, model: ir.Model, may_touch: MayTouch) -> int:
        """Rewrites, in place, nodes that `may_touch` allows; returns how many normalisations it found."""
        edits, count = GraphEdits(model), 0
        for node in tuple(model.graph):
            if node.graph is not None and node.op_type in ("Div", "Mul") and may_touch(node):
                norm = next(_norms(node, edits), None)
                if norm is not None:
                    _become(norm, edits)
                    count += 1
        return count


def _norms(node: ir.Node, edits: GraphEdits) -> Iterator[_Norm]:
    """Passes what a node normalises, LayerNormalization first."""
    for apart, under, inner in _quotients(node, edits):
        means = maker_of(under, edits, "Add")
        for mean, number in operands_either_way(means) if means is not None else ():
            epsilon, reduction = number_of(number), maker_of(mean, edits, "ReduceMean")
            axis = None if reduction is None else _first_axis(reduction, edits)
            if epsilon is None or reduction is None or means is None or axis is None or apart is None:
                continue
            squares = _squares_of(operand(reduction, 0), apart, edits)
            if squares is None:
                continue
            led = (*inner, means, reduction, *squares)
            for operator, x, more in (*_difference(apart, axis, edits), ("RMSNormalization", apart, ())):
                unread = tuple(dict.fromkeys((*led, *more)))
                if _is_float_of_known_sizes(x, axis) and is_read_within(unread, node):
                    yield _Norm(node, operator, x, axis, epsilon, unread)


def _quotients(
    node: ir.Node, edits: GraphEdits
) -> Iterator[tuple[ir.Value | None, ir.Value | None, tuple[ir.Node, ...]]]:
    """Passes (d, v, nodes) where a node is d / sqrt(v)."""
    if node.op_type == "Div":
        yield from ((operand(node, 0), under, inner) for under, inner in _roots(operand(node, 1), 0.5, edits))
        return
    for apart, factor in operands_either_way(node):
        yield from ((apart, under, inner) for under, inner in _roots(factor, -0.5, edits))
        inverse = maker_of(factor, edits, "Reciprocal", "Div")
        if inverse is not None and (inverse.op_type == "Reciprocal" or number_of(operand(inverse, 0)) == 1.0):
            for under, inner in _roots(inverse.inputs[-1], 0.5, edits):
                yield apart, under, (inverse, *inner)


def _roots(
    value: ir.Value | None, exponent: float, edits: GraphEdits
) -> Iterator[tuple[ir.Value | None, tuple[ir.Node, ...]]]:
    """Passes (v, nodes) where a value is v to the power of `exponent`."""
    node = maker_of(value, edits, "Sqrt", "Pow")
    if node is not None and (exponent == 0.5 if node.op_type == "Sqrt" else number_of(operand(node, 1)) == exponent):
        yield operand(node, 0), (node,)


def _squares_of(value: ir.Value | None, apart: ir.Value, edits: GraphEdits) -> tuple[ir.Node, ...] | None:
    """Returns the nodes that square `apart`, or what is the same difference."""
    node = maker_of(value, edits, "Mul", "Pow")
    if node is None:
        return None
    first, second = operand(node, 0), operand(node, 1)
    if not (first is second if node.op_type == "Mul" else number_of(second) == 2.0):
        return None
    if first is apart:
        return (node,)
    one, other = maker_of(first, edits, "Sub"), maker_of(apart, edits, "Sub")
    return (node, one) if one is not None and other is not None and tuple(one.inputs) == tuple(other.inputs) else None


def _difference(apart: ir.Value, axis: int, edits: GraphEdits) -> tuple[tuple[str, ir.Value, tuple[ir.Node, ...]], ...]:
    """Returns (operator, x, nodes) where a value is x - mean(x)."""
    node = maker_of(apart, edits, "Sub")
    mean = maker_of(operand(node, 1), edits, "ReduceMean") if node is not None else None
    x = operand(node, 0) if node is not None else None
    if node is None or mean is None or x is None or operand(mean, 0) is not x or _first_axis(mean, edits) != axis:
        return ()
    return (("LayerNormalization", x, (node, mean)),)


def _first_axis(reduction: ir.Node, edits: GraphEdits) -> int | None:
    """Returns the first of the last axes, over all of which is reduced; None where it is over others."""
    axes, x = axes_kept(reduction, edits), operand(reduction, 0)
    if axes is None or x is None or x.shape is None or axes != tuple(range(axes[0], len(x.shape))):
        return None
    return axes[0]


def _is_float_of_known_sizes(x: ir.Value, axis: int) -> bool:
    is_float = x.dtype in (ir.DataType.FLOAT, ir.DataType.FLOAT16)
    return is_float and x.shape is not None and all(isinstance(dim, int) for dim in x.shape[axis:])


def _become(norm: _Norm, edits: GraphEdits) -> None:
    """Turns the last node into the operator, and removes the others."""
    root, inner = norm.node, norm.inner
    numbers: list[ir.Value] = []
    for operator in ("Mul", "Add") if norm.operator == "LayerNormalization" else ("Mul",):
        found = _taken(root, operator, norm, edits)
        if found is None:
            break
        inner = (root, *inner)
        root, number = found
        numbers.append(number)
    assert root.graph is not None, "the node is in its graph"
    assert norm.x.shape is not None, "its axes were looked at"
    if not numbers:
        sizes = [dim for dim in norm.x.shape[norm.axis :] if isinstance(dim, int)]
        numbers = [edits.constant(root.graph, np.ones(sizes, np.float32), f"{root.outputs[0].name}.scale")]
    attributes = (ir.AttrInt64("axis", norm.axis), ir.AttrFloat32("epsilon", norm.epsilon))
    edits.become(root, norm.operator, (norm.x, *numbers), attributes)
    for node in inner:
        edits.remove(node)


def _taken(root: ir.Node, operator: str, norm: _Norm, edits: GraphEdits) -> tuple[ir.Node, ir.Value] | None:
    """Returns the only reader of a node, which multiplies by, or adds, numbers of the sizes of the axes; and these."""
    made = root.outputs[0]
    reader = only_user(made)
    if reader is None or reader.op_type != operator or not edits.is_standard(reader) or reader.graph is not root.graph:
        return None
    assert norm.x.shape is not None, "its axes were looked at"
    wanted = list(norm.x.shape[norm.axis :])
    for value, number in operands_either_way(reader):
        if value is made and number is not None and number.shape is not None and list(number.shape) == wanted:
            return reader, number
    return None
