# SPDX-License-Identifier: Apache-2.0
"""Rules for Resize and Upsample along any axes. Source: ONNX Resize, opset 19; Upsample, opset 9."""

from dataclasses import replace

import numpy as np
import onnx_ir as ir

from nndeploy.backend_kit.kernels.resize_tables import (
    Mode,
    aspect_of,
    axis_crops,
    axis_scales,
    axis_sizes,
    mode_of,
    resize_tables,
)
from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import operand
from nndeploy.values.size import fixed, is_fixed, product
from nndeploy_native.lowering import movement_rules
from nndeploy_native.lowering.context import Context, image_shape
from nndeploy_native.lowering.integer_rules import BYTES
from nndeploy_native.steps.movement import Gather
from nndeploy_native.steps.resize import KEPT, Resize, ResizeAxis, ResizedAxis
from nndeploy_native.tensors import Layout, Shape, fixed_shape

WHOLE = (0.0, 1.0)


def resize(node: ir.Node, context: Context) -> None:
    """Lowers Resize and Upsample: images stay in blocks where batch and channels stay as they are."""
    if context.element_of(operand(node, 0)) in BYTES:
        _pick_bytes(node, context)
        return
    shape, out_shape = context.shape_of(operand(node, 0)), context.shape_of(node.outputs[0])
    if len(shape) != len(out_shape):
        raise BuildRefusedError("a Resize of another rank than its input")
    mode, rules = mode_of(node), _axes_of(node, shape)
    resized = [axis for axis in range(len(shape)) if shape[axis] != out_shape[axis] or not _keeps(rules[axis])]
    if not resized:
        movement_rules.reshape(node, context)
    elif 3 <= len(shape) <= 5 and min(resized) >= 2:
        _resize_image(node, context, mode, rules, resized)
    else:
        _resize_axes(node, context, mode, rules, resized)


def _pick_bytes(node: ir.Node, context: Context) -> None:
    """Picks the nearest elements of an image of bytes, whose channels come to lie side by side.

    Raises:
        BuildRefusedError: the Resize is another one, or its sizes are not fixed.
    """
    shape, out_shape = context.sizes_of(operand(node, 0)), context.sizes_of(node.outputs[0])
    is_image = len(shape) == len(out_shape) == 4 and shape[:2] == out_shape[:2]
    if not is_image or mode_of(node).kind != "nearest" or not is_fixed((*shape, *out_shape)):
        raise BuildRefusedError("a Resize of bytes that does not take the nearest ones of an image of fixed sizes")
    x, output = context.channels_last(node.inputs[0]), context.output_channels_last(node.outputs[0])
    places = np.arange(fixed(x.size)).reshape(fixed_shape(x.shape))
    tables = resize_tables(node, 4, fixed_shape(shape[2:]), fixed_shape(out_shape[2:]))
    for axis, (taken, _) in enumerate(tables, start=1):
        places = np.take(places, taken[:, 0], axis)
    context.emit(Gather(output, x, places))


def _axes_of(node: ir.Node, shape: Shape) -> list[ResizedAxis]:
    """Returns how each axis is resized.

    Raises:
        BuildRefusedError: that depends on numbers that are not constant.
    """
    rank, crops = len(shape), axis_crops(node, len(shape))
    scales, sizes, aspect = axis_scales(node, rank), axis_sizes(node, rank), aspect_of(node)
    if scales is None and aspect != "stretch":
        if sizes is None or not is_fixed(shape):
            raise BuildRefusedError("a Resize of sizes that are not fixed which keeps the aspect ratio")
        named = [size / fixed(shape[axis]) for axis, size in enumerate(sizes) if size >= 0]
        scale = min(named) if aspect == "not_larger" else max(named)
        scales = tuple(1.0 if size < 0 else scale for size in sizes)
    return [ResizedAxis(0.0 if scales is None else scales[axis], *crops[axis]) for axis in range(rank)]


def _keeps(axis: ResizedAxis) -> bool:
    return axis.scale in (0.0, 1.0) and (axis.begin, axis.end) == WHOLE


def _resize_image(node: ir.Node, context: Context, mode: Mode, rules: list[ResizedAxis], resized: list[int]) -> None:
    """Resizes images in blocks: the depth of (N, C, D, H, W) as rows of an image whose columns are H * W."""
    shape, out_shape = context.shape_of(node.inputs[0]), context.shape_of(node.outputs[0])
    x, depth = replace(context.blocked(node.inputs[0]), shape=image_shape(shape)), shape[2] if len(shape) == 5 else 1
    by_axis = [rules[axis] if axis in resized else KEPT for axis in range(2, len(shape))]
    if len(shape) == 5 and by_axis[0] != KEPT:
        batch, channels, _, *plane = shape
        is_last, depth = by_axis[1:] == [KEPT, KEPT], out_shape[2]
        deeper = replace(x, shape=(batch, channels, shape[2], product(plane)))
        made = (batch, channels, depth, product(plane))
        output = context.output(node.outputs[0], Layout.BLOCKED) if is_last else None
        output = context.temporary("resized", made, Layout.BLOCKED) if output is None else replace(output, shape=made)
        context.emit(Resize(output, deeper, mode, by_axis[0], KEPT))
        if is_last:
            return
        x = replace(output, shape=image_shape((batch, channels, depth, *plane)))
    rows, columns = (KEPT, *by_axis)[-2:]
    context.emit(Resize(context.output(node.outputs[0], Layout.BLOCKED), x, mode, rows, columns, depth))


def _resize_axes(node: ir.Node, context: Context, mode: Mode, rules: list[ResizedAxis], resized: list[int]) -> None:
    """Resizes a plain tensor axis by axis."""
    x, out_shape = context.plain(node.inputs[0]), context.shape_of(node.outputs[0])
    for axis in resized:
        shape = (*x.shape[:axis], out_shape[axis], *x.shape[axis + 1 :])
        is_last = axis == resized[-1]
        output = (
            context.output(node.outputs[0], Layout.PLAIN)
            if is_last
            else context.temporary("resized", shape, Layout.PLAIN)
        )
        context.emit(ResizeAxis(output, x, axis, mode, rules[axis]))
        x = output
