# SPDX-License-Identifier: Apache-2.0
"""keypoints: the numbers of a pose beside each box -> its points and how sure each of them is."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt

from nndeploy.errors import InputError
from nndeploy.processors.arrays import Points, floats_from_value, shape_text
from nndeploy.processors.parameters import Range


@dataclass(frozen=True)
class Keypoints:
    """Reads K points of x, y and, with `values` 3, how sure it is that one can be seen, of each of N boxes.

    Points are (N, K, 2), in pixels of the image that the model saw; without a third number all are sure.
    """

    name: ClassVar[str] = "keypoints"
    takes: ClassVar[tuple[str, ...]] = ("rest",)
    gives: ClassVar[tuple[str, ...]] = ("keypoints", "visible")

    values: Annotated[int, Range(2, 3)] = 3

    def __call__(self, rest: object) -> tuple[Points, npt.NDArray[np.float32]]:
        """Returns points, and (N, K) numbers from 0 to 1."""
        rows = floats_from_value(rest, "the rest")
        if rows.ndim != 2 or not rows.shape[1] or rows.shape[1] % self.values:
            raise InputError(f"the rest must have {self.values} columns for each point, is {shape_text(rest)}")
        points = rows.reshape(len(rows), rows.shape[1] // self.values, self.values)
        visible = points[..., 2] if self.values == 3 else np.ones(points.shape[:2], np.float32)
        return points[..., :2], visible
