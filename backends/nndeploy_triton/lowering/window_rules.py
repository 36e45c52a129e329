# SPDX-License-Identifier: Apache-2.0
"""Rules for convolutions and windowed pooling over one or two spatial axes.

Source: ONNX Conv, ConvTranspose, MaxPool, AveragePool.
"""

import numpy as np
import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import int_attribute, ints_attribute, operand, text_attribute
from nndeploy.values.size import Dim, fixed, most
from nndeploy_triton.lowering.context import Array, Context, as_image
from nndeploy_triton.program import ProgramBuilder
from nndeploy_triton.steps.convolution import Convolution, Depthwise, Window
from nndeploy_triton.steps.pooling import Pooling
from nndeploy_triton.steps.step import PLAIN, Epilogue
from nndeploy_triton.views import Shape, View

MAX_DEPTHWISE_TAPS = 64
"""The taps of a depthwise window are written out one by one in the kernel."""


def convolution(node: ir.Node, context: Context) -> None:
    """Lowers Conv: depthwise where every group has one input channel, else general."""
    context.floats(node, 3 if operand(node, 2) is not None else 2)
    x, weights = image_of(context, node.inputs[0]), as_image(context.dense(node.inputs[1]))
    output = as_image(context.output(node.outputs[0]))
    groups, window = int_attribute(node, "group", 1), window_of(node, x, output, weights.shape[2:])
    emit_convolution(context, output, x, weights, window, groups, _bias(node, context, output))


def emit_convolution(
    context: Context, output: View, x: View, weights: View, window: Window, groups: int, epilogue: Epilogue
) -> None:
    """Emits a convolution of images: the depthwise kernel where every group has one input channel, else the general."""
    if x.shape[1] != groups * weights.shape[1] or weights.shape[0] % groups or output.shape[1] != weights.shape[0]:
        raise BuildRefusedError("channels, groups and weights that do not fit together")
    if weights.shape[1] == 1 and groups > 1 and window.num_taps <= MAX_DEPTHWISE_TAPS:
        context.emit(Depthwise(output, x, weights, window, epilogue))
    else:
        context.emit(Convolution(output, x, weights, window, groups, False, epilogue))


def transposed_convolution(node: ir.Node, context: Context) -> None:
    """Lowers ConvTranspose with constant weights, which are put into the order of a convolution's."""
    context.floats(node, 3 if operand(node, 2) is not None else 2)
    array, groups = context.constant(node.inputs[1]), int_attribute(node, "group", 1)
    if array is None:
        raise BuildRefusedError("a ConvTranspose whose weights are not constant")
    x, output = image_of(context, node.inputs[0]), as_image(context.output(node.outputs[0]))
    if array.ndim == 3:
        array = array[:, :, None, :]
    if array.ndim != 4 or x.shape[1] != array.shape[0] or array.shape[0] % groups:
        raise BuildRefusedError("channels, groups and weights that do not fit together")
    weights = context.new_constant(_outputs_first(array, groups))
    window = _transposed_window(node, x, output, (array.shape[2], array.shape[3]))
    context.emit(Convolution(output, x, weights, window, groups, True, _bias(node, context, output)))


def pooling(node: ir.Node, context: Context) -> None:
    """Lowers MaxPool and AveragePool."""
    context.floats(node, 1)
    if len(node.outputs) > 1 and node.outputs[1].name:
        raise BuildRefusedError("the indices of MaxPool are asked for")
    x, output = as_image(context.dense(node.inputs[0])), as_image(context.output(node.outputs[0]))
    kernel = ints_attribute(node, "kernel_shape") or ()
    window = window_of(node, x, output, (1, *kernel) if len(kernel) == 1 else kernel)
    kind = "max" if node.op_type == "MaxPool" else "mean"
    counts = kind == "mean" and int_attribute(node, "count_include_pad", 0) == 1
    context.emit(Pooling(output, x, window, _end_pads(node, window, x, output), kind, counts))


def image_of(context: Context, value: ir.Value | None) -> View:
    """Returns (N, C, H, W) of a value whose images are dense; a distance between them is fine, else it is copied."""
    view = context.view(value)
    image = as_image(view)
    inner = View(image.name, image.dtype, image.shape[1:], image.strides[1:])
    return image if inner.is_dense else as_image(context.packed(view))


def window_of(node: ir.Node, x: View, output: View, kernel: Shape) -> Window:
    """Returns how the window of a convolution or pooling moves.

    Raises:
        BuildRefusedError: an attribute does not fit the input.
    """
    strides, dilations, sizes = _pair(node, "strides"), _pair(node, "dilations"), tuple(map(fixed, kernel))
    if len(sizes) != 2 or min(*sizes, *strides, *dilations) < 1:
        raise BuildRefusedError("a window with a malformed kernel, stride or dilation")
    begins, _ = _pads(node, x, output, (sizes[0], sizes[1]), strides, dilations)
    return Window((sizes[0], sizes[1]), strides, begins, dilations)


def _pads(
    node: ir.Node,
    x: View,
    output: View,
    kernel: tuple[int, int],
    strides: tuple[int, int],
    dilations: tuple[int, int],
) -> tuple[tuple[Dim, Dim], tuple[Dim, Dim]]:
    """Returns the padding before and after each axis.

    Source: ONNX Conv, `auto_pad`: SAME_UPPER puts the odd element at the end, SAME_LOWER at the beginning.
    """
    mode = text_attribute(node, "auto_pad", "NOTSET")
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        pairs = [
            _same_padding(x.shape[2 + i], output.shape[2 + i], kernel[i], strides[i], dilations[i], mode)
            for i in range(2)
        ]
        return (pairs[0][0], pairs[1][0]), (pairs[0][1], pairs[1][1])
    given = ints_attribute(node, "pads") if mode != "VALID" else None
    pads = given or (0, 0, 0, 0)
    if len(pads) == 2:
        pads = (0, pads[0], 0, pads[1])
    if len(pads) != 4:
        raise BuildRefusedError("a window with malformed padding")
    return (pads[0], pads[1]), (pads[2], pads[3])


def _same_padding(size: Dim, out_size: Dim, kernel: int, stride: int, dilation: int, mode: str) -> tuple[Dim, Dim]:
    total = most(0, (out_size - 1) * stride + (kernel - 1) * dilation + 1 - size)
    small, large = total // 2, total - total // 2
    return (small, large) if mode == "SAME_UPPER" else (large, small)


def _end_pads(node: ir.Node, window: Window, x: View, output: View) -> tuple[Dim, Dim]:
    return _pads(node, x, output, window.kernel, window.strides, window.dilations)[1]


def _pair(node: ir.Node, name: str) -> tuple[int, int]:
    given = ints_attribute(node, name) or (1, 1)
    if len(given) == 1:
        return 1, given[0]
    if len(given) != 2:
        raise BuildRefusedError(f"malformed {name}")
    return given[0], given[1]


def _bias(node: ir.Node, context: Context, output: View) -> Epilogue:
    if operand(node, 2) is None:
        return PLAIN
    column = context.view(operand(node, 2)).reshaped((1, output.shape[1], 1, 1))
    if column is None:
        raise BuildRefusedError("a bias that is not one number for each channel")
    builder = ProgramBuilder(2)
    return Epilogue(builder.program(builder.apply("add", 0, 1), "bias"), (context.broadcast(column, output.shape),))


def _outputs_first(weights: Array, groups: int) -> Array:
    """Returns (C, M / groups, H, W) as (groups, M / groups, C / groups, H, W)."""
    channels, outputs, height, width = weights.shape
    apart = weights.reshape(groups, channels // groups, outputs, height, width)
    return np.ascontiguousarray(apart.transpose(0, 2, 1, 3, 4))


def _transposed_window(node: ir.Node, x: View, output: View, kernel: tuple[int, int]) -> Window:
    """Returns the window of a ConvTranspose, whose padding may follow from the output's size.

    Source: ONNX ConvTranspose: total_padding = stride * (input - 1) + output_padding + (kernel - 1) * dilation + 1 -
    output, of which SAME_UPPER puts the larger half at the end.
    """
    strides, dilations = _pair(node, "strides"), _pair(node, "dilations")
    if min(*kernel, *strides, *dilations) < 1:
        raise BuildRefusedError("a window with a malformed kernel, stride or dilation")
    mode = text_attribute(node, "auto_pad", "NOTSET")
    extra = _pair_of_zeros(ints_attribute(node, "output_padding"))
    if mode in ("SAME_UPPER", "SAME_LOWER") or ints_attribute(node, "output_shape") is not None:
        begins: list[Dim] = [0, 0]
        for i in range(2):
            total = (
                strides[i] * (x.shape[2 + i] - 1) + extra[i] + (kernel[i] - 1) * dilations[i] + 1 - output.shape[2 + i]
            )
            begins[i] = total // 2 if mode == "SAME_UPPER" else total - total // 2
        return Window(kernel, strides, (begins[0], begins[1]), dilations)
    begins_given, _ = _pads(node, x, output, kernel, strides, dilations)
    return Window(kernel, strides, begins_given, dilations)


def _pair_of_zeros(given: tuple[int, ...] | None) -> tuple[int, int]:
    if given is None:
        return 0, 0
    return (0, given[0]) if len(given) == 1 else (given[0], given[1])
