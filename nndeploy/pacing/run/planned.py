# SPDX-License-Identifier: Apache-2.0
"""A plan as people read it: the sleep behind each point, and the delay between the operators of each pair."""

from dataclasses import dataclass

import numpy as np

from nndeploy.pacing.plan.pace_plan import PacePlan
from nndeploy.pacing.plan.pairs import pair_name
from nndeploy.pacing.run.paced_points import PacedPoints
from nndeploy.values.types import Array


@dataclass(frozen=True, slots=True)
class PlannedPoint:
    """A point of a plan: the operator before it, how long that takes, in how many parts, the sleep behind it.

    `followed_by` are the operators that read what it makes, where runs may sleep in between; `done` are those of the
    model that were done there, by kind and value.
    """

    name: str
    amount_us: float
    parts: int
    delay_us: float
    followed_by: tuple[str, ...] = ()
    done: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedPair:
    """A pair of operators, and the delay between them; whether a user set it."""

    pair: str
    delay_us: float
    is_preset: bool


def planned_points(points: PacedPoints, passed: Array, plan: PacePlan, delays: Array) -> list[PlannedPoint]:
    """Returns the points in the order in which they are `passed`, as are the plan and the `delays` behind them."""
    followed_by = points.followed_by
    return [
        PlannedPoint(points.names[number], duration / 1e3, parts, delay / 1e3, followed_by[number], points.done[number])
        for number, duration, parts, delay in zip(
            passed.tolist(), plan.durations.tolist(), plan.parts.tolist(), delays.tolist(), strict=True
        )
    ]


def planned_pairs(points: PacedPoints, passed: Array, plan: PacePlan, delays: Array) -> list[PlannedPair]:
    """Returns the pairs, those of the first point that is passed first."""
    shared, place, counts = delays - plan.presets, np.argsort(passed), points.num_sharing
    return [
        PlannedPair(
            pair_name(points.names, pair),
            (pair.preset_ns or float(shared[place[pair.source]] / counts[pair.source])) / 1e3,
            bool(pair.preset_ns),
        )
        for pair in sorted(points.pairs, key=lambda pair: int(place[pair.source]))
    ]
