# SPDX-License-Identifier: Apache-2.0
"""Conv and ConvTranspose -> a (transposed) convolution, and the bias as an addition of its own.

    y = Conv(x, w, b)   ->   t = conv(x, w); y = t + b[1, K, 1, ...]      the emitter joins them again

Source: ONNX Conv and ConvTranspose, opset 22.
"""

import onnx_ir as ir

from nndeploy_cudnn.operations import Convolution, Pointwise, Reshaped, TransposedConvolution, Value
from nndeploy_cudnn.patterns.translation import NotTakenError, Translation, attribute, attribute_ints
from nndeploy_cudnn.patterns.windows import windows_of


def conv(node: ir.Node, translation: Translation) -> None:
    """Writes a Conv."""
    x, w = translation.value(node.inputs[0]), translation.value(node.inputs[1])
    y, bias = translation.value(node.outputs[0]), translation.optional(node, 2)
    groups = attribute(node, "group", 1)
    _check(x, w, groups * w.dims[1], w.dims[0], groups)
    windows = windows_of(node, w.dims[2:], x.dims[2:])
    if (w.dims[0], *windows.positions(x.dims[2:])) != y.dims[1:]:
        raise NotTakenError("the output's shape does not follow from the windows")
    made = y if bias is None else translation.made(y.dims, y.dtype)
    translation.add(Convolution(x, w, made, windows.strides, windows.before, windows.after, windows.dilations))
    add_bias(translation, made, bias, y)


def conv_transpose(node: ir.Node, translation: Translation) -> None:
    """Writes a ConvTranspose."""
    x, w = translation.value(node.inputs[0]), translation.value(node.inputs[1])
    y, bias = translation.value(node.outputs[0]), translation.optional(node, 2)
    groups = attribute(node, "group", 1)
    _check(x, w, w.dims[0], groups * w.dims[1], groups)
    windows = windows_of(node, w.dims[2:], y.dims[2:])
    before, after = windows.before, windows.after
    if attribute_ints(node, "output_shape", ()):
        raise NotTakenError("ConvTranspose with output_shape")
    if (w.dims[0], *windows.positions(y.dims[2:])) != x.dims[1:] or y.dims[1] != groups * w.dims[1]:
        raise NotTakenError("the output's shape does not follow from the windows")
    made = y if bias is None else translation.made(y.dims, y.dtype)
    translation.add(TransposedConvolution(x, w, made, windows.strides, before, after, windows.dilations))
    add_bias(translation, made, bias, y)


def add_bias(translation: Translation, x: Value, bias: Value | None, y: Value) -> None:
    """Writes y = x + bias for each channel (axis 1); nothing where there is no bias."""
    if bias is None:
        return
    shaped = translation.made((1, x.dims[1]) + (1,) * (len(x.dims) - 2), bias.dtype)
    if bias.constant is not None:
        shaped = translation.constant(bias.constant.reshape(shaped.dims), bias.dtype)
    else:
        translation.add(Reshaped(bias, shaped))
    translation.add(Pointwise("add", (x, shaped), y))


def _check(x: Value, w: Value, channels: int, outputs: int, groups: int) -> None:
    if not 3 <= len(x.dims) <= 5 or len(w.dims) != len(x.dims):
        raise NotTakenError(f"a convolution over {len(x.dims) - 2} axes; cuDNN takes 1 to 3")
    if groups < 1 or x.dims[1] != channels or outputs % groups or channels % groups:
        raise NotTakenError(f"{x.dims[1]} channels, {groups} groups and filters {list(w.dims)} do not fit")


PATTERNS = {"Conv": conv, "ConvTranspose": conv_transpose}
