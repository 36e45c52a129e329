# SPDX-License-Identifier: Apache-2.0
"""turn: an image and how likely each angle is by which it is turned -> the image upright; for lines and pages."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from nndeploy.errors import InputError, UsageError
from nndeploy.processors.arrays import Image, image_from_value, vector_from_value
from nndeploy.processors.parameters import Fraction, Range

Angle = Annotated[int, Range(0, 270)]


@dataclass(frozen=True)
class Turn:
    """Turns an image to the left by the likeliest of `angles`, one for each class, where that is above `threshold`.

    Angles are degrees, in quarters of a turn.
    """

    name: ClassVar[str] = "turn"
    takes: ClassVar[tuple[str, ...]] = ("image", "probabilities")
    gives: ClassVar[tuple[str, ...]] = ("image",)

    angles: tuple[Angle, ...] = (0, 180)
    threshold: Fraction = 0.9

    def __post_init__(self) -> None:
        if not self.angles or any(angle % 90 for angle in self.angles):
            raise UsageError(f"angles must be 0, 90, 180 or 270, one for each class, are {list(self.angles)}")

    def __call__(self, image: Image, probabilities: object) -> Image:
        """Returns the image, the same one where it is upright."""
        image, likely = image_from_value(image), vector_from_value(probabilities, "probabilities")
        if len(likely) != len(self.angles):
            raise InputError(f"there are {len(self.angles)} angles, but {len(likely)} probabilities")
        best = int(likely.argmax())
        quarters = self.angles[best] // 90
        return np.rot90(image, quarters) if quarters and likely[best] > self.threshold else image
