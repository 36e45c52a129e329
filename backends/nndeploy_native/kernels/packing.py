# SPDX-License-Identifier: Apache-2.0
"""Weights and activations in the memory formats of the C templates; ../c/README.md defines each format.

Law: `planar_from_blocked(blocked_from_planar(x)) == x` for every number of channels.
"""

import numpy as np
import numpy.typing as npt

from nndeploy_native.kernels.isa import Isa

Floats = npt.NDArray[np.float32]


def blocked_from_planar(x: Floats, isa: Isa) -> Floats:
    """Returns (N, C, H, W) as (N, C/c, H, W, c), the channel tail zero."""
    n, channels, height, width = x.shape
    padded = np.zeros((n, isa.blocks(channels) * isa.lanes, height, width), np.float32)
    padded[:, :channels] = x
    return np.ascontiguousarray(padded.reshape(n, -1, isa.lanes, height, width).transpose(0, 1, 3, 4, 2))


def planar_from_blocked(x: Floats, channels: int) -> Floats:
    """Returns (N, C/c, H, W, c) as (N, C, H, W)."""
    n, blocks, height, width, lanes = x.shape
    return np.ascontiguousarray(x.transpose(0, 1, 4, 2, 3).reshape(n, blocks * lanes, height, width)[:, :channels])


def pack_channels(values: Floats, isa: Isa) -> Floats:
    """Returns one value a channel (bias, slopes) as whole vectors, the tail zero."""
    packed = np.zeros(isa.blocks(len(values)) * isa.lanes, np.float32)
    packed[: len(values)] = values
    return packed


def pack_depthwise(weights: Floats, isa: Isa) -> Floats:
    """Returns (C, 1, kh, kw) as (C/c, kh, kw, c)."""
    channels, _, height, width = weights.shape
    packed: Floats = blocked_from_planar(weights.reshape(1, channels, height, width), isa)[0]
    return packed


def panels(out_channels: int, isa: Isa) -> list[int]:
    """Returns the vectors of each panel of weights: `isa.panel` each; the last takes what is left.

    A single vector left over joins the panel before it where a panel is two: 5 vectors are 2 + 3.
    """
    blocks = isa.blocks(out_channels)
    rest = blocks % isa.panel
    last = min(blocks, isa.panel) if rest == 0 else rest + (isa.panel if isa.panel == 2 and blocks > 1 else 0)
    return [isa.panel] * ((blocks - last) // isa.panel) + [last]


def pack_pointwise(weights: Floats, isa: Isa) -> Floats:
    """Returns (O, I) as panels [I][vectors of the panel][c], one after the other, flat."""
    out_channels, in_channels = weights.shape
    padded = np.zeros((isa.blocks(out_channels) * isa.lanes, in_channels), np.float32)
    padded[:out_channels] = weights
    parts, at = [], 0
    for vectors in panels(out_channels, isa):
        parts.append(padded[at : at + vectors * isa.lanes].T.ravel())
        at += vectors * isa.lanes
    return np.concatenate(parts)


def pack_convolution(weights: Floats, isa: Isa) -> Floats:
    """Returns (O, I, kh, kw) as panels [kh][kw][I][vectors of the panel][c], one after the other, flat."""
    return pack_pointwise(weights.transpose(0, 2, 3, 1).reshape(len(weights), -1), isa)
