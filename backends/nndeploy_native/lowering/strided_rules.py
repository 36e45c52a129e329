# SPDX-License-Identifier: Apache-2.0
"""Rules for operators that only move elements, where a shape is not fixed: views by strides of plain tensors.

Elements of a fixed shape are followed one by one instead (`movement_rules.py`), which joins more of such operators.
Source: as there.
"""

import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.constants import constant_ints
from nndeploy.graph.operators import int_attribute, ints_attribute, operand, text_attribute
from nndeploy.graph.size_rules import slice_ends
from nndeploy.values.size import Dim, ceil_div, may_be_equal, product
from nndeploy_native.lowering.context import Context
from nndeploy_native.steps.movement import StridedCopy, View
from nndeploy_native.tensors import Layout

Bounds = tuple[tuple[int, int, int, int], ...]
"""Axis, start, end and step of each axis that is sliced."""


def reshape(node: ir.Node, context: Context) -> None:
    """Gives the elements in the shape that the model says; copies them where they do not follow each other."""
    view, shape = context.view(operand(node, 0)), context.sizes_of(node.outputs[0])
    if not may_be_equal(product(view.sizes), product(shape)):
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
    view = context.view(operand(node, 0))
    axis, start = int_attribute(node, "axis", 0) % len(view.sizes), view.offset * 0
    for value, size in zip(node.outputs, split_sizes(node, context), strict=True):
        if value.name:
            context.define_view(value, view.taken(axis, start, size, 1))
        start = start + size


def split_sizes(node: ir.Node, context: Context) -> list[Dim]:
    """Returns the size of each part: what the model says, or what follows for one that is left out.

    Raises:
        BuildRefusedError: parts are left out whose sizes are data.
    """
    whole, count = context.sizes_of(operand(node, 0)), len(node.outputs)
    axis = int_attribute(node, "axis", 0) % len(whole)
    given = ints_attribute(node, "split") if context.opset < 13 else constant_ints(operand(node, 1))
    if given is None and operand(node, 1) is not None and not all(value.name for value in node.outputs):
        raise BuildRefusedError("a part of Split is left out whose size is data")
    each = ceil_div(whole[axis], count)
    sizes = given if given is not None else [*[each] * (count - 1), whole[axis] - each * (count - 1)]
    named = zip(node.outputs, sizes, strict=True)
    return [context.sizes_of(value)[axis] if value.name else size for value, size in named]


def expand(node: ir.Node, context: Context) -> None:
    """Gives the elements broadcast."""
    context.define_view(node.outputs[0], context.view(operand(node, 0)).expanded(context.sizes_of(node.outputs[0])))


def tile(node: ir.Node, context: Context) -> None:
    """Copies the elements over and over: along each axis once for each time."""
    view, shape = context.view(operand(node, 0)), context.sizes_of(node.outputs[0])
    given = constant_ints(operand(node, 1))
    times = given if given is not None else [new // size for new, size in zip(shape, view.sizes, strict=True)]
    sizes = tuple(size for pair in zip(times, view.sizes, strict=True) for size in pair)
    strides = tuple(stride for by in view.strides for stride in (0, by))
    _copy(node, context, View(view.base, view.offset, sizes, strides))


def depth_to_space(node: ir.Node, context: Context) -> None:
    """Copies blocks of channels to blocks of pixels."""
    view, size = context.view(operand(node, 0)), int_attribute(node, "blocksize", 1)
    channels = context.sizes_of(node.outputs[0])[1]
    if text_attribute(node, "mode", "DCR") == "DCR":
        apart = view.parted(1, size, size * channels).parted(2, size, channels).transposed((0, 3, 4, 1, 5, 2))
    else:
        apart = view.parted(1, channels, size * size).parted(2, size, size).transposed((0, 1, 4, 2, 5, 3))
    _copy(node, context, apart)


def space_to_depth(node: ir.Node, context: Context) -> None:
    """Copies blocks of pixels to blocks of channels."""
    view, size = context.view(operand(node, 0)), int_attribute(node, "blocksize", 1)
    height, width = context.sizes_of(node.outputs[0])[2:]
    _copy(node, context, view.parted(2, height, size).parted(4, width, size).transposed((0, 3, 5, 1, 2, 4)))


def _copy(node: ir.Node, context: Context, view: View) -> None:
    """Copies a view, whose axes are parts of those that the model says."""
    context.emit(StridedCopy(context.output(node.outputs[0], Layout.PLAIN), view))
