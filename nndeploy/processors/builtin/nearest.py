# SPDX-License-Identifier: Apache-2.0
"""nearest: a vector -> the texts of a file whose vectors point most in its direction."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from nndeploy.errors import InputError
from nndeploy.processors.arrays import vector_from_value
from nndeploy.processors.parameters import Count
from nndeploy.processors.vector_lines import VectorLines, unit_vector


@dataclass(frozen=True)
class Nearest:
    """Gives the `count` texts of a file whose embeddings are most like this one, and how much: their cosines.

    `among` is what `run` wrote with `fields = ["text", "embedding"]` in the sink of a pipeline of the same model. The
    best come first, of equal ones that of the earlier line.
    """

    name: ClassVar[str] = "nearest"
    takes: ClassVar[tuple[str, ...]] = ("embedding",)
    gives: ClassVar[tuple[str, ...]] = ("nearest", "cosines")

    among: VectorLines
    count: Count = 5

    def __call__(self, embedding: object) -> tuple[list[str], npt.NDArray[np.float32]]:
        """Returns texts, and a number from -1 to 1 for each."""
        vector, among = vector_from_value(embedding, "the embedding"), self.among
        if len(vector) != among.vectors.shape[1]:
            raise InputError(f"the embedding has {len(vector)} numbers, those of the file {among.vectors.shape[1]}")
        try:
            cosines = among.vectors @ unit_vector(vector)
        except ValueError as err:
            raise InputError(f"the embedding {err}") from err
        best = np.argsort(-cosines, kind="stable")[: self.count]
        return [among.texts[i] for i in best], cosines[best]
