# SPDX-License-Identifier: Apache-2.0
"""normalise: pixels or features -> float32, (value / divide-by - mean) / std, channel by channel."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt

from nndeploy.errors import InputError, UsageError
from nndeploy.processors.arrays import Array, shape_text
from nndeploy.processors.known_shapes import Known
from nndeploy.processors.parameters import Range


@dataclass(frozen=True)
class Normalise:
    """Gives (value / `divide-by` - `mean`) / `std` as float32 of the same shape; one number goes for all channels.

    Channels are the last axis of an image (H, W, C) or of frames of features (N, C); the numbers are in their order,
    which is RGB in an image unless a step before changed it.
    """

    name: ClassVar[str] = "normalise"
    takes: ClassVar[tuple[str, ...]] = ("image",)
    gives: ClassVar[tuple[str, ...]] = ("tensor",)

    mean: tuple[float, ...] = (0.0,)
    std: tuple[Annotated[float, Range(1e-6, None)], ...] = (1.0,)
    divide_by: Annotated[float, Range(1e-6, None)] = 1.0

    def __post_init__(self) -> None:
        for key, numbers in (("mean", self.mean), ("std", self.std)):
            if not numbers:
                raise UsageError(f"{key} is an empty list", hint="give one number, or one for each channel")

    def __call__(self, image: Array) -> npt.NDArray[np.float32]:
        """Returns the numbers."""
        if not isinstance(image, np.ndarray) or image.ndim not in (2, 3) or image.dtype.kind not in "uif":
            raise InputError(f"what is normalised is (H, W, C) or (N, C) of numbers, this is {shape_text(image)}")
        scale = 1 / (np.asarray(self.std, np.float64) * self.divide_by)
        shift = -np.asarray(self.mean, np.float64) / np.asarray(self.std, np.float64)
        for key, numbers in (("mean", self.mean), ("std", self.std)):
            if len(numbers) not in (1, image.shape[-1]):
                what = "image" if image.ndim == 3 else "frames"
                raise InputError(f"{key} has {len(numbers)} numbers, the {what} {image.shape[-1]} channels")
        found = np.multiply(image, scale.astype(np.float32), dtype=np.float32)
        found += shift.astype(np.float32)
        return found

    def given_shapes(self, image: Known) -> tuple[Known]:
        """Returns what is known of the numbers."""
        return (image,)
