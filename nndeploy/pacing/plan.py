# SPDX-License-Identifier: Apache-2.0
"""Durations and delays of all points of a program, and what a budget on the latency makes of them.

A point stands behind each operator, in the order in which they run. Its duration is how long the operator takes when
nothing delays it; its weight is the share that the delay behind it has of all delays.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from nndeploy.pacing.policy import PacePolicy

_Array: TypeAlias = "np.ndarray[Any, Any]"

BURST_NS = 1.4e6
"""How long a thread works before it sleeps: each sleep costs it some 40 us, others may have to wait for so long."""
PART_NS = 0.2e6
"""How long a part of an operator is that can be cut."""
LEAST_DELAY_NS = 0.1e6
"""A sleep costs tens of microseconds of processor time, so none shorter than a few of those."""


@dataclass(frozen=True)
class PacePlan:
    """`durations` in nanoseconds, `weights` (of sum 1) and `parts` by point, in the order in which points are passed.

    `parts` is in how many each operator is done; `reserve` nanoseconds are kept back before the deadline.
    """

    durations: _Array
    weights: _Array
    parts: _Array
    reserve: float
    burst: float = BURST_NS
    least_delay: float = LEAST_DELAY_NS

    @cached_property
    def total(self) -> float:
        """Nanoseconds of all work."""
        return float(self.durations.sum())

    @cached_property
    def before(self) -> _Array:
        """Work before each point's operator."""
        return _sums_before(self.durations)

    @cached_property
    def weight_before(self) -> _Array:
        """Weights of the points before."""
        return _sums_before(self.weights)

    @cached_property
    def next_durations(self) -> _Array:
        """Work from each point to the next one, which may stand inside the next operator."""
        return np.append((self.durations / self.parts)[1:], 0.0)


def _sums_before(values: _Array) -> _Array:
    return np.concatenate((np.zeros(1), np.cumsum(values)[:-1])) if len(values) else values


def serial_plan(
    durations: _Array, is_cut: _Array, budget: float, reserve: float, policy: PacePolicy = PacePolicy.PROPORTIONAL
) -> PacePlan:
    """Returns the plan of a run of `budget` nanoseconds whose operators run one after another.

    Delays proportional to the durations make the largest load of any stretch the least: all have the same. Behind the
    last operator nothing follows, so nothing is slept there; between its parts something is. Where nothing is left to
    sleep in, operators are not cut, for that costs a little.
    """
    is_cut = is_cut & (budget - reserve - durations.sum() >= LEAST_DELAY_NS)
    parts = np.where(is_cut, np.maximum(1, np.ceil(durations / PART_NS)), 1).astype(np.int64)
    weights = policy.units(durations).copy()
    weights[-1] *= 1.0 - 1.0 / parts[-1]
    return PacePlan(durations, weights / (float(weights.sum()) or 1.0), parts, reserve)
