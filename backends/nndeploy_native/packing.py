# SPDX-License-Identifier: Apache-2.0
"""Constants in the memory formats of the C templates (c/README.md defines each format)."""

import ml_dtypes
import numpy as np

from nndeploy_native.isa import Isa
from nndeploy_native.tensors import Array, padded


def pack_channels(values: Array | None, channels: int, isa: Isa) -> Array:
    """Returns one number a channel (bias, slopes) as whole vectors; zeros beyond, and where there are none."""
    packed = np.zeros(padded(channels, isa.lanes), np.float32)
    if values is not None:
        packed[: values.size] = values.reshape(-1)
    return packed


def pack_depthwise(weights: Array, isa: Isa) -> Array:
    """Returns (C, 1, kh, kw) as [C / c][kh][kw][c], the tail zero."""
    wide = _padded_outputs(weights, isa.lanes)[:, 0]
    return np.ascontiguousarray(wide.reshape(-1, isa.lanes, *wide.shape[1:]).transpose(0, 2, 3, 1))


def pack_grouped(weights: Array, isa: Isa) -> Array:
    """Returns (O, I / groups, kh, kw) as [O][kh][kw][I / groups] of O padded to whole vectors."""
    return np.ascontiguousarray(_padded_outputs(weights, isa.lanes).transpose(0, 2, 3, 1))


def pack_blocks(weights: Array, isa: Isa) -> Array:
    """Returns (O, I, kh, kw) as [O / c][kh][kw][I][c], the tail zero."""
    wide = _padded_outputs(weights, isa.lanes)
    return np.ascontiguousarray(wide.reshape(-1, isa.lanes, *wide.shape[1:]).transpose(0, 3, 4, 2, 1))


def panels(out_channels: int, isa: Isa) -> list[int]:
    """Returns the vectors of each panel of weights: `isa.panel` each; the last takes what is left.

    A single vector left over joins the panel before it where a panel is two: 5 vectors are 2 + 3.
    """
    blocks = isa.blocks(out_channels)
    rest = blocks % isa.panel
    last = min(blocks, isa.panel) if rest == 0 else rest + (isa.panel if isa.panel == 2 and blocks > 1 else 0)
    return [isa.panel] * ((blocks - last) // isa.panel) + [last]


def pack_products(weights: Array, isa: Isa, *, as_floats: bool = False) -> Array:
    """Returns (O, I, kh, kw) as panels [kh][kw][I / group][vectors of the panel][c][group], one after the other, flat.

    Where at most half of the last vector are output channels, they are there twice: two pixels share its sums.
    bfloat16 bits where that is the precision, unless `as_floats`: then a group is one channel.
    """
    group = 1 if as_floats else isa.group
    wide = _padded_outputs(weights, isa.lanes)
    half = isa.lanes // 2
    if 0 < weights.shape[0] % isa.lanes <= half:
        wide[-half:] = wide[-isa.lanes : -half]
    outputs, inputs, height, width = wide.shape
    grouped = np.zeros((outputs, padded(inputs, group), height, width), np.float32)
    grouped[:, :inputs] = wide
    ordered = grouped.reshape(outputs, -1, group, height, width).transpose(3, 4, 1, 0, 2)
    parts, at = [], 0
    for vectors in panels(weights.shape[0], isa):
        parts.append(ordered[:, :, :, at : at + vectors * isa.lanes].reshape(-1))
        at += vectors * isa.lanes
    packed = np.concatenate(parts)
    return packed if group == 1 else to_bf16(packed)


def to_bf16(array: Array) -> Array:
    """Returns the bits of the nearest bfloat16 numbers."""
    return np.ascontiguousarray(array.astype(ml_dtypes.bfloat16)).view(np.uint16)


def _padded_outputs(weights: Array, multiple: int) -> Array:
    wide = np.zeros((padded(weights.shape[0], multiple), *weights.shape[1:]), np.float32)
    wide[: weights.shape[0]] = weights
    return wide
