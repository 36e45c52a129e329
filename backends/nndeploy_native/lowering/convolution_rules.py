# SPDX-License-Identifier: Apache-2.0
"""Rules for convolutions of rows, images and volumes. Source: ONNX Conv, ConvTranspose."""

import itertools
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import int_attribute, operand
from nndeploy.values.size import bounds, fixed, is_fixed, may_be_equal, product
from nndeploy_native.lowering.context import MAX_MOVED_ELEMENTS, Context, image_shape
from nndeploy_native.lowering.integer_convolution_rules import dequantised_convolution, dequantised_transposed
from nndeploy_native.lowering.windows import transposed_windows_of, windows_of
from nndeploy_native.steps.convolution import Convolution, Depth, Window, Windows
from nndeploy_native.steps.matmul import Product
from nndeploy_native.steps.movement import ChannelParts, View
from nndeploy_native.tensors import Array, Layout, Shape, Tensor, fixed_shape

MAX_FIRST_CHANNELS = 4
"""Most input channels with which a plain tensor is read as it is: blocks would be mostly padding."""
FEW_PIXELS_OF_PATCH = 16
"""Patches of as many pixels are copied in long enough rows, and multiplied in one product."""
MAX_TOGETHER = 8
"""Most output channels of pixels that are made together."""
MIN_TAPS = 128
"""Products of an output pixel that pay for moving it."""
MOST_OF_COST = 0.6
"""The largest share of the cost of single pixels that pixels which are made together may have."""


def convolution(node: ir.Node, context: Context) -> None:
    """Lowers Conv with constant weights."""
    if dequantised_convolution(node, context):
        return
    weights = context.floats(operand(node, 1), "weights")
    bias = context.floats(operand(node, 2), "a bias") if operand(node, 2) is not None else None
    shape, out_shape = context.shape_of(operand(node, 0)), context.shape_of(node.outputs[0])
    groups = int_attribute(node, "group", 1)
    if not len(shape) == len(out_shape) == weights.ndim:
        raise BuildRefusedError("an input, weights and an output of different ranks")
    outputs, channels = weights.shape[0], groups * weights.shape[1]
    if groups < 1 or not may_be_equal(shape[1], channels) or outputs % groups or out_shape[1] != outputs:
        raise BuildRefusedError("channels, groups and weights that do not fit together")
    shape = (shape[0], channels, *shape[2:])  # a model may leave open what its weights say
    windows = windows_of(node, shape, out_shape, weights.shape[2:])
    source = node.inputs[0]
    is_few = groups == 1 and shape[1] <= MAX_FIRST_CHANNELS and source is not None and len(shape) <= 4
    reads_plain = is_few and not context.is_blocked(_present(source))
    if reads_plain and len(shape) == 4 and _is_of_patches(windows.of_image()[0]):
        _multiply_patches(node, context, weights, bias)
        return
    may_join = groups == 1 and len(shape) < 5 and not reads_plain and is_fixed(shape[2:])
    sides = _sides_of(windows.of_image()[0], weights) if may_join else (1, 1)
    if sides != (1, 1):
        image = replace(context.blocked(source), shape=image_shape(shape))
        _convolve_together(node, context, image, weights, windows.of_image()[0], sides)
        return
    x = context.plain(source) if reads_plain else context.blocked(source)
    x = replace(x, shape=image_shape(shape))
    if groups == channels > 1 and outputs > groups and len(shape) < 5:
        x, groups = _repeated(context, x, outputs // groups), outputs
    output = context.output(node.outputs[0], Layout.BLOCKED)
    kernels = weights.reshape(fixed_shape(image_shape(weights.shape)))
    step = Convolution(output, x, kernels, bias, windows.of_image()[0], groups)
    context.emit(step if len(shape) < 5 else _of_volume(step, shape, out_shape, windows))


def _repeated(context: Context, x: Tensor, multiplier: int) -> Tensor:
    """Returns an image that has each channel of `x` several times.

    A depthwise convolution with a multiplier is one without of it: that takes a half to a quarter of the time of a
    grouped one, most of whose products are with zeros, and is fused with what follows.
    """
    channels = tuple((0, channel // multiplier) for channel in range(multiplier * x.channels))
    repeated = context.temporary("repeated", (x.shape[0], len(channels), *x.shape[2:]), Layout.BLOCKED)
    context.emit(ChannelParts(repeated, (x,), channels))
    return repeated


def _is_of_patches(window: Window) -> bool:
    """Whether output pixels read patches of the image that stand side by side and are no few pixels each."""
    is_even = window.kernel == window.strides and window.pads == (0, 0) and window.dilations == (1, 1)
    return is_even and product(window.kernel) >= FEW_PIXELS_OF_PATCH


def _multiply_patches(node: ir.Node, context: Context, weights: Array, bias: Array | None) -> None:
    """Lowers a convolution over patches, as of transformers of images, to a product of rows that are patches."""
    n, _, *size = context.shape_of(node.outputs[0])
    outputs, channels, *kernel = weights.shape
    view = context.view(node.inputs[0])
    for axis, (count, pixels) in enumerate(zip(size, kernel, strict=True)):
        view = view.taken(2 + 2 * axis, 0, count * pixels, 1).parted(2 + 2 * axis, count, pixels)
    patches = context.stored(view.transposed((0, 2, 4, 1, 3, 5)), "patches")
    rows = View.of(replace(patches, shape=(n * product(size), channels * product(kernel))))
    output = context.output_channels_last(node.outputs[0])
    context.emit(Product(output, rows, np.ascontiguousarray(weights.reshape(outputs, -1).T), bias))


def _sides_of(window: Window, weights: Array) -> tuple[int, int]:
    """Returns of how many output pixels, down and across, the few channels had better be those of one; (1, 1): of one.

    Each tap is then multiplied as often as the window of all these pixels is larger than that of one. Pairs of
    vectors of 16 channels are counted: one alone waits for what it reads.
    """
    outputs, inputs, kh, kw = fixed_shape(image_shape(weights.shape))
    if window.strides != (1, 1) or window.dilations != (1, 1) or outputs > MAX_TOGETHER or inputs * kh * kw < MIN_TAPS:
        return 1, 1

    def cost(sides: tuple[int, int]) -> float:
        (down, across), pixels = sides, sides[0] * sides[1]
        panels = max(1.0, -(-outputs * pixels // 16) / 2)
        return panels / pixels * (kh + down - 1) * (kw + across - 1) / (kh * kw)

    powers = (1, 2, 4, 8, 16)
    best = min((pair for pair in itertools.product(powers, powers) if outputs * pair[0] * pair[1] <= 32), key=cost)
    return best if cost(best) <= MOST_OF_COST else (1, 1)


def _convolve_together(
    node: ir.Node, context: Context, x: Tensor, weights: Array, window: Window, sides: tuple[int, int]
) -> None:
    """Makes neighbouring output pixels as channels of one pixel: few channels would fill no vector."""
    down, across = sides
    kernels = weights.reshape(fixed_shape(image_shape(weights.shape)))
    outputs, inputs, kh, kw = kernels.shape
    wide = np.zeros((down, across, outputs, inputs, kh + down - 1, kw + across - 1), np.float32)
    for y, column in itertools.product(range(down), range(across)):
        wide[y, column, :, :, y : y + kh, column : column + kw] = kernels
    _convolve_wide(node, context, x, wide, Window((kh + down - 1, kw + across - 1), sides, window.pads), sides)


def _convolve_wide(
    node: ir.Node, context: Context, x: Tensor, wide: Array, window: Window, sides: tuple[int, int]
) -> None:
    """Emits a convolution by weights (down, across, O, I, kernel), each of which makes the pixels of one place."""
    n, _, *size = image_shape(context.shape_of(node.outputs[0]))
    h, w = (one // side if one % side == 0 else -(-one // side) for one, side in zip(size, sides, strict=True))
    base = context.temporary("pixels", (n, product(wide.shape[:3]), h, w), Layout.BLOCKED)
    bias = context.floats(operand(node, 2), "a bias") if operand(node, 2) is not None else None
    biases = None if bias is None else np.tile(bias, sides[0] * sides[1])
    context.emit(Convolution(base, x, wide.reshape(-1, *wide.shape[3:]), biases, window))
    _spread(node.outputs[0], context, base, sides)


def _spread(value: ir.Value, context: Context, base: Tensor, sides: tuple[int, int]) -> None:
    """Says that a value is pixels that were made as channels [down][across][channel] of one; what is behind is cut."""
    (n, channels, rows, columns), (down, across) = base.shape, sides
    sizes = (n, down, across, channels // (down * across), rows, columns)
    shape = context.shape_of(value)
    image = image_shape(shape)
    is_small = is_fixed(base.shape) and fixed(base.size) <= MAX_MOVED_ELEMENTS
    if is_small:
        places = np.arange(fixed(base.size)).reshape(fixed_shape(sizes)).transpose(0, 3, 4, 1, 5, 2)
        whole = places.reshape(*places.shape[:2], fixed(rows * down), fixed(columns * across))
        context.define_moved(value, base, whole[:, :, : fixed(image[2]), : fixed(image[3])].reshape(fixed_shape(shape)))
        return
    apart = View.of(context.in_layout(base, Layout.PLAIN)).reshaped(sizes)
    assert apart is not None, "a whole tensor is in order"
    made = context.stored(apart.transposed((0, 3, 4, 1, 5, 2)), "spread")
    view = View.of(replace(made, shape=(*image[:2], rows * down, columns * across)))
    view = view.taken(2, 0, image[2], 1).taken(3, 0, image[3], 1)
    context.define_view(value, view if len(shape) == 4 else view.without(2))


def transposed_convolution(node: ir.Node, context: Context) -> None:
    """Lowers ConvTranspose with constant weights (I, O / groups, ...)."""
    if dequantised_transposed(node, context):
        return
    weights = context.floats(operand(node, 1), "weights")
    bias = context.floats(operand(node, 2), "a bias") if operand(node, 2) is not None else None
    shape, out_shape = context.shape_of(operand(node, 0)), context.shape_of(node.outputs[0])
    groups = int_attribute(node, "group", 1)
    if not len(shape) == len(out_shape) == weights.ndim:
        raise BuildRefusedError("an input, weights and an output of different ranks")
    inputs, of_group, *kernel = weights.shape
    if groups < 1 or shape[1] != inputs or inputs % groups or out_shape[1] != of_group * groups:
        raise BuildRefusedError("channels, groups and weights that do not fit together")
    windows = transposed_windows_of(node, shape, out_shape, tuple(kernel))
    window, _ = windows.of_image()
    x = replace(context.blocked(node.inputs[0]), shape=image_shape(shape))
    if groups == 1 and len(shape) < 5 and of_group <= MAX_FIRST_CHANNELS:
        phases = _phases_of(window, image_shape(out_shape))
        if phases is not None:
            _convolve_phases(node, context, x, weights.reshape(fixed_shape(image_shape(weights.shape))), window, phases)
            return
    turned = weights.reshape(groups, inputs // groups, of_group, *kernel).swapaxes(1, 2)
    kernels = turned.reshape(fixed_shape(image_shape((of_group * groups, inputs // groups, *kernel))))
    output = context.output(node.outputs[0], Layout.BLOCKED)
    step = Convolution(output, x, kernels, bias, window, groups, is_transposed=True)
    context.emit(step if len(shape) < 5 else _of_volume(step, shape, out_shape, windows))


def _of_volume(step: Convolution, shape: Shape, out_shape: Shape, windows: Windows) -> Convolution:
    """Returns a convolution of volumes; one along their depth alone is that of an image whose columns are H * W."""
    (size, *plane), (out_size, *out_plane) = shape[2:], out_shape[2:]
    if windows.keeps_planes and plane == out_plane:
        window, _ = windows.of_depth()
        x, output = (
            replace(one, shape=(*one.shape[:2], deep, product(plane)))
            for one, deep in ((step.x, size), (step.output, out_size))
        )
        return replace(step, x=x, output=output, window=window)
    depth = Depth(windows.kernel[0], windows.strides[0], windows.dilations[0], windows.begins[0], size, out_size)
    return replace(step, depth=depth)


def _phases_of(window: Window, out_shape: Shape) -> tuple[range, range] | None:
    """Returns, of each axis, how many pixels before pixel n the input pixels are that make outputs n * stride and on.

    None where output pixels are no whole strides, or have no phases, or are too many to be followed one by one.
    """
    small = bounds(product(out_shape))[1] <= MAX_MOVED_ELEMENTS or not is_fixed(out_shape)
    is_fit = is_fixed((*window.pads, *window.kernel)) and window.dilations == (1, 1) and window.strides != (1, 1)
    if not (is_fit and small):
        return None
    found = []
    for kernel, stride, pad, size in zip(window.kernel, window.strides, window.pads, out_shape[2:], strict=True):
        first, last = -((fixed(pad) + stride - 1) // stride), (fixed(kernel) - 1 - fixed(pad)) // stride
        if size % stride != 0 or last < 0:
            return None
        found.append(range(last, first - 1, -1))
    return found[0], found[1]


def _convolve_phases(
    node: ir.Node, context: Context, x: Tensor, weights: Array, window: Window, phases: tuple[range, range]
) -> None:
    """Makes a stride's pixels as channels of one pixel, which are then moved: few channels would fill no vector.

    Output n * stride + p is the sum over b of input pixel n - b times weight b * stride + p + pad, where there is one.
    """
    inputs, outputs, kh, kw = weights.shape
    wide = np.zeros((*window.strides, outputs, inputs, len(phases[0]), len(phases[1])), np.float32)
    taps = [
        [
            (p, j, tap)
            for p in range(stride)
            for j, b in enumerate(back)
            if 0 <= (tap := b * stride + p + fixed(pad)) < k
        ]
        for stride, back, pad, k in zip(window.strides, phases, window.pads, (kh, kw), strict=True)
    ]
    for (py, jy, ky), (px, jx, kx) in itertools.product(*taps):
        wide[py, px, :, :, jy, jx] = weights[:, :, ky, kx].T
    taken = Window((len(phases[0]), len(phases[1])), pads=(phases[0].start, phases[1].start))
    _convolve_wide(node, context, x, wide, taken, window.strides)


def _present(value: ir.Value | None) -> ir.Value:
    assert value is not None
    return value
