# SPDX-License-Identifier: Apache-2.0
"""masks: the numbers of a mask beside each box -> which thing covers each pixel of the image that came in."""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt

from nndeploy.errors import InputError
from nndeploy.processors.arrays import (
    Array,
    Transform,
    floats_from_value,
    rows_from_value,
    shape_text,
    transform_from_value,
    without_batch,
)
from nndeploy.processors.map_resampling import Window, bilinear
from nndeploy.processors.parameters import Range

MOST = 255
"""Things that a pixel of 8 bits can tell apart, 0 being none."""


@dataclass(frozen=True)
class Masks:
    """Makes one map of K numbers of each of N boxes, and K maps `protos`: for each pixel the number of its thing, or 0.

    A mask is where the sum of the maps, each times its number, is above 0, within its box, as YOLO's models of segments
    mean it. Boxes are in pixels of the image that came in, the best first: 1 is the first, and it lies on top. A number
    of `protos` stands for `stride` x `stride` pixels of the image that the model saw.
    """

    name: ClassVar[str] = "masks"
    takes: ClassVar[tuple[str, ...]] = ("rest", "protos", "boxes", "transform")
    gives: ClassVar[tuple[str, ...]] = ("masks",)

    stride: Annotated[int, Range(1, 64)] = 4

    def __call__(self, rest: object, protos: object, boxes: object, transform: Transform) -> npt.NDArray[np.uint8]:
        """Returns (height, width) of the image that came in."""
        maps, corners = without_batch(floats_from_value(protos, "protos"), 3), rows_from_value(boxes, 4, "boxes")
        shares, transform = floats_from_value(rest, "the rest"), transform_from_value(transform)
        if maps.ndim != 3 or not maps.size or shares.shape != (len(corners), len(maps)):
            told = f"{len(corners)} boxes and protos {shape_text(protos)} need a number of each box for each map"
            raise InputError(f"{told}, the rest is {shape_text(rest)}")
        if len(corners) > MOST:
            raise InputError(f"of at most {MOST} boxes masks are made, there are {len(corners)}")
        width, height = (int(size) for size in transform[4:])
        found = np.zeros((height, width), np.uint8)
        for number in range(len(corners), 0, -1):
            window = _pixels_of(corners[number - 1], width, height)
            mask = np.tensordot(shares[number - 1], maps, 1)
            covered = bilinear(mask, transform, self.stride, window) > 0
            found[window.top : window.bottom, window.left : window.right][covered] = number
        return found


def _pixels_of(box: Array, width: int, height: int) -> Window:
    """Returns the pixels whose upper left corner lies in a box."""
    if not np.isfinite(box).all():
        raise InputError("boxes hold NaN or infinity")
    left, top, right, bottom = (math.ceil(max(edge, 0)) for edge in box.tolist())
    return Window(min(top, height), min(max(top, bottom), height), min(left, width), min(max(left, right), width))
