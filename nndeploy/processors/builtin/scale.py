# SPDX-License-Identifier: Apache-2.0
"""scale: an image -> one side of a given length, its proportions kept; for models that take any size."""

from dataclasses import dataclass
from typing import ClassVar

from nndeploy.errors import UsageError
from nndeploy.processors.arrays import Image, Transform, image_from_value
from nndeploy.processors.known_shapes import Known
from nndeploy.processors.parameters import Side
from nndeploy.processors.resampling import Filter, check_filter, resized, transform_of


@dataclass(frozen=True)
class Scale:
    """Resizes an image so that one side has a length; the sides are then rounded to a `multiple`.

    One of `width`, `height`, `longest` (the longer side has it) and `longest-at-most` (nothing is enlarged) says which
    side. `width-at-most` caps the width afterwards.
    """

    name: ClassVar[str] = "scale"
    takes: ClassVar[tuple[str, ...]] = ("image",)
    gives: ClassVar[tuple[str, ...]] = ("image", "transform")

    width: Side | None = None
    height: Side | None = None
    longest: Side | None = None
    longest_at_most: Side | None = None
    width_at_most: Side | None = None
    multiple: Side = 1
    filter: Filter = "bilinear"
    antialias: bool = True

    def __post_init__(self) -> None:
        sides = (self.width, self.height, self.longest, self.longest_at_most)
        if sum(side is not None for side in sides) != 1:
            raise UsageError("needs one of width, height, longest and longest-at-most")
        check_filter(self.filter, antialias=self.antialias)

    def __call__(self, image: Image) -> tuple[Image, Transform]:
        """Returns the image and the transform from the one that came in."""
        image = image_from_value(image)
        height, width = image.shape[:2]
        factor = self._factor(width, height)
        size = (self._rounded(width * factor), self._rounded(height * factor))
        if self.width_at_most is not None:
            size = (min(size[0], self.width_at_most), size[1])
        return resized(image, size, self.filter, antialias=self.antialias), transform_of(image, size)

    def given_shapes(self, image: Known) -> tuple[Known, ...]:
        """Returns what is known of the image and the transform: a length that is a multiple stays what it is."""
        del image
        height, width = (side if side and side % self.multiple == 0 else None for side in (self.height, self.width))
        if width is not None and self.width_at_most is not None:
            width = min(width, self.width_at_most)
        return (height, width, 3), (6,)

    def _factor(self, width: int, height: int) -> float:
        if self.width is not None:
            return self.width / width
        if self.height is not None:
            return self.height / height
        if self.longest is not None:
            return self.longest / max(width, height)
        assert self.longest_at_most is not None
        return min(1.0, self.longest_at_most / max(width, height))

    def _rounded(self, length: float) -> int:
        return max(round(length / self.multiple), 1) * self.multiple
