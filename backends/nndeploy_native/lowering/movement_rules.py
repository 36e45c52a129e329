# SPDX-License-Identifier: Apache-2.0
"""Rules for operators that only move elements: none copies anything before a kernel needs it.

Source: ONNX Concat, Flatten, Gather, GatherElements, GatherND, Reshape, Slice, Split, Squeeze, Transpose and the
like.
"""

import math
from typing import TypeVar

import numpy as np
import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import int_attribute, ints_attribute, operand, text_attribute
from nndeploy.values.size import Dim, fixed, is_fixed, product
from nndeploy_native.lowering import indexed_rules, strided_rules
from nndeploy_native.lowering.channels import whole_channels
from nndeploy_native.lowering.context import Context
from nndeploy_native.lowering.grown_outputs import appended
from nndeploy_native.steps.movement import MAX_PARTS, ChannelParts, JoinPlain
from nndeploy_native.tensors import Array, Layout, Tensor, fixed_shape

Channels = tuple[Tensor, tuple[int, ...]]
"""Some channels of an image in blocks."""
Part = TypeVar("Part")


def reshape(node: ir.Node, context: Context) -> None:
    """Lowers operators that keep the order of the elements: the model says the new shape."""
    blocks = context.reshaped_blocks(operand(node, 0), context.sizes_of(node.outputs[0]))
    if blocks is not None:
        context.define_blocked(node.outputs[0], blocks)
        return
    if not context.is_followed(node):
        strided_rules.reshape(node, context)
        return
    moved = context.moved(operand(node, 0))
    shape = context.sizes_of(node.outputs[0])
    if math.prod(shape) != moved.places.size:
        raise BuildRefusedError(f"{moved.places.size} elements in the shape {shape}")
    context.define_moved(node.outputs[0], moved.base, moved.places.reshape(shape))


def transpose(node: ir.Node, context: Context) -> None:
    """Lowers Transpose."""
    if not context.is_followed(node):
        strided_rules.transpose(node, context)
        return
    moved = context.moved(operand(node, 0))
    order = ints_attribute(node, "perm") or tuple(reversed(range(moved.places.ndim)))
    context.define_moved(node.outputs[0], moved.base, moved.places.transpose(order))


def slice_(node: ir.Node, context: Context) -> None:
    """Lowers Slice: the model says how many elements it takes."""
    cuts, sizes, taken = strided_rules.cuts_of(node, context), context.sizes_of(node.inputs[0]), node.outputs[0]
    if sizes == context.sizes_of(taken) and all(cut.step > 0 for cut in cuts):
        reshape(node, context)  # takes all
    elif not context.is_followed(node) or any(cut.start is None for cut in cuts):
        strided_rules.slice_(node, context, cuts)
    else:
        moved, shape = context.moved(node.inputs[0]), fixed_shape(context.sizes_of(taken))
        places = moved.places
        for axis, start, step in cuts:
            first = fixed(strided_rules.first_of(places.shape[axis], start, step))
            last = first + (shape[axis] - 1) * step
            if not (0 <= first < places.shape[axis] and 0 <= last < places.shape[axis]):
                raise BuildRefusedError(f"a Slice from {first} to {last} of {places.shape[axis]} elements")
            places = np.take(places, range(first, last + step, step), axis)
        context.define_moved(taken, moved.base, places)


def split(node: ir.Node, context: Context) -> None:
    """Lowers Split: the model says the sizes of the parts that it has."""
    if not context.is_followed(node):
        strided_rules.split(node, context)
        return
    moved = context.moved(operand(node, 0))
    axis, start = int_attribute(node, "axis", 0), 0
    for value, size in zip(node.outputs, strided_rules.split_sizes(node, context), strict=True):
        end = start + fixed(size)
        if value.name:
            context.define_moved(value, moved.base, np.take(moved.places, range(start, end), axis))
        start = end


def gather(node: ir.Node, context: Context) -> None:
    """Lowers Gather, GatherElements and GatherND; elements are followed where places and shapes are constants."""
    indices = context.constant(operand(node, 1))
    if indices is not None and context.is_followed(node):
        moved = context.moved(operand(node, 0))
        try:
            places = _picked(node, moved.places, indices)
        except IndexError as err:
            raise BuildRefusedError(f"an index that is no place: {err}") from err
        context.define_moved(node.outputs[0], moved.base, places)
    elif indices is None or node.op_type != "Gather" or not strided_rules.gather(node, context, indices):
        indexed_rules.pick(node, context)


def _picked(node: ir.Node, places: Array, indices: Array) -> Array:
    axis = int_attribute(node, "axis", 0)
    if node.op_type == "Gather":
        return np.take(places, indices, axis)
    if node.op_type == "GatherElements":
        return _of_elements(places, indices, axis)
    batch, depth = int_attribute(node, "batch_dims", 0), indices.shape[-1]
    rows = places.reshape(-1, *places.shape[batch:])
    tuples = indices.reshape(rows.shape[0], -1, depth)
    picked = np.stack([row[tuple(each.T)] for row, each in zip(rows, tuples, strict=True)])
    return picked.reshape(*indices.shape[:-1], *places.shape[batch + depth :])


def _of_elements(places: Array, indices: Array, axis: int) -> Array:
    near = places[
        tuple(slice(size) if i != axis % places.ndim else slice(None) for i, size in enumerate(indices.shape))
    ]
    return np.take_along_axis(near, indices, axis)


def expand(node: ir.Node, context: Context) -> None:
    """Lowers Expand: the model says the new shape."""
    if not context.is_followed(node):
        strided_rules.expand(node, context)
        return
    moved = context.moved(operand(node, 0))
    places = np.broadcast_to(moved.places, fixed_shape(context.sizes_of(node.outputs[0])))
    context.define_moved(node.outputs[0], moved.base, places)


def tile(node: ir.Node, context: Context) -> None:
    """Lowers Tile: the model says the new shape."""
    if not context.is_followed(node):
        strided_rules.tile(node, context)
        return
    moved, shape = context.moved(operand(node, 0)), fixed_shape(context.sizes_of(node.outputs[0]))
    times = [new // size for new, size in zip(shape, moved.places.shape, strict=True)]
    context.define_moved(node.outputs[0], moved.base, np.tile(moved.places, times))


def depth_to_space(node: ir.Node, context: Context) -> None:
    """Lowers DepthToSpace. Source: ONNX DepthToSpace, modes DCR and CRD."""
    if not context.is_followed(node):
        strided_rules.depth_to_space(node, context)
        return
    moved, size = context.moved(operand(node, 0)), int_attribute(node, "blocksize", 1)
    n, c, h, w = moved.places.shape
    out = c // (size * size)
    if text_attribute(node, "mode", "DCR") == "DCR":
        apart = moved.places.reshape(n, size, size, out, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        apart = moved.places.reshape(n, out, size, size, h, w).transpose(0, 1, 4, 2, 5, 3)
    context.define_moved(node.outputs[0], moved.base, apart.reshape(n, out, h * size, w * size))


def space_to_depth(node: ir.Node, context: Context) -> None:
    """Lowers SpaceToDepth. Source: ONNX SpaceToDepth, modes DCR and CRD."""
    if not context.is_followed(node):
        strided_rules.space_to_depth(node, context)
        return
    moved, size = context.moved(operand(node, 0)), int_attribute(node, "blocksize", 1)
    n, c, h, w = moved.places.shape
    order = strided_rules.space_order(node)
    apart = moved.places.reshape(n, c, h // size, size, w // size, size).transpose(order)
    context.define_moved(node.outputs[0], moved.base, apart.reshape(n, -1, h // size, w // size))


def concat(node: ir.Node, context: Context) -> None:
    """Lowers Concat: of channels of images in blocks, else of plain tensors."""
    shape = context.sizes_of(node.outputs[0])
    axis = int_attribute(node, "axis", 0) % len(shape)
    if appended(node, axis, context):
        return
    values = [value for value in node.inputs if value is not None]
    if axis == 1 and len(shape) == 4 and any(context.is_blocked(value) for value in values):
        _concat_channels(node, context, values)
        return
    if axis == 1 and any(context.in_channels_last(value) is not None for value in values) and len(values) <= MAX_PARTS:
        rows = [context.channels_last(value) for value in values]
        output = context.output_channels_last(node.outputs[0])
        context.emit(JoinPlain(output, tuple(rows), product(output.shape[:-1])))
        return
    xs = [context.plain(value) for value in values]
    emit_joined(context, context.output(node.outputs[0], Layout.PLAIN), xs, axis)


def emit_joined(context: Context, output: Tensor, xs: list[Tensor], axis: int) -> None:
    """Emits plain tensors one after the other along an axis."""
    while len(xs) > MAX_PARTS:
        xs = [_joined(group, axis, context) for group in _groups(xs)]
    context.emit(JoinPlain(output, tuple(xs), product(output.shape[:axis])))


def _groups(parts: list[Part]) -> list[list[Part]]:
    """Returns as few groups as there can be of at most `MAX_PARTS` parts each."""
    return [parts[begin : begin + MAX_PARTS] for begin in range(0, len(parts), MAX_PARTS)]


def _joined(xs: list[Tensor], axis: int, context: Context) -> Tensor:
    shape = xs[0].shape
    total: Dim = 0
    for x in xs:
        total = total + x.shape[axis]
    whole = context.temporary("joined", (*shape[:axis], total, *shape[axis + 1 :]), Layout.PLAIN, xs[0].element)
    context.emit(JoinPlain(whole, tuple(xs), product(shape[:axis])))
    return whole


def _concat_channels(node: ir.Node, context: Context, values: list[ir.Value]) -> None:
    """Reads channels where they lie: a part that was only shuffled or sliced is not copied first."""
    parts = [_channels_of(value, context) for value in values]
    while len(parts) > MAX_PARTS:
        parts = [_joined_channels(group, context) for group in _groups(parts)]
    context.emit(_channel_parts(context.output(node.outputs[0], Layout.BLOCKED), parts))


def _joined_channels(parts: list[Channels], context: Context) -> Channels:
    image, count = parts[0][0].shape, sum(len(of_x) for _, of_x in parts)
    whole = context.temporary("channels", (image[0], count, *image[2:]), Layout.BLOCKED)
    context.emit(_channel_parts(whole, parts))
    return whole, tuple(range(count))


def _channel_parts(output: Tensor, parts: list[Channels]) -> ChannelParts:
    xs = list(dict.fromkeys(x for x, _ in parts))
    return ChannelParts(output, tuple(xs), tuple((xs.index(x), channel) for x, of_x in parts for channel in of_x))


def _channels_of(value: ir.Value, context: Context) -> Channels:
    if context.is_blocked(value) and is_fixed(context.sizes_of(value)):
        moved = context.moved(value)
        channels = whole_channels(moved.places, moved.base.shape)
        if channels is not None:
            return context.in_layout(moved.base, Layout.BLOCKED), channels
    return context.blocked(value), tuple(range(context.sizes_of(value)[1]))
