# SPDX-License-Identifier: Apache-2.0
"""pad: (H, W, C) -> the same filled up at the right and below; for models that want a least size."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nndeploy.errors import InputError
from nndeploy.processors.arrays import Array, shape_text
from nndeploy.processors.known_shapes import Known, sizes_of
from nndeploy.processors.parameters import Side


@dataclass(frozen=True)
class Pad:
    """Fills up at the right to `width` and below to `height`; what is as large already stays as it is.

    `fill` is the number that it is filled up with: behind `normalise` 0 is the mean of the pixels.
    """

    name: ClassVar[str] = "pad"
    takes: ClassVar[tuple[str, ...]] = ("tensor",)
    gives: ClassVar[tuple[str, ...]] = ("tensor",)

    width: Side = 1
    height: Side = 1
    fill: float = 0.0

    def __call__(self, tensor: Array) -> Array:
        """Returns the tensor, of the same type."""
        if not isinstance(tensor, np.ndarray) or tensor.ndim != 3 or tensor.dtype.kind not in "uif":
            raise InputError(f"what is padded is (H, W, C) of numbers, this is {shape_text(tensor)}")
        below, right = max(self.height - tensor.shape[0], 0), max(self.width - tensor.shape[1], 0)
        if not below and not right:
            return tensor
        return np.pad(tensor, ((0, below), (0, right), (0, 0)), constant_values=tensor.dtype.type(self.fill))

    def given_shapes(self, tensor: Known) -> tuple[Known]:
        """Returns what is known of the tensor."""
        height, width, channels = sizes_of(tensor, 3)
        return ((height and max(height, self.height), width and max(width, self.width), channels),)
