# SPDX-License-Identifier: Apache-2.0
"""Runs that others say the end of: until when they may take, and what is learnt of them."""

from types import SimpleNamespace

import pytest
from virtual_clock import VirtualPace

from nndeploy.pacing.plan.goal import PaceGoal
from nndeploy.pacing.run import pacer as pacers
from nndeploy.pacing.run import plan_maker
from nndeploy.pacing.run.item import ItemMemory
from nndeploy.pacing.run.paced_shape import END_NS, LEAST_RESERVE_NS, MOST_END, MOST_RESERVE, PacedShape
from nndeploy.pacing.run.pacer import BASELINE_RUNS, Pacer
from nndeploy.pacing.run.plan_maker import FIRST_RESERVE

MS = 1_000_000
BUDGET = 100 * MS


def run(pacer: Pacer, library: VirtualPace) -> None:
    with pacer.run("shape"):
        for point in range(2):
            library.work(2 * MS)
            library.point(point)


def test_a_run_may_take_until_its_deadline_and_a_late_one_does_not_sleep(virtual_pace, monkeypatch) -> None:
    clock = SimpleNamespace(monotonic_ns=lambda: virtual_pace.now, monotonic=lambda: virtual_pace.now / 1e9)
    for module in (pacers, plan_maker):
        monkeypatch.setattr(module, "time", clock)
    pacer = Pacer(virtual_pace, PaceGoal(BUDGET, is_of_item=True), 1)
    pacer.points.add([("first", False), ("second", False)])
    for _ in range(BASELINE_RUNS):
        run(pacer, virtual_pace)
    assert pacer.known()[0] == 4 * MS
    taken = 4 * MS + LEAST_RESERVE_NS + FIRST_RESERVE * BUDGET + END_NS  # by work and what is kept back
    with pacer.until(virtual_pace.now + 500 * MS):
        virtual_pace.wait(20 * MS)  # who is held up before the run has so much less left for it
        run(pacer, virtual_pace)
        assert pacer.slept_ns() == pacer.records[-1].slept == pytest.approx(480 * MS - taken, abs=1)
        assert pacer.records[-1].budget == 480 * MS
    for past in (1, virtual_pace.now - MS):
        with pacer.until(past):
            run(pacer, virtual_pace)
        assert pacer.slept_ns() == pacer.records[-1].slept == 0
        assert pacer.records[-1].budget == 1
    run(pacer, virtual_pace)
    assert pacer.records[-1].budget == BUDGET
    assert pacer.slept_ns() == pacer.records[-1].slept == pytest.approx(BUDGET - taken, abs=1)


def planned_after(latencies: list[int], budgets: list[int]) -> PacedShape:
    """Returns what is known of runs of 40 ms, planned for 100 ms, after runs of these latencies and budgets."""
    pacer = Pacer(None, PaceGoal(BUDGET), 1)  # type: ignore[arg-type]
    pacer.points.add([("first", False), ("second", False)])
    shape, item = PacedShape(), ItemMemory(2, 1)
    item.times[:] = 20 * MS
    item.order[:] = range(2)
    for latency, budget in [(40 * MS, 0)] * BASELINE_RUNS + list(zip(latencies, budgets, strict=True)):
        item._struct.end = latency
        pacer._learn(shape, item, budget, 2 * MS)
    pacer._plans.make_anew(shape)
    return shape


def test_each_run_is_held_against_its_own_budget() -> None:
    shape = planned_after([78 * MS, 198 * MS, 79 * MS], [80 * MS, 200 * MS, 80 * MS])
    assert shape.budget == 80 * MS
    assert list(shape.errors) == [0, 0, MS]


def test_runs_that_began_too_late_keep_nothing_back_from_others() -> None:
    shape = planned_after([40 * MS] * 3, [1, 10 * MS, 39 * MS])
    assert list(shape.errors) == [0, 0, 0]
    assert shape.budget == BUDGET
    late = planned_after([70 * MS] * 3, [1, 1, 1])  # 30 ms more than the baseline
    assert late.reserve == MOST_RESERVE * BUDGET + END_NS


def test_of_few_runs_more_is_kept_back_than_any_of_them_needed() -> None:
    shape, kept = PacedShape(budget=BUDGET), list[float]()
    shape.assume(2 * MS)
    for number in range(150):
        shape.keep_back(3 * MS if number == 10 else 0.0)
        kept.append(shape.reserve - END_NS)
    assert kept[:10] == [2 * MS] * 10  # what was assumed, until runs told more
    assert kept[10] == pytest.approx((1 + 2 / 11**0.5) * 3 * MS)
    assert kept[98] == pytest.approx((1 + 2 / 99**0.5) * 3 * MS)
    assert kept[-1] == LEAST_RESERVE_NS  # one of 150 runs needs not be in time


@pytest.mark.parametrize(("budget", "share"), [(100 * MS, 0.1), (20 * MS, 0.1), (12_500_000, 0.16), (8 * MS, 0.2)])
def test_no_more_is_kept_back_than_a_share_of_the_budget_that_is_larger_where_it_is_short(budget, share) -> None:
    shape = PacedShape(budget=budget)
    shape.keep_back(budget)
    assert shape.reserve == pytest.approx(share * budget + min(END_NS, MOST_END * budget))
