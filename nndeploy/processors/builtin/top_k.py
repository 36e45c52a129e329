# SPDX-License-Identifier: Apache-2.0
"""top-k: probabilities of classes -> the likeliest ones, with their names."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nndeploy.errors import InputError
from nndeploy.processors.arrays import Classes, Scores, vector_from_value
from nndeploy.processors.parameters import Count
from nndeploy.processors.text_lines import TextLines


@dataclass(frozen=True)
class TopK:
    """Gives the `k` likeliest classes, best first, equal ones by number; without `labels` their names are numbers."""

    name: ClassVar[str] = "top-k"
    takes: ClassVar[tuple[str, ...]] = ("probabilities",)
    gives: ClassVar[tuple[str, ...]] = ("labels", "scores", "classes")

    k: Count = 1
    labels: TextLines | None = None

    def __call__(self, probabilities: object) -> tuple[list[str], Scores, Classes]:
        """Returns names, probabilities and numbers of the classes."""
        scores = vector_from_value(probabilities, "probabilities")
        if self.labels is not None and len(self.labels) != len(scores):
            raise InputError(f"there are {len(scores)} probabilities, but {len(self.labels)} labels")
        if np.isnan(scores).any():
            raise InputError("probabilities hold NaN")
        best = np.argsort(-scores, kind="stable")[: self.k].astype(np.int64)
        names = [str(i) if self.labels is None else self.labels[i] for i in best.tolist()]
        return names, scores[best], best
