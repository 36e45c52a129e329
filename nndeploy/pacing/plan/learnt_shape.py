# SPDX-License-Identifier: Apache-2.0
"""What is known of runs at one shape of the inputs, as a value: runs learn it, a plan's file holds it."""

import math
from dataclasses import dataclass, replace
from typing import TypeAlias

from nndeploy.pacing.plan.pairs import END, Pair
from nndeploy.values.types import Array

Shapes: TypeAlias = tuple[tuple[int, ...], ...]
"""The shapes of all inputs of a run."""


def num_elements(shapes: Shapes) -> int:
    """Returns how many elements the inputs of a run have together, at least 1."""
    return max(1, sum(math.prod(shape) for shape in shapes))


def text_of(shapes: Shapes) -> str:
    """Returns the shapes of a run's inputs as people write them."""
    return ", ".join("x".join(map(str, shape)) or "one number" for shape in shapes)


@dataclass(frozen=True, slots=True, eq=False)
class LearntShape:
    """What is known of runs at one shape of the inputs: arrays by point, times in nanoseconds.

    `order` tells of each point as which one it is passed, `baseline` is what a run takes without delays. `pairs` are
    those behind the first point of which its delay is slept; none where a plan does not say.
    """

    shapes: Shapes
    order: Array
    durations: Array
    weights: Array
    parts: Array
    baseline: float
    reserve: float
    pairs: tuple[Pair, ...] = ()

    def renumbered(self, numbers: Array) -> "LearntShape":
        """Returns the same of points in another order: point i is what point `numbers[i]` is here."""
        there = {END: END, **{here: number for number, here in enumerate(numbers.tolist())}}
        return replace(
            self,
            order=self.order[numbers],
            durations=self.durations[numbers],
            weights=self.weights[numbers],
            parts=self.parts[numbers],
            pairs=tuple(Pair(there[one.source], there[one.target], one.preset_ns) for one in self.pairs),
        )

    def scaled(self, shapes: Shapes, factor: float) -> "LearntShape":
        """Returns the same for inputs of another shape, on which every operator takes `factor` times as long."""
        return replace(self, shapes=shapes, durations=self.durations * factor, baseline=self.baseline * factor)
