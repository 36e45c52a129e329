# SPDX-License-Identifier: Apache-2.0
"""encode-map: a number for each pixel -> the bytes of a grey PNG: masks, classes, depths."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nndeploy.errors import InputError
from nndeploy.files.image_files import bytes_from_pixels
from nndeploy.processors.arrays import Array, shape_text


@dataclass(frozen=True)
class EncodeMap:
    """Encodes (height, width) numbers as a grey PNG of 8 bits, or of 16 if `deep`; axes of one in front are taken off.

    Without `spread` they must be whole and fit, and are written as they are. With it the least becomes 0, the largest
    that of the format, and what lies between is rounded: for depths, of which the order counts.
    """

    name: ClassVar[str] = "encode-map"
    takes: ClassVar[tuple[str, ...]] = ("map",)
    gives: ClassVar[tuple[str, ...]] = ("data",)

    deep: bool = False
    spread: bool = False

    def __call__(self, values: object) -> bytes:
        """Returns the bytes."""
        numbers: Array = np.asarray(values)
        numbers = numbers.reshape(numbers.shape[-2:]) if numbers.size == np.prod(numbers.shape[-2:]) else numbers
        if numbers.ndim != 2 or not numbers.size or numbers.dtype.kind not in "fiub":
            raise InputError(f"a map must be numbers (height, width), this is {shape_text(values)}")
        if not np.isfinite(numbers).all():
            raise InputError("the map holds NaN or infinity")
        dtype = np.uint16 if self.deep else np.uint8
        most = np.iinfo(dtype).max
        if self.spread:
            wide = numbers.astype(np.float64)
            low, high = wide.min(), wide.max()
            numbers = np.rint((wide - low) * (most / (high - low or 1)))
        elif numbers.min() < 0 or numbers.max() > most or (numbers % 1).any():
            raise InputError(f"the map must hold whole numbers from 0 to {most}", hint="deep = true, or spread = true")
        return bytes_from_pixels(numbers.astype(dtype), "png")
