# SPDX-License-Identifier: Apache-2.0
"""l2-normalise: vectors -> vectors of length 1."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nndeploy.processors.arrays import Array, floats_from_value


@dataclass(frozen=True)
class L2Normalise:
    """Gives vectors divided by their lengths along the last axis, as float32; a vector of zeros stays as it is."""

    name: ClassVar[str] = "l2-normalise"
    takes: ClassVar[tuple[str, ...]] = ("embedding",)
    gives: ClassVar[tuple[str, ...]] = ("embedding",)

    def __call__(self, embedding: object) -> Array:
        """Returns the vectors.

        Raises:
            InputError: they are no numbers.
        """
        vectors = np.atleast_1d(floats_from_value(embedding, "embedding")).astype(np.float64)
        lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
        return np.asarray(vectors / np.maximum(lengths, 1e-12), np.float32)
