# SPDX-License-Identifier: Apache-2.0
"""Normalisations: by stored statistics (a line for each channel), and by those of the values themselves.

    BatchNormalization   y = x * (s / sqrt(v + e)) + (b - m * s / sqrt(v + e))     the factors are computed here
    LayerNormalization   over the last axes, as one matrix of rows
    InstanceNormalization, GroupNormalization   over (S) of (N, C, S); a group is an instance with more elements

Source: ONNX BatchNormalization (15), LayerNormalization (17), InstanceNormalization (22), GroupNormalization (21).
"""

import numpy as np
import onnx_ir as ir

from nndeploy_cudnn.operations import Array, Normalization, Pointwise, Reshaped, Value
from nndeploy_cudnn.patterns.translation import (
    NotTakenError,
    Translation,
    attribute,
    axis_within,
    num_elements,
    only_output,
)


def batch_normalization(node: ir.Node, translation: Translation) -> None:
    """Writes a BatchNormalization whose statistics are constants."""
    x, y = translation.value(node.inputs[0]), translation.value(only_output(node))
    if attribute(node, "training_mode", 0):
        raise NotTakenError("BatchNormalization in training mode")
    scale, bias, mean, variance = (_known(translation, node, index) for index in range(1, 5))
    factor = scale / np.sqrt(variance + attribute(node, "epsilon", 1e-5))
    each_channel = (1, -1) + (1,) * (len(x.dims) - 2)
    scaled = translation.made(x.dims, x.dtype)
    factors = translation.constant(factor.reshape(each_channel))
    offsets = translation.constant((bias - mean * factor).reshape(each_channel))
    translation.add(Pointwise("mul", (x, factors), scaled))
    translation.add(Pointwise("add", (scaled, offsets), y))


def layer_normalization(node: ir.Node, translation: Translation) -> None:
    """Writes a LayerNormalization."""
    x, y = translation.value(node.inputs[0]), translation.value(only_output(node))
    axis = axis_within(attribute(node, "axis", -1), len(x.dims))
    rows, size = num_elements(x.dims[:axis]), num_elements(x.dims[axis:])
    scale = _known_or(translation, node, 1, np.ones(size))
    bias = _known_or(translation, node, 2, np.zeros(size))
    if not scale.size == bias.size == size:
        raise NotTakenError("scale or bias is not of the size of what is normalised")
    matrix, made = translation.made((rows, size), x.dtype), translation.made((rows, size), y.dtype)
    translation.add(Reshaped(x, matrix))
    epsilon = attribute(node, "epsilon", 1e-5)
    scales, biases = translation.constant(scale.reshape(-1)), translation.constant(bias.reshape(-1))
    translation.add(Normalization("layer", matrix, scales, biases, made, epsilon))
    translation.add(Reshaped(made, y))


def instance_normalization(node: ir.Node, translation: Translation) -> None:
    """Writes an InstanceNormalization."""
    x, y = translation.value(node.inputs[0]), translation.value(node.outputs[0])
    scale, bias = translation.constant(_known(translation, node, 1)), translation.constant(_known(translation, node, 2))
    _instances(translation, x, x.dims[1], scale, bias, y, attribute(node, "epsilon", 1e-5))


def group_normalization(node: ir.Node, translation: Translation) -> None:
    """Writes a GroupNormalization: normalised groups, then a line for each channel."""
    x, y = translation.value(node.inputs[0]), translation.value(node.outputs[0])
    groups = attribute(node, "num_groups", 1)
    if groups < 1 or x.dims[1] % groups:
        raise NotTakenError(f"{x.dims[1]} channels in {groups} groups")
    scale, bias = _known(translation, node, 1), _known(translation, node, 2)
    if scale.size != x.dims[1]:  # opset 18: one number for each group
        scale, bias = np.repeat(scale, x.dims[1] // groups), np.repeat(bias, x.dims[1] // groups)
    made, scaled = translation.made(x.dims, x.dtype), translation.made(x.dims, x.dtype)
    ones, zeros = translation.constant(np.ones(groups)), translation.constant(np.zeros(groups))
    _instances(translation, x, groups, ones, zeros, made, attribute(node, "epsilon", 1e-5))
    each_channel = (1, -1) + (1,) * (len(x.dims) - 2)
    translation.add(Pointwise("mul", (made, translation.constant(scale.reshape(each_channel))), scaled))
    translation.add(Pointwise("add", (scaled, translation.constant(bias.reshape(each_channel))), y))


def _instances(
    translation: Translation, x: Value, channels: int, scale: Value, bias: Value, y: Value, epsilon: float
) -> None:
    dims = (x.dims[0], channels, num_elements(x.dims[1:]) // channels)
    flat, made = translation.made(dims, x.dtype), translation.made(dims, y.dtype)
    translation.add(Reshaped(x, flat))
    translation.add(Normalization("instance", flat, scale, bias, made, epsilon))
    translation.add(Reshaped(made, y))


def _known(translation: Translation, node: ir.Node, index: int) -> Array:
    found = translation.value(node.inputs[index]).constant
    if found is None:
        raise NotTakenError(f"input {index} is not a constant")
    return found.astype("float64")


def _known_or(translation: Translation, node: ir.Node, index: int, default: Array) -> Array:
    return default if translation.optional(node, index) is None else _known(translation, node, index)


PATTERNS = {
    "BatchNormalization": batch_normalization,
    "LayerNormalization": layer_normalization,
    "InstanceNormalization": instance_normalization,
    "GroupNormalization": group_normalization,
}
