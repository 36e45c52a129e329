# SPDX-License-Identifier: Apache-2.0
"""Runs that others say the end of: until when they may take, and what is learnt of them."""

import time

import numpy as np
import pytest

from nndeploy.pacing.library import PaceLibrary
from nndeploy.pacing.pacer import CALM_RUNS, LEAST_RESERVE_NS, MOST_RESERVE, PaceGoal, Pacer, _Shape

MS = 1_000_000
CAP = 100 * MS


def pacer_of(library: PaceLibrary) -> Pacer:
    made = Pacer(library, PaceGoal(CAP, is_of_item=True), 1)
    made.add_points([("first", False), ("second", False)])
    return made


def run(pacer: Pacer, library: PaceLibrary) -> None:
    with pacer.run("shape"):
        for point in range(2):
            time.sleep(0.002)
            library.passes(point)


def test_a_run_may_take_until_its_deadline_and_a_late_one_does_not_sleep(pace_library: PaceLibrary) -> None:
    pacer = pacer_of(pace_library)
    for _ in range(CALM_RUNS):
        run(pacer, pace_library)
    with pacer.until(time.monotonic_ns() + 500 * MS):
        run(pacer, pace_library)
        assert pacer.slept_ns() == pacer.records[-1].slept > 0
        assert CAP < pacer.records[-1].cap <= 500 * MS
    for past in (1, time.monotonic_ns() - MS):
        with pacer.until(past):
            run(pacer, pace_library)
        assert pacer.slept_ns() == pacer.records[-1].sleeps == 0
    run(pacer, pace_library)
    assert pacer.records[-1].cap == CAP


def planned_after(latencies: list[int], caps: list[int]) -> _Shape:
    """Returns what is known of runs of 40 ms, planned for a cap of 100 ms, after some of these latencies and caps."""
    pacer = Pacer(None, PaceGoal(CAP), 1)  # type: ignore[arg-type]
    pacer.add_points([("first", False), ("second", False)])
    times = [np.array([20.0 * MS, 20.0 * MS])]
    shape = _Shape(times * CALM_RUNS, [40 * MS] * CALM_RUNS, [0] * CALM_RUNS, np.arange(2))
    pacer._plan(shape)
    shape.times, shape.latencies, shape.caps = times * len(caps), latencies, caps
    pacer._plan(shape)
    return shape


def test_each_run_is_held_against_its_own_cap() -> None:
    reserve = planned_after([40 * MS], [CAP]).reserve
    shape = planned_after([78 * MS, 198 * MS], [80 * MS, 200 * MS])
    before = planned_after([0], [1]).errors  # what the first plan keeps back
    assert shape.cap == 80 * MS
    assert reserve == LEAST_RESERVE_NS
    late = [
        latency - (cap - kept)
        for latency, cap, kept in ((78 * MS, 80 * MS, 2.15 * MS), (198 * MS, 200 * MS, 2.15 * MS))
    ]
    assert list(shape.errors) == pytest.approx(late)
    assert len(before) == 1


def test_runs_that_began_too_late_keep_nothing_back_from_others() -> None:
    shape = planned_after([40 * MS] * 3, [1, 10 * MS, 39 * MS])
    assert shape.reserve == LEAST_RESERVE_NS
    assert shape.cap == CAP
    late = planned_after([70 * MS] * 3, [1, 1, 1])  # 30 ms more than they take calm
    assert late.reserve == MOST_RESERVE * CAP
