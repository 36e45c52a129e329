# SPDX-License-Identifier: Apache-2.0
"""Normalisations that ONNX's evaluator gets wrong for some versions or types.

    BatchNormalization     is inference before opset 14 too, and has statistics for each element where spatial = 0
    GroupNormalization     has no implementation where types are not known before it runs
    InstanceNormalization  holds the squares of large numbers
    LayerNormalization     gives mean and inverse deviation in the type in which it computes them
    LpNormalization        takes absolute values, and holds the squares of large ones

Source: ONNX operators BatchNormalization (1-15), GroupNormalization (18, 21), InstanceNormalization (1-22),
LayerNormalization (17), LpNormalization (1, 22).
"""

from math import prod

import numpy as np
from onnx import helper

from nndeploy_reference.operator_table import Array, Node, front_axis, in_float32, operator


@operator("GroupNormalization", "InstanceNormalization")
def _group_norm(node: Node, x: Array, scale: Array, bias: Array) -> Array:
    """Version 18 has a scale for each group, later ones for each channel; a channel of an instance is a group."""
    wide = x.astype(np.float64)
    groups = node.num_groups or x.shape[1]
    per_group = x.shape[1] // groups if groups else 0
    rows = wide.reshape(x.shape[0], groups, per_group * prod(x.shape[2:]))
    centred = rows - rows.mean(2, keepdims=True)
    rows = centred / np.sqrt((centred * centred).mean(2, keepdims=True) + node.epsilon)
    if node.version < 21:
        scale, bias = np.repeat(scale, per_group), np.repeat(bias, per_group)
    scale, bias = (part.reshape(-1, *(1,) * (x.ndim - 2)).astype(np.float64) for part in (scale, bias))
    return (rows.reshape(x.shape) * scale + bias).astype(x.dtype)


@operator("BatchNormalization", before=14)
@in_float32
def _batch_norm(node: Node, x: Array, scale: Array, bias: Array, mean: Array, variance: Array) -> Array:
    if node.num_outputs > 1 or (node.version < 7 and not node.is_test):
        raise ValueError("BatchNormalization before opset 14 is not trained here")
    parts = [scale, bias, mean, variance]
    if node.spatial != 0:
        parts = [part.reshape(-1, *(1,) * (x.ndim - 2)) if x.ndim > 1 else part for part in parts]
    scale, bias, mean, variance = parts
    return ((x - mean) / np.sqrt(variance + node.epsilon) * scale + bias).astype(x.dtype)


@operator("LayerNormalization")
def _layer_norm(node: Node, x: Array, scale: Array, bias: Array = None) -> tuple[Array, ...]:
    dtype = helper.tensor_dtype_to_np_dtype(node.stash_type)
    wide = np.float64 if dtype.itemsize > 4 or x.dtype == np.float64 else np.float32
    axes = tuple(range(front_axis(node.axis, x.ndim), x.ndim))
    centred = x.astype(wide)
    mean = centred.mean(axes, keepdims=True)
    centred = centred - mean
    inverse = 1 / np.sqrt((centred * centred).mean(axes, keepdims=True) + wide(node.epsilon))
    y = centred * inverse * scale.astype(wide)
    y = y if bias is None else y + bias.astype(wide)
    return y.astype(x.dtype), mean.astype(dtype), inverse.astype(dtype)


@operator("LpNormalization")
def _lp_norm(node: Node, x: Array) -> Array:
    wide = x.astype(np.float64)
    size = (np.abs(wide) ** node.p).sum(node.axis, keepdims=True) ** (1 / node.p)
    return np.where(size == 0, 0, wide / np.where(size == 0, 1, size)).astype(x.dtype)
