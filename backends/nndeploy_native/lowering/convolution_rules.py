# SPDX-License-Identifier: Apache-2.0
"""Rules for convolutions and pooling of images.

Source: ONNX Conv, ConvTranspose, MaxPool, AveragePool, GlobalAveragePool, GlobalMaxPool.
"""

from dataclasses import replace
from typing import TypeVar

import numpy as np
import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import int_attribute, ints_attribute, operand, text_attribute
from nndeploy.values.size import Dim, bounds, fixed, is_fixed, most, product
from nndeploy_native.lowering.context import MAX_MOVED_ELEMENTS, Context, image_shape
from nndeploy_native.steps.convolution import Convolution, Window
from nndeploy_native.steps.movement import StridedCopy, View
from nndeploy_native.steps.pooling import Pooling
from nndeploy_native.tensors import Array, Layout, Shape, Tensor, fixed_shape

AnyDim = TypeVar("AnyDim", int, Dim)

MAX_FIRST_CHANNELS = 4
"""Most input channels with which a plain tensor is read as it is: blocks would be mostly padding."""


def convolution(node: ir.Node, context: Context) -> None:
    """Lowers Conv with constant weights."""
    weights = context.floats(operand(node, 1), "weights")
    bias = context.floats(operand(node, 2), "a bias") if operand(node, 2) is not None else None
    shape, out_shape = context.shape_of(operand(node, 0)), context.shape_of(node.outputs[0])
    groups = int_attribute(node, "group", 1)
    if not len(shape) == len(out_shape) == weights.ndim:
        raise BuildRefusedError("an input, weights and an output of different ranks")
    outputs = weights.shape[0]
    if groups < 1 or shape[1] != groups * weights.shape[1] or outputs % groups or out_shape[1] != outputs:
        raise BuildRefusedError("channels, groups and weights that do not fit together")
    image = image_shape(shape)
    window, _ = window_of(node, shape, out_shape, weights.shape[2:])
    source = node.inputs[0]
    reads_plain = groups == 1 and shape[1] <= MAX_FIRST_CHANNELS and source is not None
    x = context.plain(source) if reads_plain and not context.is_blocked(_present(source)) else context.blocked(source)
    output = context.output(node.outputs[0], Layout.BLOCKED)
    kernels = weights.reshape(fixed_shape(image_shape(weights.shape)))
    context.emit(Convolution(output, replace(x, shape=image), kernels, bias, window, groups))


def transposed_convolution(node: ir.Node, context: Context) -> None:
    """Lowers ConvTranspose without groups, with constant weights (I, O, H, W) and padding that is given."""
    weights = context.floats(operand(node, 1), "weights")
    bias = context.floats(operand(node, 2), "a bias") if operand(node, 2) is not None else None
    shape, out_shape = context.shape_of(operand(node, 0)), context.shape_of(node.outputs[0])
    if len(shape) != 4 or weights.ndim != 4 or weights.shape[:2] != (shape[1], out_shape[1]):
        raise BuildRefusedError("a ConvTranspose with groups, or of something else than images (N, C, H, W)")
    if text_attribute(node, "auto_pad", "NOTSET") not in ("NOTSET", "VALID") or ints_attribute(node, "output_shape"):
        raise BuildRefusedError("a ConvTranspose whose padding follows from the size of its output")
    window, _ = window_of(node, shape, out_shape, weights.shape[2:])
    x = context.blocked(node.inputs[0])
    if _is_apart(window, shape, out_shape) and out_shape[1] <= MAX_FIRST_CHANNELS:
        _spread_apart(node.outputs[0], context, x, weights, bias)
        return
    output = context.output(node.outputs[0], Layout.BLOCKED)
    context.emit(Convolution(output, x, weights.swapaxes(0, 1), bias, window, is_transposed=True))


def _is_apart(window: Window, shape: Shape, out_shape: Shape) -> bool:
    """Whether each input pixel makes output pixels that no other one makes, and all of them."""
    sizes = tuple(size * stride for size, stride in zip(shape[2:], window.strides, strict=True))
    is_even = window.kernel == window.strides and window.pads == (0, 0) and out_shape[2:] == sizes
    is_small = bounds(product(out_shape))[1] <= MAX_MOVED_ELEMENTS or not is_fixed(out_shape)
    return is_even and is_small and window.dilations == (1, 1)


def _spread_apart(value: ir.Value, context: Context, x: Tensor, weights: Array, bias: Array | None) -> None:
    """Makes a window's pixels as channels of one pixel, which are then moved: few channels would fill no vector."""
    inputs, outputs, kh, kw = weights.shape
    n, _, h, w = x.shape
    base = context.temporary("pixels", (n, kh * kw * outputs, h, w), Layout.BLOCKED)
    wide = weights.transpose(2, 3, 1, 0).reshape(-1, inputs, 1, 1)
    context.emit(Convolution(base, x, wide, None if bias is None else np.tile(bias, kh * kw), Window((1, 1))))
    if not is_fixed(base.shape):
        apart = View.of(context.in_layout(base, Layout.PLAIN)).reshaped((n, kh, kw, outputs, h, w))
        assert apart is not None
        spread = apart.transposed((0, 3, 4, 1, 5, 2))
        output = context.output(value, Layout.PLAIN)
        context.emit(StridedCopy(replace(output, shape=spread.sizes), spread))
        return
    places = np.arange(fixed(base.size)).reshape(n, kh, kw, outputs, h, w).transpose(0, 3, 4, 1, 5, 2)
    context.define_moved(value, base, places.reshape(context.shape_of(value)))


def pooling(node: ir.Node, context: Context) -> None:
    """Lowers MaxPool and AveragePool."""
    if len(node.outputs) > 1 and node.outputs[1].name:
        raise BuildRefusedError("the indices of MaxPool are asked for")
    shape, out_shape = context.shape_of(operand(node, 0)), context.shape_of(node.outputs[0])
    image = image_shape(shape)
    window, end_pads = window_of(node, shape, out_shape, ints_attribute(node, "kernel_shape") or ())
    kind = "max" if node.op_type == "MaxPool" else "mean"
    counts = kind == "mean" and int_attribute(node, "count_include_pad", 0) == 1
    x = replace(context.blocked(node.inputs[0]), shape=image)
    context.emit(Pooling(context.output(node.outputs[0], Layout.BLOCKED), x, window, end_pads, kind, counts))


def global_pooling(node: ir.Node, context: Context) -> None:
    """Lowers GlobalAveragePool and GlobalMaxPool: a window as large as the image."""
    kind = "max" if node.op_type == "GlobalMaxPool" else "mean"
    x = context.blocked(operand(node, 0))
    window = Window((x.shape[2], x.shape[3]))
    context.emit(Pooling(context.output(node.outputs[0], Layout.BLOCKED), x, window, (0, 0), kind))


def window_of(node: ir.Node, shape: Shape, out_shape: Shape, kernel: tuple[int, ...]) -> tuple[Window, tuple[Dim, Dim]]:
    """Returns how the window of a convolution or pooling moves, and the padding after each axis.

    Along (N, C, W) it moves as over an image that is one pixel high.

    Raises:
        BuildRefusedError: an attribute does not fit the input.

    Source: ONNX Conv, `auto_pad`: SAME_UPPER puts the odd element at the end, SAME_LOWER at the beginning.
    """
    rank = len(shape) - 2
    if rank > 2:
        raise BuildRefusedError("a window over a volume")
    strides, dilations = (ints_attribute(node, name) or (1,) * rank for name in ("strides", "dilations"))
    if not len(kernel) == len(strides) == len(dilations) == rank or min(*kernel, *strides, *dilations) < 1:
        raise BuildRefusedError("a window with a malformed kernel, stride or dilation")
    mode = text_attribute(node, "auto_pad", "NOTSET")
    given = ints_attribute(node, "pads") if mode != "VALID" else None
    pads: tuple[Dim, ...] = given or (0,) * (2 * rank)
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        axes = zip(shape[2:], out_shape[2:], kernel, strides, dilations, strict=True)
        pairs = [_same_padding(*axis, mode) for axis in axes]
        pads = (*(begin for begin, _ in pairs), *(end for _, end in pairs))
    if len(pads) != 2 * rank:
        raise BuildRefusedError("a window with malformed padding")
    kernel, strides, dilations = (_of_image(one, 1) for one in (kernel, strides, dilations))
    begins, ends = (_of_image(one, 0) for one in (pads[:rank], pads[rank:]))
    return Window(kernel, strides, begins, dilations), ends


def _same_padding(size: Dim, out_size: Dim, kernel: int, stride: int, dilation: int, mode: str) -> tuple[Dim, Dim]:
    total = most(0, (out_size - 1) * stride + (kernel - 1) * dilation + 1 - size)
    small, large = total // 2, total - total // 2
    return (small, large) if mode == "SAME_UPPER" else (large, small)


def _of_image(numbers: tuple[AnyDim, ...], of_height: AnyDim) -> tuple[AnyDim, AnyDim]:
    """Returns what holds for height and width, from what holds for the width alone or for both."""
    return (numbers[0], numbers[1]) if len(numbers) == 2 else (of_height, numbers[0])


def _present(value: ir.Value | None) -> ir.Value:
    assert value is not None
    return value
