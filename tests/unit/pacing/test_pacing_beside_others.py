# SPDX-License-Identifier: Apache-2.0
"""Runs beside a neighbour, on a processor that is slow or stops now and then: in time, and never long at a stretch.

The library of delays is the real one; the clock is one that only work, sleeps and the others here move. What they do
comes from seeds, so every run of a test is the same.
"""

from types import SimpleNamespace

import numpy as np
import pytest
from virtual_clock import VirtualPace

from nndeploy.pacing.plan.goal import PaceGoal
from nndeploy.pacing.plan.pace_plan import BETWEEN_NS, serial_plan
from nndeploy.pacing.run import pacer as pacers
from nndeploy.pacing.run.achieved import Achieved, achieved
from nndeploy.pacing.run.item import ItemMemory, PlanMemory
from nndeploy.pacing.run.pacer import Pacer
from nndeploy.plugin.pacing import BURST_NS

MS, US = 1_000_000, 1000
OUTSIDE = 100 * US
"""What a run does behind its last operator."""


class Others:
    """Who takes the processor: a neighbour that wakes for 1 ms every 5 to 15 ms, and holds-up of 1 to 6 ms."""

    def __init__(self, library: VirtualPace, every_ms: float) -> None:
        """A hold-up comes every so many milliseconds on average."""
        self._library, self._random, self._every = library, np.random.default_rng(1), every_ms
        self._wakes, self._stops = self._next_wake(), self._next_stop()

    def let_work(self, nanoseconds: int) -> None:
        """Lets the thread work for so long, and wait while others have the processor; who wakes interrupts it."""
        library, left = self._library, nanoseconds
        while left > 0:
            if self._wakes <= library.now:
                library.wait(max(0, self._wakes + MS - library.now))  # less where the thread slept meanwhile
                self._wakes = self._next_wake()
            elif self._stops <= library.now:
                if self._stops > library.now - MS:
                    library.wait(int(self._random.integers(1 * MS, 6 * MS)))
                self._stops = self._next_stop()
            else:
                step = min(left, self._wakes - library.now, self._stops - library.now)
                library.work(step)
                left -= step

    def _next_wake(self) -> int:
        return self._library.now + int(self._random.integers(5 * MS, 15 * MS))

    def _next_stop(self) -> int:
        return self._library.now + 1 + int(self._random.exponential(self._every) * MS)


def achieved_beside(
    library: VirtualPace, budget: int, part: int, num: int, *, every_ms: float, slower: float
) -> tuple[Achieved, list[float]]:
    """Returns what 400 runs of so many operators achieved, of which every fifth takes longer by a share.

    And of each run the most milliseconds that it worked without a sleep.
    """
    library.wake_late(60 * US)
    pacer, others, dice = Pacer(library, PaceGoal(budget), 1), Others(library, every_ms), np.random.default_rng(2)
    pacer.points.add([(str(number), False) for number in range(num)])
    for _ in range(400):
        factor = 1 + dice.uniform(-0.05, 0.05) + slower * (dice.random() < 0.2)
        with pacer.run(()):
            for number in range(num):
                others.let_work(int(part * factor))
                library.point(number)
            others.let_work(OUTSIDE)
    found = achieved(pacer.records)
    assert found is not None
    return found, [one.longest_run / MS for one in pacer.records if one.budget]


@pytest.fixture
def pace(virtual_pace: VirtualPace, monkeypatch: pytest.MonkeyPatch) -> VirtualPace:
    clock = SimpleNamespace(monotonic_ns=lambda: virtual_pace.now, monotonic=lambda: virtual_pace.now / 1e9)
    monkeypatch.setattr(pacers, "time", clock)
    return virtual_pace


@pytest.mark.parametrize(("part", "num"), [(250 * US, 206), (300 * US, 76), (190 * US, 40)])
@pytest.mark.parametrize("slower", [0.0, 0.35])
def test_beside_a_neighbour_runs_are_in_time_and_never_work_for_long(pace, part, num, slower) -> None:
    found, _ = achieved_beside(pace, 2 * part * num, part, num, every_ms=1e9, slower=slower)
    assert found.over_cap <= 0.01
    assert found.longest_run_ms <= 1.55
    assert found.load < 0.65


@pytest.mark.parametrize(("part", "num"), [(250 * US, 40), (400 * US, 31), (130 * US, 57)])
def test_what_a_thread_does_between_two_runs_makes_no_burst_longer(pace: VirtualPace, part: int, num: int) -> None:
    pacer = Pacer(pace, PaceGoal(2 * part * num), 1)
    pacer.points.add([(str(number), False) for number in range(num)])
    for _ in range(100):
        with pacer.run(()):
            for number in range(num):
                pace.work(part)
                pace.point(number)
            pace.work(OUTSIDE)
        pace.work(int(BETWEEN_NS) - OUTSIDE)
    longest = [one.longest_run for one in pacer.records if one.budget]
    assert len(longest) == 95
    assert max(longest[10:]) <= BURST_NS


@pytest.mark.parametrize(("part", "num", "over"), [(250 * US, 206, 0.01), (300 * US, 76, 0.015)])
def test_on_a_processor_that_stops_now_and_then_late_runs_still_sleep(pace, part, num, over) -> None:
    found, longest = achieved_beside(pace, 2 * part * num, part, num, every_ms=300, slower=0.2)
    assert found.over_cap <= over
    assert np.mean(np.array(longest) > 1.6) <= 0.03


def slept(library: VirtualPace, held_up_ms: int, *, reserve_ms: float = 4.0) -> list[float]:
    """Returns how long a run of 40 ms sleeps which may take 50 ms and is held up behind its first half."""
    item, plan = ItemMemory(80, 1), serial_plan(np.full(80, 0.5 * MS), np.full(80, False), 50 * MS, reserve_ms * MS)
    item.take(PlanMemory(plan, np.arange(80)))
    library.begin(item.address, 0, 50 * MS)
    for number in range(80):
        library.work(MS // 2)
        if number == 39:
            library.wait(held_up_ms * MS)
        library.point(number)
    library.end()
    lengths = item.timeline().sleeps @ [-1, 1] / MS
    begins = item.timeline().sleeps[:, 0]
    return [length for length, begin in zip(lengths.tolist(), begins.tolist(), strict=True) if begin > 24 * MS]


def test_who_is_late_takes_short_sleeps_while_it_would_be_in_time(virtual_pace: VirtualPace) -> None:
    breaths = slept(virtual_pace, 5)
    assert len(breaths) >= 8
    assert all(0.0999 <= breath < 0.2 for breath in breaths[1:-1])


def test_who_would_not_be_in_time_does_not_sleep(virtual_pace: VirtualPace) -> None:
    assert slept(virtual_pace, 12) == []


def test_a_thread_that_goes_on_with_another_run_at_once_sleeps_before_it(virtual_pace: VirtualPace) -> None:
    plan = serial_plan(np.full(4, 0.8 * MS), np.full(4, False), 40 * MS, 0.0)
    item = ItemMemory(4, 1)
    item.take(PlanMemory(plan, np.arange(4)))
    for before in (0, 1.1):
        virtual_pace.start_anew()
        for budget in (40 * MS, 40 * MS):
            virtual_pace.begin(item.address, 0, budget)
            for number in range(4):
                virtual_pace.work(800 * US)
                virtual_pace.point(number)
            virtual_pace.work(int(before * MS))
            virtual_pace.end()
        first = item.timeline().sleeps[0]
        assert (first[0] == 0) == (before > 0)
        assert first[1] - first[0] >= 0.1 * MS - 1


def test_a_run_shorter_than_a_burst_fills_its_time_behind_a_sleep_at_its_begin(virtual_pace: VirtualPace) -> None:
    plan = serial_plan(np.full(4, 0.2 * MS), np.full(4, False), 40 * MS, 0.0)
    item = ItemMemory(4, 1)
    item.take(PlanMemory(plan, np.arange(4)))
    for _ in range(2):
        virtual_pace.begin(item.address, 0, 40 * MS)
        for number in range(4):
            virtual_pace.work(200 * US)
            virtual_pace.point(number)
        virtual_pace.end()
        virtual_pace.work(2 * MS)
    first, last = item.timeline().sleeps
    assert first[0] == 0
    assert last[1] == pytest.approx(39.8 * MS, abs=1)


def test_a_thread_that_goes_on_with_a_run_that_is_late_already_does_not_sleep_before_it(virtual_pace) -> None:
    plan = serial_plan(np.full(4, 0.8 * MS), np.full(4, False), 40 * MS, 0.0)
    item = ItemMemory(4, 1)
    item.take(PlanMemory(plan, np.arange(4)))
    for late in (0, 40 * MS):
        virtual_pace.begin(item.address, virtual_pace.now - late, 40 * MS)
        virtual_pace.work(2 * MS)
        virtual_pace.end()
    assert item.workers[0].sleeps == 0
