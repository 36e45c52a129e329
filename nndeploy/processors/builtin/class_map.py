# SPDX-License-Identifier: Apache-2.0
"""class-map: the scores of all classes at each place -> the number of the best class at each place."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt

from nndeploy.errors import InputError
from nndeploy.processors.arrays import floats_from_value, shape_text
from nndeploy.processors.parameters import Range


@dataclass(frozen=True)
class ClassMap:
    """Gives for each place the number of its best class along `axis`, of equal ones the first: what segmenters mean."""

    name: ClassVar[str] = "class-map"
    takes: ClassVar[tuple[str, ...]] = ("scores",)
    gives: ClassVar[tuple[str, ...]] = ("classes",)

    axis: Annotated[int, Range(-8, 7)] = 0

    def __call__(self, scores: object) -> npt.NDArray[np.int64]:
        """Returns int64 without the axis."""
        array = floats_from_value(scores, "scores")
        if not -array.ndim <= self.axis < array.ndim or not array.shape[self.axis]:
            raise InputError(f"scores {shape_text(array)} have no classes along axis {self.axis}")
        found: npt.NDArray[np.int64] = array.argmax(axis=self.axis).astype(np.int64)
        return found
