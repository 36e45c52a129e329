# SPDX-License-Identifier: Apache-2.0
"""map-to-image: numbers at each place of the image that a model saw -> at each pixel of the image that came in."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from nndeploy.errors import InputError, UsageError
from nndeploy.processors.arrays import Array, Transform, floats_from_value, shape_text, transform_from_value
from nndeploy.processors.map_resampling import Window, bilinear, nearest
from nndeploy.processors.parameters import Range

MAX_NUMBERS = 1 << 28


@dataclass(frozen=True)
class MapToImage:
    """Undoes a transform on maps (..., height, width): depths, or the scores of classes before `class-map`.

    A number of a map stands for `stride` x `stride` pixels of the image that the model saw; where a map is `whole`, it
    covers the image that came in, whatever its size. `nearest` is for numbers between which there is nothing, as those
    of classes.
    """

    name: ClassVar[str] = "map-to-image"
    takes: ClassVar[tuple[str, ...]] = ("map", "transform")
    gives: ClassVar[tuple[str, ...]] = ("map",)

    stride: Annotated[int, Range(1, 64)] = 1
    filter: Literal["bilinear", "nearest"] = "bilinear"
    whole: bool = False

    def __post_init__(self) -> None:
        if self.whole and self.stride != 1:
            raise UsageError("stride and whole exclude each other")

    def __call__(self, values: object, transform: Transform) -> Array:
        """Returns maps of the size of the image that came in, float32 or, of the nearest, as they were."""
        maps = floats_from_value(values, "the map") if self.filter == "bilinear" else np.asarray(values)
        if maps.ndim < 2 or not maps.size or maps.dtype.kind not in "fiub":
            raise InputError(f"a map must be numbers (..., height, width), this is {shape_text(values)}")
        transform = transform_from_value(transform)
        width, height = (int(size) for size in transform[4:])
        if maps.size // (maps.shape[-1] * maps.shape[-2]) * width * height > MAX_NUMBERS:
            raise InputError(f"{shape_text(values)} at {width} x {height} pixels has more than {MAX_NUMBERS} numbers")
        if self.whole:
            transform = np.array([maps.shape[-1] / width, maps.shape[-2] / height, 0, 0, width, height], np.float64)
        sampled = bilinear if self.filter == "bilinear" else nearest
        return sampled(maps, transform, self.stride, Window(0, height, 0, width))
