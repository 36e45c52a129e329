# SPDX-License-Identifier: Apache-2.0
"""The load of a run's thread over time: of a baseline run, as a plan makes us expect it, and as it was.

A timeline says when the thread slept. The load at a moment is the share of the window around it in which the thread
worked; windows are those over which the load is told, or as long as the run where that is shorter, and nothing runs
before or behind the run. Between the windows whose edges meet a sleep's the load is linear, so a curve is exact.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nndeploy.pacing.plan.pace_plan import BETWEEN_NS, PacePlan
from nndeploy.values.types import Array

WINDOW_NS = 10_000_000
"""NND_PACE_WINDOW: over which the load is told."""
KEPT_WHEN_LATE = 0.5
"""NND_KEPT: the share of the reserve that a late run keeps at its begin."""
LAST_WEIGHT = 1e-9
"""Where less than this share of all delays is left no sleep is planned any more."""


def _no_sleeps() -> Array:
    return np.zeros((0, 2))


@dataclass(frozen=True)
class Timeline:
    """When a run's thread slept: `sleeps` (N, 2) are from when until when, in order; all in ns since the run began."""

    end: float
    sleeps: Array

    @cached_property
    def work(self) -> float:
        """Nanoseconds of work."""
        return self.end - float((self.sleeps[:, 1] - self.sleeps[:, 0]).sum())

    @property
    def mean(self) -> float:
        """The load of the whole run, 0..1."""
        return self.work / self.end if self.end else 0.0

    @property
    def peak(self) -> float:
        """The load of the busiest window, 0..1."""
        return float(self.curve[1].max())

    @cached_property
    def curve(self) -> tuple[Array, Array]:
        """The middles of windows in ns since the run began, ascending, and the load of each; linear between them."""
        window = min(float(WINDOW_NS), self.end)
        if not window:
            return np.zeros(1), np.zeros(1)
        edges = np.concatenate((np.zeros(1), self.sleeps.ravel(), [self.end]))
        is_work = np.arange(len(edges) - 1) % 2 == 0
        worked = np.concatenate((np.zeros(1), np.cumsum(np.diff(edges) * is_work)))
        middles = np.unique(np.concatenate((edges - window / 2, edges + window / 2)))
        until, since = (np.interp(middles + side * window / 2, edges, worked) for side in (1, -1))
        return middles, np.clip((until - since) / window, 0.0, 1.0)

    def pieces(self, durations: Array) -> list[tuple[int, float, float]]:
        """Returns (operator, from, until) of each stretch of work; `durations` are those of all operators, in order."""
        ends = np.floor(np.cumsum(durations))  # as clocks tell it
        lengths = self.sleeps[:, 1] - self.sleeps[:, 0]
        slept = np.concatenate((np.zeros(1), np.cumsum(lengths)))
        worked = self.sleeps[:, 0] - slept[:-1]  # until each sleep
        cuts = np.unique(np.concatenate((np.zeros(1), ends, worked)))
        shifts = slept[np.searchsorted(worked, cuts[:-1], side="right")]
        operators = np.searchsorted(ends, (cuts[:-1] + cuts[1:]) / 2)
        froms, untils = cuts[:-1] + shifts, cuts[1:] + shifts
        return list(zip(operators.tolist(), froms.tolist(), untils.tolist(), strict=True))


@dataclass(frozen=True)
class Loads:
    """The load before: of a baseline run; after, as the plan lets us expect; and of the paced run of median peak."""

    before: Timeline
    expected: Timeline
    measured: Timeline | None

    def named(self) -> dict[str, Timeline]:
        """Returns those that there are, by name."""
        return {name: one for name in ("before", "expected", "measured") if (one := getattr(self, name)) is not None}


def baseline_timeline(nanoseconds: float) -> Timeline:
    """Returns that of a run that never sleeps."""
    return Timeline(float(nanoseconds), _no_sleeps())


def expected_timeline(plan: PacePlan, budget: float) -> Timeline:
    """Returns that of a run of at most `budget` nanoseconds whose operators take their baseline.

    Sleeps are those of `nnd_delay` in `backends/nndeploy_kernels/c/pacing/pace.c`, which end when they should.
    """
    sleeps = list[tuple[int, int]]()
    slept, wake, spent = 0, 0, 0.0
    for done, weight, following, preset, presets in _ends_of_parts(plan):
        now, left, remaining = int(done) + slept, 1.0 - spent, plan.total - done
        is_last = weight >= 1.0 - LAST_WEIGHT
        is_due = now - wake + following > plan.burst or (is_last and not sleeps)
        delay = 0.0
        if is_due and following > 0.0 and (left > 0.0 or plan.burst > 0.0):
            in_time = (budget - now) - remaining - presets
            slack = in_time - plan.reserve
            takes_all = is_last or remaining + BETWEEN_NS <= plan.burst
            delay = slack if takes_all else slack * (weight - spent) / left
            if delay < plan.least_delay:
                kept = KEPT_WHEN_LATE * plan.reserve * remaining / max(1.0, plan.total)
                has_worked = plan.burst > 0.0 and remaining > 0.0 and now - wake + following > plan.burst
                delay = plan.least_delay if has_worked and in_time - kept >= plan.least_delay else 0.0
        if delay + preset <= 0.0:
            continue
        wake = now + int(delay + preset)
        spent = weight if delay > 0.0 else spent
        slept += wake - now
        sleeps.append((now, wake))
    return Timeline(plan.total + slept, np.array(sleeps, float) if sleeps else _no_sleeps())


def _ends_of_parts(plan: PacePlan) -> Iterator[tuple[float, float, float, float, float]]:
    """Yields of each point: work and weight until then, work until the next, the preset, and those from there on."""
    columns = (
        plan.before, plan.durations, plan.weight_before, plan.weights, plan.next_durations, plan.parts,
        plan.presets, plan.presets + plan.presets_after,
    )  # fmt: skip
    every = zip(*(column.tolist() for column in columns), strict=True)
    for before, duration, weight_before, weight, after, parts, preset, presets in every:
        for part in range(1, parts + 1):
            share, is_end = part / parts, part == parts
            following = after if is_end else duration / parts
            yield before + duration * share, weight_before + weight * share, following, preset * is_end, presets


def of_median_peak(timelines: "list[Timeline]") -> Timeline | None:
    """Returns the one whose peak is the median of all, None where there is none."""
    return sorted(timelines, key=lambda one: one.peak)[len(timelines) // 2] if timelines else None
