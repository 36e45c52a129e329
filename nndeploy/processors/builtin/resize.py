# SPDX-License-Identifier: Apache-2.0
"""resize: an image -> exactly the size that a model wants, and the transform back."""

from dataclasses import dataclass
from typing import ClassVar

from nndeploy.processors.arrays import Image, Transform, image_from_value
from nndeploy.processors.known_shapes import Known
from nndeploy.processors.parameters import Side
from nndeploy.processors.resampling import Filter, check_filter, resized, transform_of


@dataclass(frozen=True)
class Resize:
    """Resizes an image to `width` and `height`, whatever becomes of its proportions."""

    name: ClassVar[str] = "resize"
    takes: ClassVar[tuple[str, ...]] = ("image",)
    gives: ClassVar[tuple[str, ...]] = ("image", "transform")

    width: Side
    height: Side
    filter: Filter = "bilinear"
    antialias: bool = True

    def __post_init__(self) -> None:
        check_filter(self.filter, antialias=self.antialias)

    def __call__(self, image: Image) -> tuple[Image, Transform]:
        """Returns the image and the transform from the one that came in."""
        image = image_from_value(image)
        size = (self.width, self.height)
        return resized(image, size, self.filter, antialias=self.antialias), transform_of(image, size)

    def given_shapes(self, image: Known) -> tuple[Known, ...]:
        """Returns what is known of the image and the transform."""
        del image
        return (self.height, self.width, 3), (6,)
