# SPDX-License-Identifier: Apache-2.0
"""above: scores and what belongs to each -> those that are sure enough; for texts of lines."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nndeploy.errors import InputError, UsageError
from nndeploy.processors.arrays import shape_text, vector_from_value
from nndeploy.processors.parameters import Fraction
from nndeploy.values.types import Value


@dataclass(frozen=True)
class Above:
    """Keeps the scores that are at least `threshold`, and of the fields `also`, which have one row for each, the same.

    The order stays. A list stays a list.
    """

    name: ClassVar[str] = "above"

    threshold: Fraction = 0.5
    also: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len({"score", *self.also}) != len(self.also) + 1:
            raise UsageError("also must name other fields than score, each once")

    @property
    def takes(self) -> tuple[str, ...]:
        """The scores and what else has a row for each."""
        return ("score", *self.also)

    gives = takes

    def __call__(self, score: object, *others: Value) -> Any:
        """Returns what is left."""
        kept = np.flatnonzero(vector_from_value(score, "scores") >= self.threshold)
        count = int(np.size(score))  # type: ignore[arg-type]
        for name, value in zip(self.also, others, strict=True):
            if not isinstance(value, Sequence | np.ndarray) or isinstance(value, str | bytes) or len(value) != count:
                raise InputError(f"there are {count} scores, but {name} is {shape_text(value)}")
        found = tuple(_rows(value, kept) for value in (score, *others))
        return found if self.also else found[0]


def _rows(value: Any, kept: "np.ndarray[Any, np.dtype[np.intp]]") -> Value:
    return value[kept] if isinstance(value, np.ndarray) else [value[place] for place in kept]
