# SPDX-License-Identifier: Apache-2.0
"""Numbers at each place of the image that a model saw -> at each pixel of the image that came in.

A map may be coarser than the image that the model saw: one number for `stride` x `stride` of its pixels. A number is
that of the middle of what it covers; between these it is linear, beyond the outer ones it stays as it is, as
`torch.nn.functional.interpolate` has it (bilinear, align_corners=False).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nndeploy.processors.arrays import Array, Transform

_Places = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Window:
    """Pixels of an image, from the first to before the last, down and across."""

    top: int
    bottom: int
    left: int
    right: int


def bilinear(values: Array, transform: Transform, stride: int, window: Window) -> npt.NDArray[np.float32]:
    """Returns the numbers of maps (..., height, width) at the pixels of a window, (..., rows, columns)."""
    y, x = _places(transform, stride, window)
    rows, below, down = _between(y, values.shape[-2])
    columns, right, across = _between(x, values.shape[-1])
    between = values[..., rows, :] * (1 - down[:, None]) + values[..., below, :] * down[:, None]
    found = between[..., columns] * (1 - across) + between[..., right] * across
    return found.astype(np.float32)


def nearest(values: Array, transform: Transform, stride: int, window: Window) -> Array:
    """Returns of maps (..., height, width) those numbers that cover the middles of the pixels of a window."""
    y, x = (np.floor(place + 0.5).astype(np.int64) for place in _places(transform, stride, window))
    rows, columns = np.clip(y, 0, values.shape[-2] - 1), np.clip(x, 0, values.shape[-1] - 1)
    found: Array = values[..., rows[:, None], columns]
    return found


def _places(transform: Transform, stride: int, window: Window) -> tuple[_Places, _Places]:
    """Returns where the middles of pixels lie in a map, in numbers of which the first is at 0: down and across."""
    scale, offset = transform[:2], transform[2:4]
    x, y = np.arange(window.left, window.right), np.arange(window.top, window.bottom)
    return ((y + 0.5) * scale[1] + offset[1]) / stride - 0.5, ((x + 0.5) * scale[0] + offset[0]) / stride - 0.5


def _between(
    places: _Places, count: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Returns the numbers on both sides of each place, and the share of the second."""
    within = np.clip(places, 0, count - 1)
    first = np.floor(within).astype(np.int64)
    return first, np.minimum(first + 1, count - 1), (within - first).astype(np.float32)
