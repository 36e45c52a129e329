# SPDX-License-Identifier: Apache-2.0
"""The library of delays: what lies where, how long it sleeps, and that it never makes a late item later.

Times have no upper bounds here, for a test's thread may be held up for any time; without sleeps nothing can be late.
"""

import ctypes
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from broken_libraries import isa_of_this_machine
from nndeploy_native.library import library_from_source

from nndeploy.errors import BundleError
from nndeploy.files.shared_object import library_from_bytes
from nndeploy.pacing import item as items
from nndeploy.pacing.item import ItemMemory, PlanMemory
from nndeploy.pacing.library import PaceLibrary
from nndeploy.pacing.plan import PacePlan, serial_plan

MS = 1_000_000
SECOND = 1000 * MS
WHOLE, ONE_PART = np.full(4, False), np.ones(4, np.int64)


def item_of(plan: PacePlan | None, num_points: int = 4) -> ItemMemory:
    item = ItemMemory(num_points, 1)
    item.take(None if plan is None else PlanMemory(plan, np.arange(num_points)))
    return item


def passed(library: PaceLibrary, item: ItemMemory, budget: int, *, begin: int = 0) -> None:
    library.begin(item.address, begin, budget)
    for point in range(len(item.times)):
        library.passes(point)
    library.end()


def test_structures_are_those_of_the_header(tmp_path: Path) -> None:
    want: dict[str, list[tuple[str, int]]] = {
        "nnd_pace_point": [(name, field[1]) for name, field in (items._POINT.fields or {}).items()],
        **{
            name: [(field.rstrip("_"), getattr(struct, field).offset) for field, *_ in struct._fields_]
            for name, struct in (
                ("nnd_pace_plan", items._Plan), ("nnd_pace_worker", items._Worker), ("nnd_pace_item", items._Item)
            )
        },
    }  # fmt: skip
    sizes = [items._POINT.itemsize, *map(ctypes.sizeof, (items._Plan, items._Worker, items._Item))]
    numbers = ",".join(
        ",".join((f"sizeof(struct {name})", *(f"offsetof(struct {name}, {field})" for field, _ in fields)))
        for name, fields in want.items()
    )
    export = '__attribute__((visibility("default")))'
    source = f'#include "pace.h"\n#include <stddef.h>\n{export} long places[] = {{{numbers}}};'
    isa = isa_of_this_machine()
    library = library_from_bytes(library_from_source(source, isa, tmp_path))
    places = [
        place
        for size, fields in zip(sizes, want.values(), strict=True)
        for place in (size, *(place for _, place in fields))
    ]
    assert list((ctypes.c_long * len(places)).in_dll(library, "places")) == places


def test_an_item_without_a_plan_is_timed_and_never_sleeps(pace_library: PaceLibrary) -> None:
    item = item_of(None)
    pace_library.begin(item.address, 0, SECOND)
    for point in (2, 0, 3, 1):
        time.sleep(0.002)
        pace_library.passes(point)
    pace_library.end()
    assert item.workers[0].sleeps == 0
    assert (item.times >= 2 * MS).all()
    assert item.latency >= item.times.sum()
    assert item.order.tolist() == [1, 3, 0, 2]
    assert item.used < item.latency  # others slept for it, which is no work of this thread
    assert item.workers[0].longest_run >= item.used


@pytest.mark.serial
def test_delays_fill_the_time_that_is_granted(pace_library: PaceLibrary) -> None:
    plan = PacePlan(np.full(4, 10.0 * MS), np.array([1, 1, 1, 0]) / 3, ONE_PART, 0.0, burst=0.0)
    item = item_of(plan)
    passed(pace_library, item, 100 * MS)
    assert item.workers[0].sleeps == 3  # behind the last operator nothing follows
    assert item.workers[0].slept + item.times.sum() >= 80 * MS  # on a busy machine nothing at all may take long too
    assert item.workers[0].slept - sum(item.late) <= 90 * MS  # 100 less the last operator's 10


def test_a_late_item_does_not_sleep(pace_library: PaceLibrary) -> None:
    item = item_of(serial_plan(np.full(4, 10.0 * MS), WHOLE, SECOND, 0.0))
    passed(pace_library, item, MS)
    assert item.workers[0].sleeps == 0
    passed(pace_library, item, SECOND, begin=time.clock_gettime_ns(time.CLOCK_MONOTONIC) - 2 * SECOND)
    assert item.workers[0].sleeps == 0
    assert item.latency >= 2 * SECOND


@pytest.mark.serial
def test_work_that_is_left_is_kept_time_for(pace_library: PaceLibrary) -> None:
    plan = PacePlan(np.array([1.0, 1.0, 1.0, 97.0]) * MS, np.array([1.0, 0, 0, 0]), ONE_PART, 0.0, burst=0.0)
    item = item_of(plan)
    pace_library.begin(item.address, 0, 150 * MS)
    pace_library.passes(0)
    slept = item.workers[0].slept
    pace_library.end()
    assert slept + item.times[0] >= 50 * MS  # on a busy machine nothing at all may take long too
    assert slept - sum(item.late) <= 51 * MS  # 150 less the 99 that are to come


@pytest.mark.serial
def test_what_took_longer_so_far_is_expected_to_go_on_so(pace_library: PaceLibrary) -> None:
    plan = PacePlan(np.array([20.0, 1, 1, 78]) * MS, np.array([1.0, 0, 0, 0]), ONE_PART, 0.0, burst=0.0)
    item = item_of(plan)
    pace_library.begin(item.address, time.clock_gettime_ns(time.CLOCK_MONOTONIC) - 40 * MS, 170 * MS)
    pace_library.passes(0)  # 40 ms for what takes 20, after runs that took as planned: the other 80 take 133 of 130
    pace_library.end()
    assert item.workers[0].sleeps == 0


def test_what_took_longer_in_earlier_runs_is_expected_to_do_so_again(pace_library: PaceLibrary) -> None:
    plan = PacePlan(np.full(4, 25.0 * MS), np.array([1.0, 0, 0, 0]), ONE_PART, 0.0, burst=0.0)
    for stretch, sleeps in ((1.0, 1), (3.0, 0)):
        item = ItemMemory(4, 1)
        memory = PlanMemory(plan, np.arange(4), stretch)
        item.take(memory)
        pace_library.begin(item.address, time.clock_gettime_ns(time.CLOCK_MONOTONIC) - 25 * MS, 140 * MS)
        pace_library.passes(0)  # the other 75 take 75 or, at (0.1 * 3 + 0.25) / (0.1 + 0.25), 118 of 115 that are left
        pace_library.end()
        assert item.workers[0].sleeps == sleeps


def test_short_work_is_not_slept_behind(pace_library: PaceLibrary) -> None:
    item = item_of(serial_plan(np.full(4, 1000.0), WHOLE, SECOND, 0.0))
    passed(pace_library, item, 10 * MS)
    assert item.workers[0].sleeps <= 1  # a microsecond an operator: none of them is worth a sleep but by hold-ups


def test_points_of_submodels_follow_each_other(pace_library: PaceLibrary) -> None:
    item = item_of(None, 5)
    pace_library.begin(item.address, 0, SECOND)
    pace_library.count_from(3)
    pace_library.passes(1)
    pace_library.count_from(0)
    pace_library.passes(2)
    pace_library.end()
    assert np.flatnonzero(item.times).tolist() == [2, 4]
    assert item.order[[4, 2]].tolist() == [0, 1]


def test_points_outside_of_an_item_are_nothing(pace_library: PaceLibrary) -> None:
    item = item_of(None)
    pace_library.begin(item.address, 0, SECOND)
    pace_library.passes(4)
    pace_library.end()
    assert not item.times.any()
    pace_library.passes(7)
    pace_library.count_from(7)


def test_the_busiest_window_is_what_was_worked_in_ten_milliseconds(pace_library: PaceLibrary) -> None:
    item = item_of(PacePlan(np.full(4, 1.0 * MS), np.full(4, 0.25), ONE_PART, 0.0, burst=0.0))
    pace_library.begin(item.address, 0, 200 * MS)
    for point in range(4):
        end = time.perf_counter_ns() + 2 * MS
        while time.perf_counter_ns() < end:
            pass
        pace_library.passes(point)
    pace_library.end()
    assert 2 * MS <= item.busiest <= 10 * MS


def test_threads_have_items_of_their_own(pace_library: PaceLibrary) -> None:
    several = [item_of(None) for _ in range(4)]

    def work(item: ItemMemory, rounds: int) -> None:
        pace_library.begin(item.address, 0, SECOND)
        for _ in range(rounds):
            pace_library.passes(rounds % 4)
        pace_library.end()

    threads = [threading.Thread(target=work, args=(item, 100 + number)) for number, item in enumerate(several)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [np.flatnonzero(item.times).tolist() for item in several] == [[0], [1], [2], [3]]


def test_a_library_of_something_else_is_refused(tmp_path: Path) -> None:
    isa = isa_of_this_machine()
    export = '__attribute__((visibility("default"))) const int nnd_pace_version = '
    for number, (source, reason) in enumerate((
        ("int nothing_of_ours;", "of another version"),
        (f"{export}{items.PACE_VERSION + 1};", "of another version"),
        (f"{export}{items.PACE_VERSION};", "lacks a function"),
    )):  # fmt: skip
        folder = tmp_path / str(number)
        folder.mkdir()
        with pytest.raises(BundleError, match=reason):
            PaceLibrary(library_from_source(source, isa, folder))
