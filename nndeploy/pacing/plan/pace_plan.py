# SPDX-License-Identifier: Apache-2.0
"""Durations and delays of all points of a program, and what a budget on the latency makes of them.

A point stands behind each operator, in the order in which they run. Its duration is how long the operator takes when
nothing delays it; its weight is the share that the delay behind it has of all delays.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from nndeploy.pacing.plan.policy import PacePolicy
from nndeploy.plugin.pacing import BURST_NS, PART_NS
from nndeploy.values.types import Array

BETWEEN_NS = 0.4e6
"""NND_BETWEEN: how long a thread works behind a run's last operator and before the next run's first."""
LEAST_DELAY_NS = 0.1e6
"""A sleep costs tens of microseconds of processor time, so none shorter than a few of those."""


@dataclass(frozen=True)
class PacePlan:
    """`durations` in nanoseconds, `weights` (of sum 1) and `parts` by point, in the order in which points are passed.

    `parts` is in how many each operator is done; `reserve` nanoseconds are kept back before the deadline. `presets` are
    slept behind the operators beside what the weights share. Where pairs were chosen nothing is slept inside of any.
    `following` is the work behind the last one: without any, nothing is slept there.
    """

    durations: Array
    weights: Array
    parts: Array
    reserve: float
    burst: float = BURST_NS
    least_delay: float = LEAST_DELAY_NS
    presets: Array = field(default_factory=lambda: np.zeros(0))
    is_chosen: bool = False
    following: float = 0.0

    def __post_init__(self) -> None:
        if not len(self.presets):
            object.__setattr__(self, "presets", np.zeros(len(self.durations)))

    def delays(self, budget: float) -> Array:
        """Returns how long a run of `budget` nanoseconds sleeps behind each operator."""
        slack = max(0.0, budget - self.reserve - self.total - float(self.presets.sum()))
        delays: Array = self.weights * slack + self.presets
        return delays

    @cached_property
    def total(self) -> float:
        """Nanoseconds of all work."""
        return float(self.durations.sum())

    @cached_property
    def before(self) -> Array:
        """Work before each point's operator."""
        return _sums_before(self.durations)

    @cached_property
    def weight_before(self) -> Array:
        """Weights of the points before."""
        return _sums_before(self.weights)

    @cached_property
    def presets_after(self) -> Array:
        """What is preset behind later operators."""
        after: Array = np.cumsum(self.presets[::-1])[::-1] - self.presets
        return after

    @cached_property
    def next_durations(self) -> Array:
        """Work from each point to the next one, which may stand inside the next operator."""
        return np.append((self.durations / self.parts)[1:], self.following)


def _sums_before(values: Array) -> Array:
    return np.concatenate((np.zeros(1), np.cumsum(values)[:-1])) if len(values) else values


class PairShares(NamedTuple):
    """What pairs make of points, which are in the order in which they are passed.

    `num_sharing` says of each point how many pairs behind it share what is granted, `presets` how many nanoseconds are
    slept there anyway. Where pairs were chosen (`is_chosen`) nothing is slept elsewhere, nor before it is due.
    """

    num_sharing: Array
    presets: Array
    is_chosen: bool = False


def serial_plan(
    durations: Array,
    is_cut: Array,
    budget: float,
    reserve: float,
    policy: PacePolicy = PacePolicy.PROPORTIONAL,
    pairs: PairShares | None = None,
) -> PacePlan:
    """Returns the plan of a run of `budget` nanoseconds whose operators run one after another.

    Delays proportional to the durations make the largest load of any stretch the least: all have the same. The last
    operator has a share between its parts alone: behind it is slept only where the thread would else work for longer
    than a burst until the next run sleeps. Where nothing is left to sleep in, operators are not cut, for that costs a
    little, nor where pairs were chosen, between which alone is slept. Without `pairs` one is behind each operator.
    """
    if pairs is None:
        pairs = PairShares(np.ones(len(durations)), np.zeros(len(durations)))
    has_slack = budget - reserve - durations.sum() - pairs.presets.sum() >= LEAST_DELAY_NS
    is_cut = is_cut & has_slack & (not pairs.is_chosen)
    parts = np.where(is_cut, np.maximum(1, np.ceil(durations / PART_NS)), 1).astype(np.int64)
    weights = policy.units(durations, pairs.num_sharing)
    weights[-1] *= 1.0 - 1.0 / parts[-1]
    weights = weights / (float(weights.sum()) or 1.0)
    burst, following = (0.0, 0.0) if pairs.is_chosen else (BURST_NS, BETWEEN_NS)
    return PacePlan(
        durations, weights, parts, reserve, burst,
        presets=pairs.presets, is_chosen=pairs.is_chosen, following=following,
    )  # fmt: skip
