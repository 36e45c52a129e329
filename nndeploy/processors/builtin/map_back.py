# SPDX-License-Identifier: Apache-2.0
"""map-back: boxes, quadrilaterals or points in the image that a model saw -> in the image that came in."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nndeploy.errors import InputError
from nndeploy.processors.arrays import Array, Transform, floats_from_value, shape_text, transform_from_value


@dataclass(frozen=True)
class MapBack:
    """Undoes a transform on boxes, or anything whose last axis is x, y, x, y, ...; `clip` keeps them in the image."""

    name: ClassVar[str] = "map-back"
    takes: ClassVar[tuple[str, ...]] = ("boxes", "transform")
    gives: ClassVar[tuple[str, ...]] = ("boxes",)

    clip: bool = True

    def __call__(self, boxes: Array, transform: Transform) -> Array:
        """Returns float32 of the same shape."""
        points = floats_from_value(boxes, "boxes")
        scale, offset, size = transform_from_value(transform).reshape(3, 2)
        if points.size == 0:
            return points
        if points.ndim == 0 or points.shape[-1] % 2:
            raise InputError(f"the last axis must be x, y, ..., this is {shape_text(points)}")
        pairs = (points.reshape(-1, 2).astype(np.float64) - offset) / scale
        if self.clip:
            pairs = np.clip(pairs, 0, size)
        return pairs.astype(np.float32).reshape(points.shape)
