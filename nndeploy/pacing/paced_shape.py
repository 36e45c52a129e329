# SPDX-License-Identifier: Apache-2.0
"""What is known of runs at one shape of the inputs, and how much time is kept back for what may come between."""

import math
from bisect import insort
from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from nndeploy.pacing.branches import BranchPlans
from nndeploy.pacing.item import PlanMemory
from nndeploy.pacing.load_curve import Timeline
from nndeploy.pacing.pairs import END, Pair

_Array: TypeAlias = "np.ndarray[Any, Any]"
Shapes: TypeAlias = tuple[tuple[int, ...], ...]
"""The shapes of all inputs of a run."""


def num_elements(shapes: Shapes) -> int:
    """Returns how many elements the inputs of a run have together, at least 1."""
    return max(1, sum(math.prod(shape) for shape in shapes))


def text_of(shapes: Shapes) -> str:
    """Returns the shapes of a run's inputs as people write them."""
    return ", ".join("x".join(map(str, shape)) or "one number" for shape in shapes)


RUNS_OF_A_PLAN = 8
KEPT_ERRORS = 200
"""Runs from whose ends the reserve follows."""
TAUGHT_RUNS = 100
"""So many runs must have ended for 99 of 100 to tell more than was assumed before there were any."""
NOT_SEEN_YET = 2.0
"""So many times what stands out among n runs, over the root of n, is kept for what was not seen yet."""
LEAST_RESERVE_NS = 0.15e6
END_NS = 0.4e6
MOST_END = 0.03
"""What a run still does behind its last operator, and at most which share of the budget is kept for that."""
MOST_RESERVE = 0.10
"""Largest share of the budget kept in reserve: longer hold-ups are rare, and more would raise the load of every run."""
HELD_UP_NS, MOST_HELD_UP = 2e6, 0.20
"""What others that work for a millisecond at a time hold up a run by at its end, and at most which share of the budget
is kept for that, where it is more."""
STRETCH_LEARNT = 0.3
"""Weight of the last run's stretch, how much longer than planned its work took, in the estimate for the next run."""
KEPT_TIMES = 1000
"""Runs of which the times of every operator are kept where runs are only timed."""
KEPT_TIMELINES = 31
"""How many of the last runs at a shape keep their timeline, of which one is shown."""


@dataclass(frozen=True, slots=True, eq=False)
class LearntShape:
    """What is known of runs at one shape of the inputs: arrays by point, times in nanoseconds.

    `order` tells of each point as which one it is passed, `baseline` is what a run takes without delays. `pairs` are
    those behind the first point of which its delay is slept; none where a plan does not say.
    """

    shapes: Shapes
    order: _Array
    durations: _Array
    weights: _Array
    parts: _Array
    baseline: float
    reserve: float
    pairs: tuple[Pair, ...] = ()

    def renumbered(self, numbers: _Array) -> "LearntShape":
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


def _nothing() -> _Array:
    return np.zeros(0)


@dataclass(slots=True)
class PacedShape:
    """What is known of runs at one shape of the inputs; only times and latencies before there is a plan (`memory`).

    `branches` are the plans of submodels that run at once. Weights and parts are those that were `given`, if any.
    `is_guess`: no run at this shape was timed yet.
    """

    times: deque[_Array] = field(default_factory=lambda: deque(maxlen=RUNS_OF_A_PLAN))
    latencies: deque[int] = field(default_factory=lambda: deque(maxlen=KEPT_TIMES))
    budgets: deque[int] = field(default_factory=lambda: deque(maxlen=RUNS_OF_A_PLAN))
    order: _Array = field(default_factory=_nothing)
    durations: _Array = field(default_factory=_nothing)
    baseline: float = 0.0
    reserve: float = 0.0
    assumed_error: float = 0.0
    errors: deque[float] = field(default_factory=deque)
    sorted_errors: list[float] = field(default_factory=list)
    planned_at: float = 0.0
    budget: int = 0
    memory: PlanMemory | None = None
    branches: BranchPlans | None = None
    given: LearntShape | None = None
    is_guess: bool = False
    timelines: deque[Timeline] = field(default_factory=lambda: deque(maxlen=KEPT_TIMELINES))

    def assume(self, error: float) -> None:
        """Sets the reserve before runs have told what they need beyond the end planned for them."""
        self.assumed_error = error
        self._set_reserve(error)

    def keep_back(self, error: float) -> None:
        """Sets the reserve: what 99 of 100 runs need beyond the end planned for them; `error` is the last one's.

        The most of few runs is soon passed by another one, so what stands out of the median is kept once more, by so
        much less as there were more runs.
        """
        if len(self.errors) == KEPT_ERRORS:
            self.sorted_errors.remove(self.errors.popleft())
        self.errors.append(error)
        insort(self.sorted_errors, error)
        num = len(self.errors)
        most, median = self.sorted_errors[math.ceil(0.99 * (num - 1))], self.sorted_errors[num // 2]
        needed = most + NOT_SEEN_YET / math.sqrt(num) * (most - median)
        self._set_reserve(max(needed, self.assumed_error) if num < TAUGHT_RUNS else needed)

    def _set_reserve(self, needed: float) -> None:
        most = max(MOST_RESERVE * self.budget, min(HELD_UP_NS, MOST_HELD_UP * self.budget))
        kept = min(max(needed, LEAST_RESERVE_NS), most)
        self.reserve = kept + min(END_NS, MOST_END * self.budget)
        if self.memory is not None:
            self.memory.struct.reserve = self.reserve

    def stretch(self, worked: float) -> None:
        """Keeps how long the last run's work took beside what is planned, for the runs to come."""
        assert self.memory is not None
        plan = self.memory.struct
        plan.stretch = max(1.0, plan.stretch + STRETCH_LEARNT * (worked / max(1.0, plan.total) - plan.stretch))
