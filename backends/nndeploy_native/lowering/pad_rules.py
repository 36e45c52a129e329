# SPDX-License-Identifier: Apache-2.0
"""The rules for Pad and CenterCropPad: images in channel blocks stay in them, all else is a view with more around it.

Source: ONNX Pad: widths that are negative take elements away, before anything is put around the rest.
"""

from typing import Literal, cast

import numpy as np
import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.node_parameters import pad_axes, pad_widths
from nndeploy.graph.operators import float_attribute, operand, text_attribute
from nndeploy.values.size import Dim, fixed, is_fixed
from nndeploy_native.lowering.context import Context
from nndeploy_native.steps.movement import PAD_MODES, ZERO, PaddedAt, PaddedCopy, PaddedImage
from nndeploy_native.tensors import Array, Layout, Tensor

Widths = tuple[tuple[int, ...], tuple[int, ...]]


def pad(node: ir.Node, context: Context) -> None:
    """Lowers Pad in all modes: the model says the new shape."""
    widths, mode = pad_widths(node, context.opset), text_attribute(node, "mode", "constant")
    if mode not in PAD_MODES:
        raise BuildRefusedError(f"a Pad of mode {mode!r}")
    if widths is None:
        _pad_by_numbers(node, context, mode)
        return
    value, x = _value(node, context), node.inputs[0]
    assert x is not None
    if (
        context.is_blocked(x)
        and not context.is_moved(x)
        and len(widths[0]) == 4
        and not any(one[axis] for one in widths for axis in (0, 1))
    ):
        _pad_image(node, context, widths, mode, value)
    elif context.is_blocked(x) and context.is_followed(node) and (mode != "constant" or value is None):
        _pad_places(node, context, widths, mode)
    else:
        _pad_view(node, context, widths, mode, value)


def _value(node: ir.Node, context: Context) -> Array | Tensor | None:
    """Returns what a Pad puts around elements; None is 0."""
    if context.opset < 11:
        array: Array | None = np.array([float_attribute(node, "value", 0.0)], np.float32)
    elif operand(node, 2) is None:
        return None
    else:
        array = context.constant(operand(node, 2))
    if array is None:
        return context.plain(operand(node, 2))
    return array if array.reshape(-1)[0] != 0 else None


def _pad_image(node: ir.Node, context: Context, widths: Widths, mode: str, value: Array | Tensor | None) -> None:
    x = context.blocked(node.inputs[0])
    rows, columns = (_kept(x.shape[axis], widths[0][axis], widths[1][axis]) for axis in (2, 3))
    output = context.output(node.outputs[0], Layout.BLOCKED)
    context.emit(PaddedImage(output, x, (max(0, widths[0][2]), *rows), (max(0, widths[0][3]), *columns), mode, value))


def _pad_places(node: ir.Node, context: Context, widths: Widths, mode: str) -> None:
    moved = context.moved(node.inputs[0])
    places = moved.places
    for axis, (begin, end) in enumerate(zip(*widths, strict=True)):
        first, count = _kept(places.shape[axis], begin, end)
        places = np.take(places, range(int(first), int(first + count)), axis)
    around = [(max(0, begin), max(0, end)) for begin, end in zip(*widths, strict=True)]
    if mode == "constant":
        places = np.pad(places, around, constant_values=ZERO)
    else:
        places = np.pad(places, around, cast(Literal["edge", "reflect", "wrap"], mode))
    context.define_moved(node.outputs[0], moved.base, places)


def _pad_view(node: ir.Node, context: Context, widths: Widths, mode: str, value: Array | Tensor | None) -> None:
    view = context.view(node.inputs[0])
    for axis, (begin, end) in enumerate(zip(*widths, strict=True)):
        view = view.taken(axis, *_kept(view.sizes[axis], begin, end), 1)
    begins = tuple(max(0, begin) for begin in widths[0])
    context.emit(PaddedCopy(context.output(node.outputs[0], Layout.PLAIN), view, begins, mode, value))


def _pad_by_numbers(node: ir.Node, context: Context, mode: str) -> None:
    numbers, view = context.whole_numbers(operand(node, 1)), context.view(node.inputs[0])
    rank = len(view.sizes)
    axes = pad_axes(node, rank)
    if axes is None:
        raise BuildRefusedError("a Pad of axes that are data")
    order = [axis % rank for axis in axes]
    which = tuple(order.index(axis) if axis in order else None for axis in range(rank))
    output = context.output(node.outputs[0], Layout.PLAIN)
    context.emit(PaddedAt(output, view, numbers, which, mode, _value(node, context)))


def center_crop_pad(node: ir.Node, context: Context) -> None:
    """Lowers CenterCropPad of fixed sizes: as a Pad by zeros. Source: ONNX CenterCropPad."""
    before, after = (context.sizes_of(value) for value in (node.inputs[0], node.outputs[0]))
    if not (is_fixed(before) and is_fixed(after)):
        raise BuildRefusedError("a CenterCropPad of sizes that are not fixed")
    more = [fixed(new) - fixed(old) for old, new in zip(before, after, strict=True)]
    begins = tuple(one // 2 if one > 0 else -(-one // 2) for one in more)
    ends = tuple(one - begin for one, begin in zip(more, begins, strict=True))
    _pad_view(node, context, (begins, ends), "constant", None)


def _kept(size: Dim, begin: int, end: int) -> tuple[Dim, Dim]:
    """Returns the first element of an axis that is not taken away, and how many there are."""
    first = max(0, -begin)
    return first, size - first - max(0, -end)
