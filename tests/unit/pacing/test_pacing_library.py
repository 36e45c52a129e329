# SPDX-License-Identifier: Apache-2.0
"""The library of delays: what lies where, how long it sleeps, and that it never makes a late item later.

How long is told by a clock that stands still but for work and sleeps, so that times are what they are by hand. On the
system's clock, by which a test's thread may be held up for any time, only what no hold-up can change is asked.
"""

import ctypes
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from c_library import library_from_source
from virtual_clock import VirtualPace

from nndeploy.errors import UnavailableError
from nndeploy.pacing.plan.load_curve import expected_timeline
from nndeploy.pacing.plan.pace_plan import PacePlan, PairShares, serial_plan
from nndeploy.pacing.run import item as items
from nndeploy.pacing.run.item import ItemMemory, PlanMemory
from nndeploy.pacing.run.library import PaceLibrary

Pass = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] + [ctypes.c_int64] * 4)
US, MS, SECOND = 1000, 1_000_000, 1_000_000_000
WHOLE, ONE_PART = np.full(4, False), np.ones(4, np.int64)
ONE_SLEEP = PacePlan(np.array([1.0, 1.0, 1.0, 97.0]) * MS, np.array([1.0, 0, 0, 0]), ONE_PART, 0.0, burst=0.0)
NEARLY = 1
"""Nanoseconds by which a sleep may differ from what it is by hand: a compiler may fuse a product and a sum."""


def item_of(plan: PacePlan | None, num_points: int = 4) -> ItemMemory:
    item = ItemMemory(num_points, 1)
    item.take(None if plan is None else PlanMemory(plan, np.arange(num_points)))
    return item


def passed(library: PaceLibrary, item: ItemMemory, budget: int, *, begin: int = 0) -> None:
    library.begin(item.address, begin, budget)
    for point in range(len(item.times)):
        library.point(point)
    library.end()


def worked(library: VirtualPace, item: ItemMemory, budget: int, durations: list[int]) -> list[list[float]]:
    """Works for so long before each point; returns from when until when was slept, in milliseconds of the item."""
    library.begin(item.address, 0, budget)
    for point, duration in enumerate(durations):
        library.work(duration)
        library.point(point)
    library.end()
    sleeps: list[list[float]] = (item.timeline().sleeps / MS).tolist()
    return sleeps


def slept_at_first(
    library: VirtualPace, plan: PacePlan, budget: int, work: int, *, held_up: int = 0, stretch: float = 1.0
) -> int:
    """Returns for how many nanoseconds the first point sleeps, once the thread worked and was held up for so long."""
    item = ItemMemory(len(plan.durations), 1)
    memory = PlanMemory(plan, np.arange(len(plan.durations)), stretch)
    item.take(memory)
    library.begin(item.address, 0, budget)
    library.work(work)
    library.wait(held_up)
    library.point(0)
    library.end()
    assert item.workers[0].sleeps == (item.workers[0].slept > 0)
    assert item.times[0] == work + held_up
    slept: int = item.workers[0].slept
    return slept


def test_structures_are_those_of_the_header(tmp_path: Path) -> None:
    want: dict[str, list[tuple[str, int]]] = {
        "nnd_pace_point": [(name, field[1]) for name, field in (items._POINT.fields or {}).items()],
        **{
            name: [(field.rstrip("_"), getattr(struct, field).offset) for field, *_ in struct._fields_]
            for name, struct in (
                ("nnd_pace_plan", items._Plan), ("nnd_pace_worker", items._Worker), ("nnd_pace_item", items._Item),
                ("nnd_paced_item", items._PacedItem),
            )
        },
    }  # fmt: skip
    structs = (items._Plan, items._Worker, items._Item, items._PacedItem)
    sizes = [items._POINT.itemsize, *map(ctypes.sizeof, structs)]
    numbers = ",".join(
        ",".join((f"sizeof(struct {name})", *(f"offsetof(struct {name}, {field})" for field, _ in fields)))
        for name, fields in want.items()
    )
    export = '__attribute__((visibility("default")))'
    source = f'#include "pacing/paced_item.h"\n#include <stddef.h>\n{export} long places[] = {{{numbers}}};'
    library = ctypes.CDLL(str(library_from_source([source], tmp_path)))
    places = [
        place
        for size, fields in zip(sizes, want.values(), strict=True)
        for place in (size, *(place for _, place in fields))
    ]
    assert list((ctypes.c_long * len(places)).in_dll(library, "places")) == places


def test_an_item_without_a_plan_is_timed_and_never_sleeps(virtual_pace: VirtualPace) -> None:
    item, begin = item_of(None), virtual_pace.now
    virtual_pace.begin(item.address, 0, SECOND)
    for point in (2, 0, 3, 1):
        virtual_pace.work((point + 1) * MS)
        virtual_pace.wait(2 * MS)  # others work or sleep for it, which is no work of this thread
        virtual_pace.point(point)
    virtual_pace.work(5 * MS)
    virtual_pace.end()
    assert item.workers[0].sleeps == item.workers[0].slept == 0
    assert item.times.tolist() == [3 * MS, 4 * MS, 5 * MS, 6 * MS]
    assert item.latency == virtual_pace.now - begin == 23 * MS
    assert item.order.tolist() == [1, 3, 0, 2]
    assert item.used == item.workers[0].longest_run == 15 * MS


@pytest.mark.parametrize(("durations", "sleeps"), [
    ([10, 10, 10, 10], [[10, 25], [35, 50], [60, 90]]),
    ([0, 0, 0, 0], [[0, 17.5], [17.5, 115 / 3], [115 / 3, 90]]),  # a quarter of 70, a third of 62.5, the rest
])  # fmt: skip
def test_delays_fill_the_time_that_is_granted(durations, sleeps, virtual_pace) -> None:
    plan = PacePlan(np.full(4, 10.0 * MS), np.array([1, 1, 2, 0]) / 4, ONE_PART, 0.0, burst=0.0)
    item = item_of(plan)
    got = worked(virtual_pace, item, 100 * MS, [duration * MS for duration in durations])
    np.testing.assert_allclose(got, sleeps, atol=3 * NEARLY / MS)  # nothing follows behind the last operator
    assert item.times.tolist() == [duration * MS for duration in durations]
    assert item.used == sum(durations) * MS
    assert item.workers[0].longest_run == durations[0] * MS
    assert item.workers[0].waiting_used == 0


@pytest.mark.parametrize(("shares", "reserve", "sleeps"), [
    ([0, 0, 1.0, 0], 7.0, [[30, 83]]), ([0.5, 0.5, 0, 0], 0.0, [[10, 40], [50, 80]]),
], ids=["reserve", "twice"])  # fmt: skip
def test_what_is_kept_in_reserve_is_not_slept_and_sleep_is_no_work_that_took_longer(
    virtual_pace: VirtualPace, shares, reserve, sleeps
) -> None:
    plan = PacePlan(np.full(4, 10.0 * MS), np.array(shares), ONE_PART, reserve * MS, burst=0.0)
    found = worked(virtual_pace, item_of(plan), 100 * MS, [10 * MS] * 4)
    np.testing.assert_allclose(found, sleeps, atol=2 * NEARLY / MS)


def test_a_late_item_does_not_sleep(pace_library: PaceLibrary) -> None:
    item = item_of(PacePlan(np.full(4, 10.0 * MS), np.array([1, 1, 1, 0]) / 3, ONE_PART, 0.0))
    passed(pace_library, item, MS)
    assert item.workers[0].sleeps == 0
    passed(pace_library, item, SECOND, begin=time.clock_gettime_ns(time.CLOCK_MONOTONIC) - 2 * SECOND)
    assert item.workers[0].sleeps == 0
    assert item.latency >= 2 * SECOND


def test_on_the_system_s_clock_no_sleep_ends_before_it_is_asked_to(pace_library: PaceLibrary) -> None:
    item = item_of(PacePlan(np.full(4, 1.0 * MS), np.array([1, 1, 1, 0]) / 3, ONE_PART, 0.0, burst=0.0))
    took: list[int] = []

    def sleep() -> None:
        while not item.workers[0].sleeps and len(took) < 100:  # a hold-up may leave an item nothing to sleep in
            before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            passed(pace_library, item, 20 * MS)
            took.append(time.clock_gettime_ns(time.CLOCK_MONOTONIC) - before)

    thread = threading.Thread(target=sleep, daemon=True)  # a new one, whose sleeps were never late
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    lengths = np.diff(item.timeline().sleeps)
    assert 1 <= len(lengths) == item.workers[0].sleeps <= 3
    assert all(late >= -US * number for number, late in enumerate(item.late))  # each asks for so much at the most
    assert (lengths > 0).all()
    assert lengths.sum() == item.workers[0].slept <= item.latency <= took[-1]


def test_on_the_system_s_clocks_an_item_takes_no_more_than_it_is_seen_to(pace_library: PaceLibrary) -> None:
    item = item_of(None)
    before, used_before = time.clock_gettime_ns(time.CLOCK_MONOTONIC), time.thread_time_ns()
    pace_library.begin(item.address, 0, SECOND)
    sum(range(100_000))
    for point in range(4):
        time.sleep(0.01)
        pace_library.point(point)
    pace_library.end()
    took, used = time.clock_gettime_ns(time.CLOCK_MONOTONIC) - before, time.thread_time_ns() - used_before
    assert (item.times >= 10 * MS).all()
    assert item.times.sum() <= item.latency <= took
    assert 0 < item.used <= min(used, item.latency - 20 * MS)  # the thread did not run while it slept
    assert item.workers[0].slept == 0


def test_work_that_is_left_is_kept_time_for(virtual_pace: VirtualPace) -> None:
    assert slept_at_first(virtual_pace, ONE_SLEEP, 150 * MS, MS) == pytest.approx(50 * MS, abs=NEARLY)
    assert slept_at_first(virtual_pace, ONE_SLEEP, 150 * MS, 0) == pytest.approx(51 * MS, abs=NEARLY)


def test_no_sleep_is_shorter_than_is_worth_it(virtual_pace: VirtualPace) -> None:
    assert slept_at_first(virtual_pace, ONE_SLEEP, 100 * MS, MS) == 0
    assert slept_at_first(virtual_pace, ONE_SLEEP, 100 * MS + 99 * US, MS) == 0
    assert slept_at_first(virtual_pace, ONE_SLEEP, 100 * MS + 101 * US, MS) == pytest.approx(101 * US, abs=NEARLY)


def test_what_took_longer_so_far_is_expected_to_go_on_so(virtual_pace: VirtualPace) -> None:
    plan = PacePlan(np.array([20.0, 1, 1, 78]) * MS, np.array([1.0, 0, 0, 0]), ONE_PART, 0.0, burst=0.0)
    for held_up in (0, 15 * MS):  # whoever has the processor meanwhile
        # 40 ms for what takes 20, after runs that took as planned: the other 80 take 133.33 of 130, or of 140
        assert slept_at_first(virtual_pace, plan, 170 * MS, 40 * MS - held_up, held_up=held_up) == 0
        slept = slept_at_first(virtual_pace, plan, 180 * MS, 40 * MS - held_up, held_up=held_up)
        assert slept == pytest.approx(20 * MS / 3, abs=NEARLY)


def test_what_took_longer_in_earlier_runs_is_expected_to_do_so_again(virtual_pace: VirtualPace) -> None:
    plan = PacePlan(np.full(4, 25.0 * MS), np.array([1.0, 0, 0, 0]), ONE_PART, 0.0, burst=0.0)
    # the other 75 take 75 or, at (0.1 * 3 + 0.25) / (0.1 + 0.25), 117.86, of 115 that are left, or of 120
    for stretch, budget, slept in ((1.0, 140, 40.0), (3.0, 140, 0.0), (3.0, 145, 120 - 75 * 0.55 / 0.35)):
        got = slept_at_first(virtual_pace, plan, budget * MS, 25 * MS, stretch=stretch)
        assert got == pytest.approx(slept * MS, abs=NEARLY)


def test_short_work_is_slept_behind_once(virtual_pace: VirtualPace) -> None:
    plan = serial_plan(np.full(4, 1000.0), WHOLE, SECOND, 0.0)
    item = item_of(plan)
    (sleep,) = worked(virtual_pace, item, 10 * MS, [US] * 4)  # none but the last is worth a sleep
    np.testing.assert_allclose(sleep, [3 * US / MS, 10 - US / MS], atol=NEARLY / MS)
    assert item.workers[0].longest_run == 3 * US


def test_work_since_the_last_sleep_counts_in_the_next_item_unless_the_thread_rested(virtual_pace: VirtualPace) -> None:
    plan = PacePlan(np.array([1.0, 1, 1, 1]) * MS, np.array([1, 1, 1, 0]) / 3, ONE_PART, 0.0, burst=3.5 * MS)
    before = [(0, 0, [3, 9]), (400 * US, 0, [2, 8]), (0, 200 * US, [1, 7]), (0, 400 * US, [3, 9])]
    for other_work, rest, want in before:  # nothing, 1.4 ms since the last sleep, then 2 ms, then nothing
        virtual_pace.work(other_work)
        virtual_pace.wait(rest)
        (sleep,) = worked(virtual_pace, item_of(plan), 10 * MS, [MS] * 4)
        np.testing.assert_allclose(sleep, want, atol=NEARLY / MS)


def test_a_sleep_is_asked_to_end_earlier_by_what_sleeps_are_usually_late(virtual_pace: VirtualPace) -> None:
    def late(lateness: int, num_sleeps: int) -> list[int]:
        """Returns by how many microseconds sleeps end late that all end so much later than they are asked to."""
        virtual_pace.wake_late(lateness * US)
        found = []
        for _ in range(num_sleeps):
            item = item_of(ONE_SLEEP)
            (sleep,) = worked(virtual_pace, item, 150 * MS, [MS, MS, MS, 97 * MS])
            found += item.late
            assert sleep == pytest.approx([1, 1 + item.workers[0].slept / MS])
        return [late // US for late in found]

    assert late(80, 84) == [*range(80, 0, -1), 0, 1, 0, 1]
    assert late(0, 82) == [*range(-80, 0), 0, 0]
    assert late(400, 152) == [*range(400, 250, -1), 250, 250]  # of what is no habit, no more than 150


def test_points_of_submodels_follow_each_other(virtual_pace: VirtualPace) -> None:
    item = item_of(None, 5)
    virtual_pace.begin(item.address, 0, SECOND)
    virtual_pace.count_from(3)
    virtual_pace.work(4 * MS)
    virtual_pace.point(1)
    virtual_pace.count_from(0)
    virtual_pace.work(2 * MS)
    virtual_pace.point(2)
    virtual_pace.end()
    assert item.times.tolist() == [0, 0, 2 * MS, 0, 4 * MS]
    assert item.order[[4, 2]].tolist() == [0, 1]


def test_points_outside_of_an_item_are_nothing(virtual_pace: VirtualPace) -> None:
    item = item_of(None)
    virtual_pace.begin(item.address, 0, SECOND)
    virtual_pace.work(MS)
    virtual_pace.point(4)
    virtual_pace.end()
    assert not item.times.any()
    virtual_pace.point(7)
    virtual_pace.count_from(7)


def test_the_busiest_window_is_what_was_worked_in_ten_milliseconds(virtual_pace: VirtualPace) -> None:
    durations = np.array([1, 2, 4, 1]) * MS
    item = item_of(PacePlan(durations.astype(float), np.array([2, 1, 1, 0]) / 4, ONE_PART, 0.0, burst=0.0))
    sleeps = worked(virtual_pace, item, 20 * MS, durations.tolist())
    np.testing.assert_allclose(sleeps, [[1, 7], [9, 12], [16, 19]], atol=3 * NEARLY / MS)
    assert item.busiest == pytest.approx(6 * MS, abs=3 * NEARLY)  # from 7 to 17
    worked(virtual_pace, item, 8 * MS, durations.tolist())
    assert item.busiest == 8 * MS  # without a sleep
    assert item.times.tolist() == durations.tolist()


def test_threads_have_items_of_their_own(pace_library: PaceLibrary) -> None:
    several = [item_of(None) for _ in range(4)]

    def work(item: ItemMemory, rounds: int) -> None:
        pace_library.begin(item.address, 0, SECOND)
        for _ in range(rounds):
            pace_library.point(rounds % 4)
        pace_library.end()

    threads = [threading.Thread(target=work, args=(item, 100 + number)) for number, item in enumerate(several)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [np.flatnonzero(item.times).tolist() for item in several] == [[0], [1], [2], [3]]


def chosen_plan(durations: list[int], sharing: list[int], presets: list[int], budget: int) -> PacePlan:
    shares = PairShares(np.array(sharing, float), np.array(presets, float), is_chosen=True)
    return serial_plan(np.array(durations, float), np.full(len(durations), True), budget, 0.0, pairs=shares)


@pytest.mark.parametrize(("sharing", "presets", "sleeps"), [
    ([0, 0, 0, 0], [0, 3, 0, 0], [[20, 23]]),  # nothing else is slept, whatever time is left
    ([0, 0, 0, 0], [2, 0, 3, 0], [[10, 12], [32, 35]]),
    ([1, 0, 1, 0], [0, 4, 0, 0], [[10, 28], [38, 42], [52, 70]]),  # presets go first, the rest is shared
    ([1, 0, 0, 0], [5, 0, 0, 0], [[10, 50]]),  # two pairs with one first operator
])  # fmt: skip
def test_chosen_pairs_are_slept_between_and_presets_as_they_are(virtual_pace, sharing, presets, sleeps) -> None:
    durations, budget = [10 * MS] * 4, 80 * MS
    plan = chosen_plan(durations, sharing, [one * MS for one in presets], budget)
    assert worked(virtual_pace, item_of(plan), budget, durations) == [pytest.approx(one, abs=1e-5) for one in sleeps]
    expected = expected_timeline(plan, budget)
    np.testing.assert_allclose(expected.sleeps / MS, sleeps, atol=1e-5)


def test_a_late_run_sleeps_where_it_must_and_nowhere_else(virtual_pace: VirtualPace) -> None:
    plan = chosen_plan([10 * MS] * 4, [0, 0, 1, 0], [3 * MS, 0, 0, 0], 50 * MS)
    assert worked(virtual_pace, item_of(plan), 50 * MS, [20 * MS] * 4) == [[20, 23]]


def test_nothing_is_slept_between_the_parts_of_an_operator_where_pairs_are_chosen(virtual_pace: VirtualPace) -> None:
    plan = chosen_plan([10 * MS] * 2, [1, 0], [0, 0], 60 * MS)
    item = item_of(plan, 2)
    virtual_pace.begin(item.address, 0, 60 * MS)
    passes = Pass.from_address(item.address)
    for point in range(2):
        for part in range(1, 5):
            virtual_pace.work(10 * MS // 4)
            passes(item.address, 0, point, part, 4)
    virtual_pace.end()
    assert (item.timeline().sleeps / MS).tolist() == [pytest.approx([10, 50], abs=1e-5)]


def test_a_library_of_something_else_is_refused(tmp_path: Path) -> None:
    export = '__attribute__((visibility("default"))) const int nnd_pace_version = '
    for number, (source, reason) in enumerate((
        ("int nothing_of_ours;", "version"), (f"{export}{items.LIBRARY_VERSION + 1};", "version"),
        (f"{export}{items.LIBRARY_VERSION};", "lacks"),
    )):  # fmt: skip
        folder = tmp_path / str(number)
        folder.mkdir()
        with pytest.raises(UnavailableError, match=reason):
            PaceLibrary(library_from_source([source], folder))
