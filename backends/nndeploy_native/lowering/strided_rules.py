# SPDX-License-Identifier: Apache-2.0
"""Rules for operators that only move elements, where a shape is not fixed: views by strides of plain tensors.

Elements of a fixed shape are followed one by one instead (`movement_rules.py`), which joins more of such operators.
Source: as there.
"""

import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import int_attribute, ints_attribute, operand
from nndeploy.graph.size_rules import slice_ends
from nndeploy.values.size import product
from nndeploy_native.lowering.context import Context
from nndeploy_native.steps.movement import PaddedCopy, View
from nndeploy_native.tensors import Layout

Bounds = tuple[tuple[int, int, int, int], ...]
"""Axis, start, end and step of each axis that is sliced."""


def reshape(node: ir.Node, context: Context) -> None:
    """Gives the elements in the shape that the model says; copies them where they do not follow each other."""
    view, shape = context.view(operand(node, 0)), context.sizes_of(node.outputs[0])
    if product(view.sizes) != product(shape):
        raise BuildRefusedError(f"{product(view.sizes)} elements in the shape {shape}")
    found = view.reshaped(shape) or View.of(context.plain(operand(node, 0))).reshaped(shape)
    assert found is not None
    context.define_view(node.outputs[0], found)


def transpose(node: ir.Node, context: Context) -> None:
    """Gives the axes in another order."""
    view = context.view(operand(node, 0))
    order = ints_attribute(node, "perm") or tuple(reversed(range(len(view.sizes))))
    context.define_view(node.outputs[0], view.transposed(order))


def slice_(node: ir.Node, context: Context, bounds: Bounds) -> None:
    """Takes what the model says along each axis."""
    view, shape = context.view(operand(node, 0)), context.sizes_of(node.outputs[0])
    for axis, start, end, step in bounds:
        first, _ = slice_ends(view.sizes[axis], start, end, step)
        view = view.taken(axis, first, shape[axis], step)
    context.define_view(node.outputs[0], view)


def split(node: ir.Node, context: Context) -> None:
    """Takes one part after the other."""
    view, axis = context.view(operand(node, 0)), int_attribute(node, "axis", 0)
    axis %= len(view.sizes)
    start = view.offset * 0
    for value in node.outputs:
        if not value.name:
            raise BuildRefusedError("an output of Split is left out")
        size = context.sizes_of(value)[axis]
        context.define_view(value, view.taken(axis, start, size, 1))
        start = start + size


def expand(node: ir.Node, context: Context) -> None:
    """Gives the elements broadcast."""
    context.define_view(node.outputs[0], context.view(operand(node, 0)).expanded(context.sizes_of(node.outputs[0])))


def pad(node: ir.Node, context: Context, begins: tuple[int, ...]) -> None:
    """Copies the elements, with zeros around them."""
    view = context.view(operand(node, 0))
    context.emit(PaddedCopy(context.output(node.outputs[0], Layout.PLAIN), view, begins))
