# SPDX-License-Identifier: Apache-2.0
"""softmax: scores of a model -> probabilities along one axis."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt

from nndeploy.errors import InputError
from nndeploy.processors.arrays import floats_from_value, shape_text
from nndeploy.processors.parameters import Range


@dataclass(frozen=True)
class Softmax:
    """Gives exp(score) / sum(exp(score)) along `axis`, without overflow."""

    name: ClassVar[str] = "softmax"
    takes: ClassVar[tuple[str, ...]] = ("scores",)
    gives: ClassVar[tuple[str, ...]] = ("probabilities",)

    axis: Annotated[int, Range(-8, 7)] = -1

    def __call__(self, scores: object) -> npt.NDArray[np.float32]:
        """Returns float32 of the same shape."""
        array = floats_from_value(scores, "scores")
        if not -array.ndim <= self.axis < array.ndim or not array.size:
            raise InputError(f"scores {shape_text(array)} have no axis {self.axis} to sum over")
        if not np.isfinite(array).all():
            raise InputError("scores hold NaN or infinity")
        powers = np.exp(array - array.max(axis=self.axis, keepdims=True))
        found: npt.NDArray[np.float32] = powers / powers.sum(axis=self.axis, keepdims=True)
        return found
