# SPDX-License-Identifier: Apache-2.0
"""letterbox: an image -> the size that a model wants, its proportions kept, the rest filled; and the transform back."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from nndeploy.processors.arrays import Image, Transform, image_from_value
from nndeploy.processors.known_shapes import Known
from nndeploy.processors.parameters import Range, Side
from nndeploy.processors.resampling import Filter, check_filter, resized, transform_of

Channel = Annotated[int, Range(0, 255)]


@dataclass(frozen=True)
class Letterbox:
    """Resizes an image to fit into `width` x `height` with its proportions kept; `fill` (RGB) is what is left over."""

    name: ClassVar[str] = "letterbox"
    takes: ClassVar[tuple[str, ...]] = ("image",)
    gives: ClassVar[tuple[str, ...]] = ("image", "transform")

    width: Side
    height: Side
    fill: tuple[Channel, Channel, Channel] = (114, 114, 114)
    place: Literal["centre", "top-left"] = "centre"
    enlarge: bool = True
    filter: Filter = "bilinear"
    antialias: bool = True

    def __post_init__(self) -> None:
        check_filter(self.filter, antialias=self.antialias)

    def __call__(self, image: Image) -> tuple[Image, Transform]:
        """Returns the image and the transform from the one that came in."""
        image = image_from_value(image)
        width, height = self._size_of(image)
        left, top = ((self.width - width) // 2, (self.height - height) // 2) if self.place == "centre" else (0, 0)
        canvas = np.empty((self.height, self.width, 3), np.uint8)
        canvas[:] = self.fill
        canvas[top : top + height, left : left + width] = resized(
            image, (width, height), self.filter, antialias=self.antialias
        )
        return canvas, transform_of(image, (width, height), (left, top))

    def given_shapes(self, image: Known) -> tuple[Known, ...]:
        """Returns what is known of the image and the transform."""
        del image
        return (self.height, self.width, 3), (6,)

    def _size_of(self, image: Image) -> tuple[int, int]:
        height, width = image.shape[:2]
        scale = min(self.width / width, self.height / height)
        if not self.enlarge:
            scale = min(scale, 1.0)
        return (
            min(max(round(width * scale), 1), self.width),
            min(max(round(height * scale), 1), self.height),
        )
