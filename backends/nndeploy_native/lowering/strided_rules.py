# SPDX-License-Identifier: Apache-2.0
"""Rules for operators that only move elements, where a shape is not fixed: views by strides of plain tensors.

Elements of a fixed shape are followed one by one instead (`movement_rules.py`), which joins more of such operators.
Source: as there.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.constants import constant_ints
from nndeploy.graph.movement_sizes import slice_ends
from nndeploy.graph.node_parameters import slice_bounds
from nndeploy.graph.operators import int_attribute, ints_attribute, operand, text_attribute
from nndeploy.values.size import Dim, ceil_div, fixed, may_be_equal, product
from nndeploy_native.lowering.context import Context
from nndeploy_native.steps.movement import Move, StridedCopy, View, ViewAt
from nndeploy_native.tensors import Array, Layout


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


class Cut(NamedTuple):
    """What a Slice takes along an axis: from `start` on, which may count from the end and is None where it is data."""

    axis: int
    start: int | None
    step: int


def cuts_of(node: ir.Node, context: Context) -> tuple[Cut, ...]:
    """Returns what a Slice takes of each of its axes.

    Raises:
        BuildRefusedError: the axes or the steps are data.
    """
    given, sizes = slice_bounds(node), context.sizes_of(node.inputs[0])
    count = len(given.starts) if given.starts is not None else fixed(context.sizes_of(operand(node, 1))[0])
    has_axes = operand(node, 3) is not None or "axes" in node.attributes
    axes = given.axes if has_axes else tuple(range(count))
    steps = given.steps if operand(node, 4) is not None else (1,) * count
    if axes is None or steps is None:
        raise BuildRefusedError("a Slice along axes or by steps that are data")
    starts = given.starts if given.starts is not None else (None,) * count
    return tuple(Cut(axis % len(sizes), start, step) for axis, start, step in zip(axes, starts, steps, strict=True))


def first_of(size: Dim, start: int | None, step: int) -> Dim:
    """Returns the first element that a Slice takes of an axis. Source: ONNX Slice: bounds are clamped."""
    return slice_ends(size, start or 0, 0, step)[0]


def slice_(node: ir.Node, context: Context, cuts: tuple[Cut, ...]) -> None:
    """Takes what the model says along each axis; where that begins at places that are data, copies it."""
    view, shape, moves = context.view(node.inputs[0]), context.sizes_of(node.outputs[0]), list[Move]()
    for number, (axis, start, step) in enumerate(cuts):
        size, stride, reach = view.sizes[axis], view.strides[axis], (shape[axis] - 1) * abs(step)
        if start is None:
            low, high = (0, size - 1 - reach) if step > 0 else (reach, size - 1)
            moves.append(Move(number, size, stride, low, high))
        view = view.taken(axis, 0 if start is None else first_of(size, start, step), shape[axis], step)
    if moves:
        numbers = context.whole_numbers(operand(node, 1))
        context.emit(ViewAt(context.output(node.outputs[0], Layout.PLAIN), view, numbers, tuple(moves)))
    else:
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


def gather(node: ir.Node, context: Context, indices: Array) -> bool:
    """Takes places of an axis that are at even steps; returns whether they are, of one axis or of none."""
    axis, steps = int_attribute(node, "axis", 0), np.diff(indices.reshape(-1))
    is_from_end = indices < 0
    if indices.ndim > 1 or not indices.size or np.any(steps != steps[:1]) or is_from_end.any() != is_from_end.all():
        return False
    view = context.view(node.inputs[0])
    axis %= len(view.sizes)
    first = view.sizes[axis] * int(is_from_end.any()) + int(indices.flat[0])
    taken = view.taken(axis, first, indices.size, int(steps[0]) if steps.size else 1)
    context.define_view(node.outputs[0], taken if indices.ndim else taken.without(axis))
    return True


def expand(node: ir.Node, context: Context) -> None:
    """Gives the elements broadcast."""
    context.define_view(node.outputs[0], context.view(operand(node, 0)).expanded(context.sizes_of(node.outputs[0])))


def tile(node: ir.Node, context: Context) -> None:
    """Copies the elements over and over: along each axis once for each time."""
    view, shape = context.view(operand(node, 0)), context.sizes_of(node.outputs[0])
    given: Sequence[Dim] | None = constant_ints(operand(node, 1))
    if given is None:
        given = [1 if new == size else new // size for new, size in zip(shape, view.sizes, strict=True)]
    sizes = tuple(size for pair in zip(given, view.sizes, strict=True) for size in pair)
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
    _copy(node, context, view.parted(2, height, size).parted(4, width, size).transposed(space_order(node)))


def space_order(node: ir.Node) -> tuple[int, ...]:
    """Returns the order in which SpaceToDepth puts (N, C, rows, row of a block, columns, column of a block)."""
    return (0, 3, 5, 1, 2, 4) if text_attribute(node, "mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)


def _copy(node: ir.Node, context: Context, view: View) -> None:
    """Copies a view, whose axes are parts of those that the model says."""
    context.emit(StridedCopy(context.output(node.outputs[0], Layout.PLAIN), view))
