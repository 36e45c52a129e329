# SPDX-License-Identifier: Apache-2.0
"""sigmoid: scores of a model -> probabilities, each for itself."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from nndeploy.processors.arrays import floats_from_value


@dataclass(frozen=True)
class Sigmoid:
    """Gives 1 / (1 + exp(-score)), without overflow."""

    name: ClassVar[str] = "sigmoid"
    takes: ClassVar[tuple[str, ...]] = ("scores",)
    gives: ClassVar[tuple[str, ...]] = ("probabilities",)

    def __call__(self, scores: object) -> npt.NDArray[np.float32]:
        """Returns float32 of the same shape."""
        return sigmoid(floats_from_value(scores, "scores"))


def sigmoid(scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Returns 1 / (1 + exp(-score)) of each score."""
    small = np.exp(-np.abs(scores))
    found: npt.NDArray[np.float32] = np.where(scores >= 0, 1 / (1 + small), small / (1 + small)).astype(np.float32)
    return found
