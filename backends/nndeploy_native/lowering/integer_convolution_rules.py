# SPDX-License-Identifier: Apache-2.0
"""Rules for convolutions of bytes by constant weights, whose sums are exact: channels of a pixel lie side by side.

    ConvInteger(x, w)                         its sums; Cast, Mul, Add and what follows join it later
    QLinearConv(x, w)                         the nearest bytes
    Conv(dequantised x, dequantised w)        sums * (scale of x * scale of w), with a bias
    ConvTranspose of the same                 where each pixel makes pixels of its own: their products, which are moved

A convolution of pixels by themselves is a product of rows. Source: ONNX ConvInteger, QLinearConv, DequantizeLinear.
"""

import math
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.constants import constant_array
from nndeploy.graph.operators import int_attribute, operand
from nndeploy.values.size import fixed, is_fixed, may_be_equal
from nndeploy_native.lowering.context import Context
from nndeploy_native.lowering.integer_rules import BYTES, bias_of, dequantised, zero_point
from nndeploy_native.lowering.windows import is_apart, transposed_windows_of, windows_of
from nndeploy_native.steps.integer_convolution import IntegerConvolution
from nndeploy_native.steps.integer_product import IntegerProduct
from nndeploy_native.tensors import Array, Layout, Tensor, fixed_shape


@dataclass(frozen=True, slots=True)
class _End:
    """What becomes of sums: as in `IntegerSums`."""

    whole_bias: Array | None = None
    factors: Array | None = None
    bias: Array | None = None
    output_zero: int = 0


def convolution_integer(node: ir.Node, context: Context) -> None:
    """Lowers ConvInteger by constant weights."""
    weights = _weights(operand(node, 1))
    zeros = _zeros(operand(node, 3), weights)
    _emit(node, context, (operand(node, 0), zero_point(operand(node, 2), context)), (weights, zeros), _End())


def qlinear_convolution(node: ir.Node, context: Context) -> None:
    """Lowers QLinearConv by constant weights with constant scales."""
    weights = _weights(operand(node, 3))
    of_x, of_w, of_y = (constant_array(operand(node, index)) for index in (1, 4, 6))
    to, bias = constant_array(operand(node, 7)), constant_array(operand(node, 8))
    if of_x is None or of_w is None or of_y is None or to is None or not of_x.size == of_y.size == to.size == 1:
        raise BuildRefusedError("a QLinearConv whose scales are no constants, or not one of a tensor")
    outputs = weights.shape[0]
    if of_w.dtype != np.float32 or of_w.size not in (1, outputs):
        raise BuildRefusedError(f"a QLinearConv with scales of shape {of_w.shape}")
    if operand(node, 8) is not None and (bias is None or bias.dtype != np.int32 or bias.size != outputs):
        raise BuildRefusedError("a QLinearConv with a bias that is no int32 constant, one number a channel")
    factors = (of_x.reshape(1) * of_w.reshape(-1) / of_y.reshape(1)).astype(np.float32)
    x = (operand(node, 0), zero_point(operand(node, 2), context))
    end = _End(None if bias is None else bias.reshape(-1), factors, None, int(to.item()))
    _emit(node, context, x, (weights, _zeros(operand(node, 5), weights)), end)


def dequantised_convolution(node: ir.Node, context: Context) -> bool:
    """Lowers a Conv of dequantised bytes by constant ones to sums of their products; False where it is none.

    The image has one scale, the weights one, or one for each output channel.
    """
    x, w = (dequantised(operand(node, index)) for index in range(2))
    if x is None or w is None or x.scale.size != 1 or x.value.dtype is None:
        return False
    weights = constant_array(w.value)
    if x.value.dtype.name.lower() not in BYTES or weights is None or weights.dtype.name not in BYTES:
        return False
    outputs = weights.shape[0] if weights.ndim in (3, 4) else 0
    if not outputs or w.scale.size not in (1, outputs) or (w.scale.size > 1 and w.axis % weights.ndim != 0):
        return False
    factors = (x.scale.reshape(1) * w.scale.reshape(-1)).astype(np.float32)
    whole, bias = bias_of(operand(node, 2), factors, outputs, context)
    if operand(node, 2) is not None and whole is None and bias is None:
        return False
    zeros = constant_array(w.zero)
    zeros = None if zeros is None or not zeros.any() else zeros.reshape(-1)
    _emit(node, context, (x.value, zero_point(x.zero, context)), (weights, zeros), _End(whole, factors, bias))
    return True


def dequantised_transposed(node: ir.Node, context: Context) -> bool:
    """Lowers a ConvTranspose of dequantised bytes, whose windows lie side by side, to products; False where it is none.

    The weights (I, O, H, W) have one scale, or one for each output channel; a pixel becomes (H, W, O), which is moved.
    """
    x, w = (dequantised(operand(node, index)) for index in range(2))
    weights = None if w is None else constant_array(w.value)
    if x is None or w is None or weights is None or x.scale.size != 1 or x.value.dtype is None or weights.ndim != 4:
        return False
    is_grouped = int_attribute(node, "group", 1) != 1
    if is_grouped or x.value.dtype.name.lower() not in BYTES or weights.dtype.name not in BYTES:
        return False
    shape, out_shape = context.sizes_of(x.value), context.sizes_of(node.outputs[0])
    inputs, outputs, *kernel = weights.shape
    if w.scale.size not in (1, outputs) or (w.scale.size > 1 and w.axis % 4 != 1) or not is_fixed((*shape, *out_shape)):
        return False
    window, _ = transposed_windows_of(node, shape, out_shape, tuple(kernel)).of_image()
    if shape[1] != inputs or not is_apart(window, shape, out_shape):
        return False
    factors = (x.scale.reshape(1) * w.scale.reshape(-1)).astype(np.float32)
    whole, bias = bias_of(operand(node, 2), factors, outputs, context)
    if operand(node, 2) is not None and whole is None and bias is None:
        return False
    taps, zeros = math.prod(kernel), constant_array(w.zero)

    def of_taps(numbers: Array | None) -> Array | None:
        return numbers if numbers is None or numbers.size == 1 else np.tile(numbers.reshape(-1), taps)

    batch, _, height, width = fixed_shape(shape)
    pixels = context.temporary("pixels", (batch, height, width, taps * outputs), Layout.PLAIN)
    matrix = weights.transpose(0, 2, 3, 1).reshape(inputs, -1)
    context.emit(
        IntegerProduct(
            pixels, context.channels_last(x.value), matrix, zero_point(x.zero, context),
            None if zeros is None or not zeros.any() else of_taps(zeros.reshape(-1)),
            whole_bias=of_taps(whole), factors=of_taps(factors), bias=of_taps(bias),
        )
    )  # fmt: skip
    places = np.arange(fixed(pixels.size)).reshape(batch, height, width, *kernel, outputs).transpose(0, 5, 1, 3, 2, 4)
    context.define_moved(node.outputs[0], pixels, places.reshape(fixed_shape(out_shape)))
    return True


def _emit(
    node: ir.Node,
    context: Context,
    given: tuple[ir.Value | None, Tensor | Array | None],
    filters: tuple[Array, Array | None],
    end: _End,
) -> None:
    """Emits the step of an operator, of an image and of weights, both with their zero points.

    Raises:
        BuildRefusedError: they do not fit together.
    """
    (value, zero), (weights, zeros) = given, filters
    if context.element_of(value) not in BYTES:
        raise BuildRefusedError(f"a convolution of {context.element_of(value)} by bytes")
    shape, out_shape = context.sizes_of(value), context.sizes_of(node.outputs[0])
    groups, outputs, channels = int_attribute(node, "group", 1), weights.shape[0], weights.shape[1]
    if not len(shape) == len(out_shape) == weights.ndim:
        raise BuildRefusedError("an input, weights and an output of different ranks")
    channels *= groups
    if groups < 1 or not may_be_equal(shape[1], channels) or outputs % groups or out_shape[1] != outputs:
        raise BuildRefusedError("channels, groups and weights that do not fit together")
    shape = (shape[0], channels, *shape[2:])
    window, _ = windows_of(node, shape, out_shape, weights.shape[2:]).of_image()
    x, output = context.channels_last(value), context.output_channels_last(node.outputs[0])
    numbers = (end.whole_bias, end.factors, None, end.bias)
    if groups == 1 and window.is_point and shape[2:] == out_shape[2:]:
        matrix = weights.reshape(outputs, channels).T
        step = IntegerProduct(output, x, matrix, zero, zeros, *numbers, output_zero=end.output_zero)
        context.emit(step)
        return
    images = weights if weights.ndim == 4 else weights[:, :, None]
    context.emit(
        IntegerConvolution(
            output, x, images, zero, zeros, *numbers, output_zero=end.output_zero, window=window, groups=groups
        )
    )


def _weights(value: ir.Value | None) -> Array:
    """Returns constant weights of bytes over rows or images.

    Raises:
        BuildRefusedError: they are others.
    """
    array = constant_array(value)
    if array is None or array.dtype.name not in BYTES or array.ndim not in (3, 4):
        raise BuildRefusedError("a convolution of bytes by weights that are no constants, or over volumes")
    return array


def _zeros(value: ir.Value | None, weights: Array) -> Array | None:
    """Returns the zero points of weights; None where they are zeros.

    Raises:
        BuildRefusedError: they are not constant, or neither one nor one for each output channel.
    """
    if value is None:
        return None
    found = constant_array(value)
    if found is None or found.dtype != weights.dtype or found.size not in (1, weights.shape[0]):
        raise BuildRefusedError("zero points of weights that are no constants, one or one for each output channel")
    return np.ascontiguousarray(found).reshape(-1) if found.any() else None
