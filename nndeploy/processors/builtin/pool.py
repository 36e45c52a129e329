# SPDX-License-Identifier: Apache-2.0
"""pool: a vector for each token of a text -> one vector for the text."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from nndeploy.errors import InputError
from nndeploy.processors.arrays import Array, floats_from_value, shape_text, tokens_from_value, without_batch


@dataclass(frozen=True)
class Pool:
    """Gives the `mean` of the vectors of all tokens, or the one of the first (`cls`) or `last` token, as float32 (C,).

    Vectors are (1, length, C) or (length, C). Tokens count where `attention_mask` is 1; padding does not.
    """

    name: ClassVar[str] = "pool"
    takes: ClassVar[tuple[str, ...]] = ("last_hidden_state", "attention_mask")
    gives: ClassVar[tuple[str, ...]] = ("embedding",)

    by: Literal["mean", "cls", "last"] = "mean"

    def __call__(self, last_hidden_state: object, attention_mask: object) -> Array:
        """Returns the vector.

        Raises:
            InputError: the shapes do not fit each other, or no token counts.
        """
        vectors = without_batch(floats_from_value(last_hidden_state, "last_hidden_state"), 2)
        counts = tokens_from_value(attention_mask, "attention_mask")
        places = np.flatnonzero(counts)
        if vectors.ndim != 2 or len(counts) != len(vectors):
            shapes = f"{shape_text(last_hidden_state)} and a mask {shape_text(attention_mask)}"
            raise InputError(f"vectors (1, length, C) and a mask (1, length) are needed, these are {shapes}")
        if not places.size:
            raise InputError("the mask leaves no token")
        if self.by == "mean":
            return np.asarray(vectors[places].mean(axis=0, dtype=np.float64), np.float32)
        return np.asarray(vectors[places[0 if self.by == "cls" else -1]])
