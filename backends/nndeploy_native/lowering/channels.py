# SPDX-License-Identifier: Apache-2.0
"""Finds that moved elements are whole channels of an image: what channel shuffles, splits and slices come to.

Before: Reshape (N, 2, C/2, H, W) -> Transpose (0, 2, 1, 3, 4) -> Reshape (N, C, H, W)
After:  channel j of the result is channel `channels[j]`, which a blocked tensor gives without leaving its layout.
"""

import numpy as np

from nndeploy_native.tensors import Array, Shape, fixed_shape


def whole_channels(places: Array, base: Shape) -> tuple[int, ...] | None:
    """Returns which channel of the base (N, B, H, W) each of `places` (N, C, H, W) is; None where one is none."""
    if places.ndim != 4 or len(base) != 4 or (places.shape[0], *places.shape[2:]) != (base[0], *base[2:]):
        return None
    batch, of_base, height, width = fixed_shape(base)
    pixels = height * width
    channels = places[0, :, 0, 0] // pixels
    if np.any(channels < 0):
        return None
    images = np.arange(batch)[:, None, None] * (of_base * pixels)
    wanted = images + channels[None, :, None] * pixels + np.arange(pixels)[None, None, :]
    if not np.array_equal(places.reshape(batch, -1, pixels), wanted):
        return None
    return tuple(int(channel) for channel in channels)
