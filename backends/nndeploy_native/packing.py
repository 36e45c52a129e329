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


def grouped_blocks(weights: Array, groups: int, isa: Isa) -> tuple[int, list[int]]:
    """Returns how many input blocks hold all groups of any output block, and where they begin for each of these.

    `weights` are (O, I / groups, kh, kw).
    """
    group_out, group_in = weights.shape[0] // groups, weights.shape[1]
    begins, ends = [], []
    for first in range(0, weights.shape[0], isa.lanes):
        last = min(first + isa.lanes, weights.shape[0]) - 1
        begins.append(first // group_out * group_in // isa.lanes)
        ends.append(isa.blocks((last // group_out + 1) * group_in))
    span = max(end - begin for begin, end in zip(begins, ends, strict=True))
    return span, [min(begin, isa.blocks(group_in * groups) - span) for begin in begins]


def pack_grouped(weights: Array, groups: int, isa: Isa) -> Array:
    """Returns (O, I / groups, kh, kw) as dense panels [O / c] of the blocks of `grouped_blocks`, zeros between."""
    outputs, group_in, height, width = weights.shape
    dense = np.zeros((outputs, group_in * groups, height, width), np.float32)
    for number, of_one in enumerate(weights):
        begin = number // (outputs // groups) * group_in
        dense[number, begin : begin + group_in] = of_one
    span, begins = grouped_blocks(weights, groups, isa)
    parts = []
    for block, begin in enumerate(begins):
        channels = slice(begin * isa.lanes, (begin + span) * isa.lanes)
        part = pack_products(dense[block * isa.lanes : (block + 1) * isa.lanes, channels], isa)
        parts.append(np.pad(part, (0, span * isa.lanes * height * width * isa.lanes - part.size)))
    return np.concatenate(parts)


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


def pack_gates(weights: Array, isa: Isa) -> Array:
    """Returns recurrent weights (D, 4 H, H) of four gates as [D][H / c][H][4][c], the tail zero."""
    directions, _, hidden = weights.shape
    wide = np.zeros((directions, 4, padded(hidden, isa.lanes), hidden), np.float32)
    wide[:, :, :hidden] = weights.reshape(directions, 4, hidden, hidden)
    blocks = wide.reshape(directions, 4, -1, isa.lanes, hidden)
    return np.ascontiguousarray(blocks.transpose(0, 2, 4, 1, 3))


def to_bf16(array: Array) -> Array:
    """Returns the bits of the nearest bfloat16 numbers."""
    return np.ascontiguousarray(array.astype(ml_dtypes.bfloat16)).view(np.uint16)


def _padded_outputs(weights: Array, multiple: int) -> Array:
    wide = np.zeros((padded(weights.shape[0], multiple), *weights.shape[1:]), np.float32)
    wide[: weights.shape[0]] = weights
    return wide
