# SPDX-License-Identifier: Apache-2.0
"""What is known of runs at one shape of the inputs, and how much time is kept back for what may come between."""

import math
from bisect import insort
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from nndeploy.pacing.plan.learnt_shape import LearntShape
from nndeploy.pacing.plan.load_curve import Timeline
from nndeploy.pacing.run.branches import BranchPlans
from nndeploy.pacing.run.item import PlanMemory
from nndeploy.pacing.run.own_time import Took, waited_share
from nndeploy.values.types import Array

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


def _nothing() -> Array:
    return np.zeros(0)


@dataclass(frozen=True, slots=True)
class KeptBack:
    """The milliseconds, and the share of the time granted, that runs keep back from sleeping, and the reason."""

    ms: float
    share: float
    reason: str


@dataclass(slots=True)
class PacedShape:
    """What is known of runs at one shape of the inputs; only `times`, and what they `took`, before there is a plan.

    `branches` are the plans of submodels that run at once. Weights and parts are those that were `given`, if any.
    `is_guess`: no run at this shape was timed yet, or only runs that waited for cores.
    """

    times: deque[Array] = field(default_factory=lambda: deque(maxlen=RUNS_OF_A_PLAN))
    took: deque[Took] = field(default_factory=lambda: deque(maxlen=KEPT_TIMES))
    budgets: deque[int] = field(default_factory=lambda: deque(maxlen=RUNS_OF_A_PLAN))
    order: Array = field(default_factory=_nothing)
    durations: Array = field(default_factory=_nothing)
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

    @property
    def own_ns(self) -> float:
        """The nanoseconds that a run took by itself, the median of those since the last plan."""
        return float(np.median([one.own_ns for one in self.took]))

    @property
    def expected_ns(self) -> float:
        """The nanoseconds that the next run works, as far as earlier ones tell."""
        return self.baseline if self.memory is None else self.memory.struct.total * self.memory.struct.stretch

    def own_durations(self, length_ns: Callable[[Array], float]) -> Array:
        """Returns how long each operator took since the last plan, without what runs waited for cores.

        `length_ns` tells of such times how long a run is. Any operator may have waited, and while the thread did that
        passes the points, others may have done its share. So of the median, the lower quartile and the least those
        count that come nearest to the time of a run by itself, and together they take no longer than that.
        """
        if not waited_share(self.took):
            return self.median_durations
        own_ns = self.own_ns
        some: Array = np.quantile(self.times, (0.5, 0.25, 0.0), axis=0, method="lower")
        durations: Array = min(some, key=lambda one: abs(length_ns(one) - own_ns))
        return durations * min(1.0, own_ns / max(1.0, length_ns(durations)))

    @property
    def median_durations(self) -> Array:
        """How long each operator took since the last plan, waits for cores included: the median of the runs."""
        durations: Array = np.median(self.times, 0)
        return durations

    @property
    def kept_back(self) -> KeptBack:
        """How much of the time granted runs do not sleep, and why."""
        granted_ns = max(0.0, self.budget - self.baseline)
        is_taught = len(self.errors) >= TAUGHT_RUNS
        why = "what 99 of 100 runs needed" if is_taught else f"assumed, until {TAUGHT_RUNS} runs have told"
        share = min(1.0, self.reserve / granted_ns) if granted_ns else 1.0
        return KeptBack(self.reserve / 1e6, share, f"for what runs need beyond their planned end ({why})")

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
