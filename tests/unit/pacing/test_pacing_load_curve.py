# SPDX-License-Identifier: Apache-2.0
"""The load over time: by hand, by what must hold of any run, and as the library of delays sleeps on a clock of ours."""

import ctypes
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from virtual_clock import VirtualPace

from nndeploy.pacing.plan.load_curve import WINDOW_NS, Timeline, baseline_timeline, expected_timeline, of_median_peak
from nndeploy.pacing.plan.pace_plan import PacePlan, serial_plan
from nndeploy.pacing.run.item import ItemMemory, PlanMemory

MS = 1_000_000
Pass = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] + [ctypes.c_int64] * 4)


def slept_by(library: VirtualPace, plan: PacePlan, budget: int) -> ItemMemory:
    """Passes all parts of a plan on a clock that only work and sleeps move."""
    library.start_anew()
    item, num = ItemMemory(len(plan.durations), 1), len(plan.durations)
    item.take(PlanMemory(plan, np.arange(num)))
    library.begin(item.address, 0, budget)
    passes = Pass.from_address(item.address)
    begin = library.now
    for point, parts in enumerate(plan.parts.tolist()):
        for part in range(1, parts + 1):
            done = int(plan.before[point] + plan.durations[point] * (part / parts))
            library.work(begin + done + item.workers[0].slept - library.now)
            passes(item.address, 0, point, part, parts)
    library.end()
    return item


DURATIONS = st.lists(st.integers(0, 8 * MS), min_size=1, max_size=30)


@st.composite
def plans(draw: st.DrawFn) -> tuple[PacePlan, int]:
    """Plans of no more sleeps than are remembered, and their budgets: some below what the work takes."""
    durations = np.array(draw(DURATIONS), float)
    cut = np.array(draw(st.lists(st.booleans(), min_size=len(durations), max_size=len(durations))))
    budget = round(float(durations.sum()) * draw(st.floats(0.5, 4.0))) + draw(st.integers(0, MS))
    plan = serial_plan(durations, cut, budget, draw(st.floats(0, 0.1)) * budget)
    return replace(plan, burst=draw(st.sampled_from((plan.burst, 4.0 * MS)))), budget


@given(plans())
def test_expected_sleeps_are_those_of_the_library_on_a_clock_that_nothing_disturbs(built_virtual_pace, made) -> None:
    plan, budget = made
    item, expected = slept_by(built_virtual_pace, plan, budget), expected_timeline(plan, budget)
    assert item.workers[0].sleeps == len(expected.sleeps)
    got = item.timeline()
    np.testing.assert_allclose(got.sleeps, expected.sleeps, atol=4)  # a compiler may fuse a product and a sum
    assert got.end == pytest.approx(expected.end, abs=4)
    assert item.busiest == pytest.approx(expected.peak * min(WINDOW_NS, expected.end), abs=8)


@given(plans())
def test_no_more_is_slept_than_there_is_slack(made: tuple[PacePlan, int]) -> None:
    plan, budget = made
    run = expected_timeline(plan, budget)
    slack = max(0.0, budget - plan.total)  # who is late may use the reserve
    assert run.end - run.work <= slack + 1
    assert run.work == pytest.approx(plan.total, abs=1)
    assert run.end <= max(budget, plan.total) + 1
    lengths = run.sleeps[:, 1] - run.sleeps[:, 0]
    assert (lengths >= plan.least_delay - 1).all()
    assert (np.diff(run.sleeps.ravel()) >= 0).all()


@given(DURATIONS.filter(lambda durations: min(durations) > 0 and len(durations) > 1), st.integers(1, 100 * MS))
def test_all_slack_is_slept_where_any_work_is_slept_behind(durations: list[int], slack: int) -> None:
    plan = replace(
        serial_plan(np.array(durations, float), np.full(len(durations), False), 1e12, 7.0), burst=0, least_delay=0
    )
    run = expected_timeline(plan, sum(durations) + slack + 7)
    assert run.end - run.work == pytest.approx(slack, abs=len(durations) + 1)


@given(plans())
def test_a_curve_is_a_share_of_windows(made: tuple[PacePlan, int]) -> None:
    run = expected_timeline(*made)
    middles, load = run.curve
    assert ((load >= 0) & (load <= 1)).all()
    assert load[0] == load[-1] == 0 or not run.end  # nothing runs before and behind
    window = min(WINDOW_NS, run.end)
    assert np.trapezoid(load, middles) == pytest.approx(run.work, rel=1e-6, abs=1)  # every moment is in as many windows
    assert run.peak * (run.end + window) >= run.work * (1 - 1e-9)


def test_sleeps_by_hand() -> None:
    plan = PacePlan(np.full(3, 4.0 * MS), np.array([0.5, 0.5, 0.0]), np.array([2, 1, 1]), reserve=MS, burst=MS)
    run = expected_timeline(plan, 21 * MS)
    # 8 ms of slack: 2 behind each half of the first operator, the rest behind the second, none behind the last
    assert (run.sleeps / MS).tolist() == [[2, 4], [6, 8], [12, 16]]
    assert run.end == 20 * MS
    assert run.mean == 0.6
    assert run.pieces(plan.durations) == [
        (0, 0, 2 * MS), (0, 4 * MS, 6 * MS), (1, 8 * MS, 12 * MS), (2, 16 * MS, 20 * MS),
    ]  # fmt: skip


def test_short_work_is_slept_behind_once_it_is_a_burst() -> None:
    plan = replace(serial_plan(np.full(8, 1.0 * MS), np.full(8, False), 1e12, 0.0), burst=1.5 * MS)
    run = expected_timeline(plan, 15 * MS)  # the next operator would end beyond it
    assert (run.sleeps[:, 0] / MS).tolist() == pytest.approx([1, 3, 5, 7, 9, 11, 13], abs=1e-5)
    plan = replace(plan, burst=2.0 * MS)  # with what follows it the last burst would be longer: the rest behind it
    sleeps = [[2, 4], [6, 8], [10, 12], [14, 15]]
    np.testing.assert_allclose(expected_timeline(plan, 15 * MS).sleeps / MS, sleeps, atol=1e-5)
    plan = replace(plan, burst=2.5 * MS)  # all that is left where a burst is enough for what is left
    np.testing.assert_allclose(expected_timeline(plan, 15 * MS).sleeps / MS, [[2, 4], [6, 8], [10, 13]], atol=1e-5)
    plan = replace(plan, burst=9.0 * MS)  # a run that is shorter than a burst sleeps once
    np.testing.assert_allclose(expected_timeline(plan, 15 * MS).sleeps / MS, [[7, 14]], atol=1e-5)


def test_the_load_by_hand() -> None:
    run = Timeline(30.0 * MS, np.array([[10.0, 20.0]]) * MS)
    middles, load = run.curve
    np.testing.assert_array_equal(middles / MS, [-5, 5, 15, 25, 35])
    np.testing.assert_array_equal(load, [0, 1, 0, 1, 0])
    assert run.mean == pytest.approx(2 / 3)
    baseline = baseline_timeline(30 * MS)
    assert (baseline.mean, baseline.peak) == (1.0, 1.0)
    np.testing.assert_array_equal(baseline.curve[0] / MS, [-5, 5, 25, 35])


def test_windows_are_no_longer_than_a_run() -> None:
    run = Timeline(2.0 * MS, np.array([[1.0, 1.5]]) * MS)
    assert run.peak == run.mean == 0.75
    assert baseline_timeline(2 * MS).peak == 1.0
    assert baseline_timeline(0).peak == 0.0


def test_the_run_that_is_shown_is_the_one_of_median_peak() -> None:
    runs = [Timeline(12.0 * MS, np.array([[4.0, 4.0 + sleep]]) * MS) for sleep in (0, 6, 1, 5, 3)]
    assert of_median_peak(runs) is runs[4]
    assert of_median_peak([]) is None


def test_more_sleeps_than_are_remembered_end_what_is_told(built_virtual_pace: VirtualPace) -> None:
    plan = serial_plan(np.full(400, 2.0 * MS), np.full(400, False), 1e12, 0.0)
    item, expected = slept_by(built_virtual_pace, plan, 1600 * MS), expected_timeline(plan, 1600 * MS)
    got = item.timeline()
    assert len(expected.sleeps) == item.workers[0].sleeps == 399
    assert len(got.sleeps) == 256
    np.testing.assert_allclose(got.sleeps, expected.sleeps[:256], atol=4)
    assert got.end == got.sleeps[-1, 1] < item.latency
    assert item.busiest == pytest.approx(expected.peak * WINDOW_NS, rel=1e-6)
