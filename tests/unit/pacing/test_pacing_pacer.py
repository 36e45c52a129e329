# SPDX-License-Identifier: Apache-2.0
"""Runs that others say the end of: until when they may take, and what is learnt of them."""

from types import SimpleNamespace

import pytest
from virtual_clock import VirtualPace

from nndeploy.errors import UsageError
from nndeploy.pacing.plan.goal import PaceGoal
from nndeploy.pacing.run import own_time, plan_maker
from nndeploy.pacing.run import pacer as pacers
from nndeploy.pacing.run.item import ItemMemory
from nndeploy.pacing.run.own_time import SURE, Stopwatch, Took
from nndeploy.pacing.run.paced_shape import END_NS, LEAST_RESERVE_NS, MOST_END, MOST_RESERVE, TAUGHT_RUNS, PacedShape
from nndeploy.pacing.run.pacer import BASELINE_RUNS, RUNS_OF_A_PLAN, Pacer
from nndeploy.pacing.show.achieved_text import run_lines, run_to_json

MS = 1_000_000
BUDGET = 100 * MS


def run(pacer: Pacer, library: VirtualPace) -> None:
    with pacer.run("shape"):
        for point in range(2):
            library.work(2 * MS)
            library.point(point)


@pytest.fixture
def pace(virtual_pace: VirtualPace, monkeypatch: pytest.MonkeyPatch) -> VirtualPace:
    clock = SimpleNamespace(monotonic_ns=lambda: virtual_pace.now, monotonic=lambda: virtual_pace.now / 1e9)
    for module in (pacers, plan_maker):
        monkeypatch.setattr(module, "time", clock)
    return virtual_pace


def test_a_run_may_take_until_its_deadline_and_a_late_one_does_not_sleep(pace: VirtualPace) -> None:
    pacer = Pacer(pace, PaceGoal(BUDGET, is_of_item=True), 1)
    pacer.points.add([("first", False), ("second", False)])
    for _ in range(BASELINE_RUNS):
        run(pacer, pace)
    assert pacer.known()[0] == 4 * MS
    taken = 4 * MS + LEAST_RESERVE_NS + END_NS  # by work and what is kept back: the item keeps the rest
    with pacer.until(pace.now + 500 * MS):
        pace.wait(20 * MS)  # who is held up before the run has so much less left for it
        run(pacer, pace)
        assert pacer.slept_ns() == pacer.records[-1].slept == pytest.approx(480 * MS - taken, abs=1)
        assert pacer.records[-1].budget == 480 * MS
    for past in (1, pace.now - MS):
        with pacer.until(past):
            run(pacer, pace)
        assert pacer.slept_ns() == pacer.records[-1].slept == 0
        assert pacer.records[-1].budget == 1
    run(pacer, pace)
    assert pacer.records[-1].budget == BUDGET
    assert pacer.slept_ns() == pacer.records[-1].slept == pytest.approx(BUDGET - taken, abs=1)


def test_what_follows_a_run_of_an_item_has_its_share_of_the_time(pace: VirtualPace) -> None:
    pacer = Pacer(pace, PaceGoal(BUDGET, is_of_item=True), 1)
    pacer.points.add([("first", False), ("second", False)])
    for _ in range(BASELINE_RUNS):
        run(pacer, pace)
    with pacer.until(pace.now + 50 * MS, following_ns=MS):
        run(pacer, pace)
    assert pacer.records[-1].budget == 40 * MS


def test_a_run_of_an_item_at_a_new_shape_is_paced_by_what_is_known_of_another_one(pace: VirtualPace) -> None:
    pacer = Pacer(pace, PaceGoal(BUDGET, is_of_item=True), 1)
    pacer.points.add([("first", False), ("second", False)])

    def run_of(length: int) -> None:
        with pacer.run(((length,),)):
            for point in range(2):
                pace.work(length * MS)
                pace.point(point)

    for _ in range(BASELINE_RUNS):
        run_of(2)
    assert pacer.records[-1].budget == 0
    with pacer.until(pace.now + 50 * MS):
        run_of(5)
    assert pacer.records[-1].budget == 50 * MS
    assert pacer.slept_ns() == pytest.approx(50 * MS - 10 * MS, rel=0.05)
    assert pacer.known()[0] == 10 * MS


def planned_after(latencies: list[int], budgets: list[int]) -> PacedShape:
    """Returns what is known of runs of 40 ms, planned for 100 ms, after runs of these latencies and budgets."""
    pacer = Pacer(None, PaceGoal(BUDGET), 1)  # type: ignore[arg-type]
    pacer.points.add([("first", False), ("second", False)])
    shape, item = PacedShape(), ItemMemory(2, 1)
    item.times[:] = 20 * MS
    item.order[:] = range(2)
    for latency, budget in [(40 * MS, 0)] * BASELINE_RUNS + list(zip(latencies, budgets, strict=True)):
        item._struct.end = latency
        pacer._learn(shape, item, Took(latency, latency), budget, 2 * MS)
    pacer._plans.make_anew(shape)
    return shape


def learnt_beside_others(pace: VirtualPace, waits: list[tuple[int, int]], goal: PaceGoal, others: float = 0.0) -> Pacer:
    """Returns a pacer after runs of two operators of 2 ms, in front of which the thread waits for a core so long (ms).

    Beside the operators a run takes a share of 4 ms more.
    """
    pacer = Pacer(pace, goal, 1)
    pacer.points.add([("first", False), ("second", False)])
    for before in waits:
        with pacer.run("shape"):
            for point in range(2):
                pace.wait(before[point] * MS)
                pace.work(2 * MS)
                pace.point(point)
            pace.work(int(others * 4 * MS))
    return pacer


@pytest.mark.parametrize("waits", [
    [(40, 0), (0, 0), (0, 90), (20, 20), (0, 0)],  # some runs wait, now in front of this, now of that operator
    [(40, 0)] * BASELINE_RUNS,  # each does, in front of the same one
    [(40, 20)] * BASELINE_RUNS,
])  # fmt: skip
def test_what_a_run_waited_for_a_core_is_no_part_of_the_baseline(pace: VirtualPace, waits) -> None:
    pacer = learnt_beside_others(pace, waits, PaceGoal(20 * MS))
    baseline, durations = pacer.known()
    assert baseline == pytest.approx(4 * MS)
    assert durations.sum() == pytest.approx(4 * MS)
    assert "busy machine" in pacer.busy_note
    assert run_to_json(pacer)["notes"] == [pacer.busy_note]


def test_runs_that_waited_for_nothing_are_no_warning(pace: VirtualPace) -> None:
    assert not learnt_beside_others(pace, [(0, 0)] * BASELINE_RUNS, PaceGoal(20 * MS)).busy_note


def test_where_nobody_counts_waits_the_time_on_the_clock_is_the_baseline(pace: VirtualPace) -> None:
    pace.waited = None
    pacer = Pacer(pace, PaceGoal(20 * MS), 1)
    pacer.points.add([("first", False), ("second", False)])
    for _ in range(BASELINE_RUNS + 1):
        run(pacer, pace)
    assert pacer.known()[0] == 4 * MS
    assert "core_wait" not in run_to_json(pacer)


def test_runs_that_are_left_alone_later_correct_what_was_learnt_on_a_busy_machine(pace: VirtualPace) -> None:
    pacer = learnt_beside_others(pace, [(40, 40)] * BASELINE_RUNS, PaceGoal(20 * MS), others=0.5)
    assert pacer.known()[0] == pytest.approx(6 * MS)
    pace.wait(1000 * MS)
    for _ in range(RUNS_OF_A_PLAN):
        with pacer.run("shape"):
            for point in range(2):
                pace.work(MS)  # no cache is filled by others now
                pace.point(point)
    baseline, durations = pacer.known()
    assert durations.tolist() == [MS, MS]
    assert baseline < 4 * MS


def test_paced_runs_tell_how_long_they_waited_for_a_core(pace: VirtualPace) -> None:
    pacer = learnt_beside_others(pace, [(0, 0)] * BASELINE_RUNS + [(10, 0)] * 5, PaceGoal(20 * MS))
    found = run_to_json(pacer)
    assert found["core_wait"] == pytest.approx(10 / found["p50_ms"], rel=0.01)


def test_a_budget_is_refused_on_a_busy_machine_only_where_it_is_surely_too_short() -> None:
    with pytest.raises(UsageError, match="without delays"):
        PaceGoal(4 * MS).check(4.0 * MS)
    PaceGoal(4 * MS).check(4.0 * MS, sure=SURE)
    with pytest.raises(UsageError, match="takes 4 ms without delays"):
        PaceGoal(2 * MS).check(4.0 * MS, sure=SURE)


def test_of_threads_that_wait_at_once_no_more_is_left_out_than_leaves_the_work(monkeypatch) -> None:
    counts = SimpleNamespace(used=0, waited=0)
    monkeypatch.setattr(own_time, "time", SimpleNamespace(process_time_ns=lambda: counts.used))
    monkeypatch.setattr(own_time, "process_run_delay_ns", lambda: counts.waited)
    monkeypatch.setattr(own_time, "num_cores", lambda: 2)
    stopwatch = Stopwatch()
    counts.used, counts.waited = 12 * MS, 90 * MS
    assert stopwatch.took(100 * MS) == (10 * MS, 100 * MS)
    counts.waited = 99 * MS
    assert stopwatch.took(100 * MS) == (6 * MS, 100 * MS)  # both cores did all of the work
    assert stopwatch.took(100 * MS, least_ns=8 * MS) == (8 * MS, 100 * MS)
    counts.waited = 0
    assert stopwatch.took(100 * MS) == (100 * MS, 100 * MS)


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


def test_what_is_kept_back_of_the_time_granted_is_told_with_the_reason(pace: VirtualPace) -> None:
    pacer = learnt_beside_others(pace, [(0, 0)] * (BASELINE_RUNS + 1), PaceGoal(total_ns=12 * MS))
    slept = pacer.records[-1].slept
    kept = run_to_json(pacer)["kept_back"]
    assert kept["ms"] * MS == pytest.approx(12 * MS - slept, abs=1)
    assert kept["share"] == pytest.approx(1 - slept / (12 * MS), abs=1e-6)
    assert "assumed" in kept["reason"]
    (line,) = (line for line in run_lines(pacer) if "kept back" in line)
    assert f"{kept['share']:.0%} of the time granted" in line
    for _ in range(TAUGHT_RUNS):
        run(pacer, pace)
    assert "99 of 100" in run_to_json(pacer)["kept_back"]["reason"]


@pytest.mark.parametrize(("budget", "share"), [(100 * MS, 0.1), (20 * MS, 0.1), (12_500_000, 0.16), (8 * MS, 0.2)])
def test_no_more_is_kept_back_than_a_share_of_the_budget_that_is_larger_where_it_is_short(budget, share) -> None:
    shape = PacedShape(budget=budget)
    shape.keep_back(budget)
    assert shape.reserve == pytest.approx(share * budget + min(END_NS, MOST_END * budget))
