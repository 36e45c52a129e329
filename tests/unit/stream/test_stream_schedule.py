# SPDX-License-Identifier: Apache-2.0
"""The schedule: a record stays with its thread, no more threads compute than there are cores, all wake at the end."""

import itertools
import os
import threading
import time
from collections import Counter

import pytest
from streaming import within_limit

from nndeploy.stream.engine import schedule as schedules
from nndeploy.stream.engine.ends import Entrance, Exit
from nndeploy.stream.engine.habits import Habits
from nndeploy.stream.engine.queues import BasicQueue
from nndeploy.stream.engine.schedule import Schedule
from nndeploy.stream.engine.workers import Stage
from nndeploy.stream.items import Item
from nndeploy.stream.stopping import Stop


class Line:
    """Stages one after the other between a source and an exit; a stage is (function of an index, workers, options)."""

    def __init__(self, stages, num_cores=2, in_flight=8) -> None:
        self.schedule = Schedule(num_cores, in_flight)
        self.schedule.core_wait_ns = lambda: 0  # other programs on this machine have no say
        self.written, self.threads, self.stop = [], [], Stop()
        self.exit = Exit(self.schedule, 0)
        self.exit.write = lambda record: self.written.append(record.index)
        self.schedule.add(self.exit)
        self.queues, outlet = [], self.exit
        for work, workers, options in reversed(stages):
            workers = [self._worker(work, outlet) for _ in range(workers)]
            outlet = BasicQueue("stage", self.schedule, workers, in_flight, **options)
            self.schedule.add(outlet)
            self.queues.insert(0, outlet)
        self.entry = outlet

    def known_to_compute(self):
        """Nothing is learned: another process on this machine must not look like waiting."""
        for queue in self.queues:
            queue.habits.learn(1_000_000, 1_000_000)
            queue.habits.learn = lambda *_: None
        return self

    def _worker(self, work, outlet):
        def do(records) -> None:
            for record in records:
                self.threads.append((record.index, threading.current_thread().name))
            work([record.index for record in records])
            for record in records:
                outlet.put(record)

        return do

    def run(self, count, read=lambda index: None):
        def items():
            for index in range(count):
                read(index)
                yield Item(index, "made up", str(index), dict)

        source = Entrance(items(), self.schedule, self.entry, self.stop, Stage("source", 1).clocks()[0])
        self.schedule.add(source)
        within_limit(self.schedule.run)
        assert self.schedule.join(10)
        assert self.written == list(range(count))


def compute(seconds):
    """Keeps a core busy, as far as this thread goes."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_a_record_stays_with_one_thread_where_the_next_stage_is_free() -> None:
    line = Line([(lambda _: compute(0.0005), 2, {})] * 3).known_to_compute()
    line.run(100)
    by_record = Counter(index for index, _ in set(line.threads))
    assert sum(count == 1 for count in by_record.values()) > 10  # a thread for each stage would leave none


@pytest.mark.parametrize("is_crowded", [True, False])
def test_where_others_have_the_cores_a_thread_keeps_to_its_stage(monkeypatch, is_crowded) -> None:
    monkeypatch.setattr(schedules, "LOOK_NS", 0)
    monkeypatch.setattr(schedules, "LOOK_EVERY", 10**9)  # which stage limits is not looked for
    first: list[str] = []

    def slow(_):
        first.append(threading.current_thread().name)
        time.sleep(0.004)

    line = Line([(slow, 1, {}), (lambda _: time.sleep(0.0005), 1, {})])
    if is_crowded:
        line.schedule.core_wait_ns = lambda: 2 * time.perf_counter_ns()  # two threads wait at any time
    line.run(60)
    changes = sum(a != b for a, b in itertools.pairwise(first))
    assert (changes < 20) == is_crowded


@pytest.mark.parametrize(("computes", "workers", "most"), [(True, (4, 4), 1), (False, (6,), 6)])
def test_as_many_compute_as_there_are_cores_and_as_many_wait_as_there_are_workers(computes, workers, most) -> None:
    at_once, working, lock = [], [0], threading.Lock()

    def work(_):
        with lock:
            working[0] += 1
            at_once.append(working[0])
        compute(0.001) if computes else time.sleep(0.005)
        with lock:
            working[0] -= 1

    line = Line([(work, num, {}) for num in workers], num_cores=1, in_flight=30)
    (line.known_to_compute() if computes else line).run(60)
    assert max(at_once) == most


def test_a_source_that_waits_keeps_nobody_from_working() -> None:
    line = Line([(lambda _: None, 1, {})], num_cores=1)

    def read(index):
        if index:
            deadline = time.monotonic() + 20
            while len(line.written) < index:  # the next item comes once the one before it is written
                assert time.monotonic() < deadline
                time.sleep(0.001)

    line.run(5, read)


def test_a_record_stays_with_the_thread_that_waited_for_it() -> None:
    readers: dict[int, str] = {}

    def read(index):
        line.stop.wait_readable(silent, 0.002)
        readers[index] = threading.current_thread().name

    line = Line([(lambda _: compute(0.0005), 1, {})])
    silent = os.eventfd(0)
    line.run(100, read)
    os.close(silent)
    num_stayed = sum(readers[index] == name for index, name in line.threads)
    assert num_stayed > 80  # were the source taken for what limits, another thread would be woken for each


@pytest.mark.parametrize("delay_ns", [0, 1_000_000_000_000])
def test_batches_fill_while_there_is_more_to_do_and_the_last_one_does_not_wait(delay_ns) -> None:
    sizes = []
    line = Line([(lambda indices: sizes.append(len(indices)), 1, {"batch": 4, "delay_ns": delay_ns})], in_flight=12)
    line.run(30)
    assert sum(sizes) == 30
    assert sizes.count(4) >= (6 if delay_ns else 3)  # without a delay what is there is taken while the source reads


def test_a_batch_goes_when_its_time_is_over_though_the_source_waits() -> None:
    sizes = []
    line = Line([(lambda indices: sizes.append(len(indices)), 1, {"batch": 4, "delay_ns": 20_000_000})])

    def read(index):
        deadline = time.monotonic() + 20
        while index == 2 and not sizes:
            assert time.monotonic() < deadline
            time.sleep(0.001)

    line.run(4, read)
    assert sizes[0] == 2


def test_the_first_failure_ends_all_and_is_raised() -> None:
    def work(indices):
        if indices == [20]:
            raise ZeroDivisionError
        time.sleep(0.001)

    line = Line([(work, 3, {}), (work, 1, {})])
    with pytest.raises(ZeroDivisionError):
        line.run(1000)
    assert line.schedule.join(10)
    assert len(line.written) < 40


def test_a_record_that_is_lost_is_found_out() -> None:
    line = Line([(lambda _: None, 1, {})])
    line.exit.put = lambda record: None
    with pytest.raises(AssertionError, match="records are missing"):
        line.run(3)


def test_habits_follow_what_is_measured() -> None:
    habits = Habits(2)
    assert not habits.is_short
    habits.learn(10_000, 40_000)
    assert (habits.share, habits.is_short, habits.stage_ns()) == (0.25, True, 20_000)
    for _ in range(50):
        habits.learn(10**6, 10**6)
    assert habits.share == pytest.approx(1, abs=1e-3)
    assert not habits.is_short


def test_a_source_never_counts_as_load_however_busy_it_was() -> None:
    habits = Habits(1, may_wait=True)
    for _ in range(3):
        assert habits.share == 0
        habits.waited_ns = 400
        habits.learn(500, 1000)
    assert habits.stage_ns() == 1800, "while it is given nothing it limits nothing"
