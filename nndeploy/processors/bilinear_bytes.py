# SPDX-License-Identifier: Apache-2.0
"""An image of bytes -> another size, each pixel from the two nearest to its middle along each axis, in fixed point.

Source: OpenCV, modules/imgproc/src/resize.cpp: INTER_LINEAR of 8-bit images. A weight has 11 bits. Rows
are resized first and keep 7 of them, a product with the weight of a row keeps 2, and the sum is rounded.

Law: the bytes are those that OpenCV gives.
"""

import numpy as np
import numpy.typing as npt

from nndeploy.processors.arrays import Image

ONE = 1 << 11
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


def resized_bytes(image: Image, width: int, height: int) -> Image:
    """Returns the image (H, W, C) as (height, width, C)."""
    old_height, old_width, channels = image.shape
    flat = image.reshape(old_height, old_width * channels)
    above, down = _places(height, old_height)
    left, across = _places(width, old_width)
    across[(left < 0) | (left >= old_width - 1)] = 0  # columns beyond the edge; rows keep their shares
    columns = tuple(_of_channels(np.clip(left + k, 0, old_width - 1), channels) for k in (0, 1))
    weights = tuple(np.repeat((one / 16).astype(np.float32), channels) for one in _weights(across))
    rows = tuple(np.clip(above + k, 0, old_height - 1) for k in (0, 1))
    if height < old_height:
        parts = tuple(_wide(flat[one], columns, weights) for one in rows)
    else:  # a row is used several times
        wide = _wide(flat, columns, weights)
        parts = tuple(wide[one] for one in rows)
    for part, weight in zip(parts, _weights(down), strict=True):
        part *= weight[:, np.newaxis]
        part >>= 16
    total, other = parts
    total += other
    total += 2
    total >>= 2
    return total.astype(np.uint8).reshape(height, width, channels)


def _places(count: int, old: int) -> tuple[Ints, Floats]:
    """Returns the number of the pixel before the middle of each of `count`, and how far behind it that lies."""
    middles = ((np.arange(count) + 0.5) * (old / count) - 0.5).astype(np.float32)
    before = np.floor(middles)
    return before.astype(np.int64), middles - before


def _weights(share: Floats) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Returns those of the first and the second of two pixels, ONE together."""
    one, other = (np.rint(part * np.float32(ONE)).astype(np.int32) for part in (1 - share, share))
    return one, other


def _of_channels(columns: Ints, channels: int) -> Ints:
    """Returns where the bytes of pixels lie in a row."""
    return (columns[:, np.newaxis] * channels + np.arange(channels)).ravel()


def _wide(rows: Image, columns: tuple[Ints, ...], weights: tuple[Floats, ...]) -> npt.NDArray[np.int32]:
    """Returns rows (N, bytes) in their new width, times 128; below 2^24 float32 is as exact as whole numbers."""
    one, other = (
        np.multiply(np.take(rows, column, axis=1), weight, dtype=np.float32)
        for column, weight in zip(columns, weights, strict=True)
    )
    one += other
    return one.astype(np.int32)
