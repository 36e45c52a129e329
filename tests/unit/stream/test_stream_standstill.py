# SPDX-License-Identifier: Apache-2.0
"""For how long a stream stands still: work that hangs counts wherever it is, a source that nobody feeds does not."""

import os
import threading
import time

import pytest
from streaming import Make, Program, Sink, items_of, pipeline, plan_of, wait_until, within_limit, x_to_y

from nndeploy.stream.engine.engine import Stream, StreamOptions
from nndeploy.stream.items import Item
from nndeploy.stream.stopping import Stop, stoppable

MOMENT_NS = 50_000_000
IDENTITY = Program(lambda x: {"y": x})


class Running:
    """A stream that runs in a thread of its own, until it is told to `go_on` where it hangs."""

    def __init__(self, where="", runner=None, values=None, stop=None):
        self.hangs, self.go_on = threading.Event(), threading.Event()
        self._where = where
        plan = plan_of(pipeline(
            loaders=[([Make(("x",), ("x",), lambda x: self.at("loader", x))], 2)], runner=runner or x_to_y(),
        ))  # fmt: skip
        self.sink = Sink()
        self.sink.write = lambda outcome: self.at("sink", outcome.index)
        self.sink.finish = lambda: self.at("finish", 5)
        self.stream = Stream(plan, {"p": [Program(lambda x: {"y": self.at("runner", x)})]}, StreamOptions(), stop)
        self._values = values or self.values()
        self._thread = threading.Thread(target=lambda: self.stream.run(self._values, self.sink), daemon=True)
        self._thread.start()

    def at(self, place, value):
        if place == self._where and value == 5:
            self.hangs.set()
            assert self.go_on.wait(30)
        return value

    def values(self):
        for item in items_of(range(20)):
            self.at("source", item.index)
            yield item

    def depth_of_runner(self):
        return next(queue.depth for queue in self.stream.queues() if queue.name == "p: runner")

    def end(self):
        self.go_on.set()
        within_limit(self._thread.join)


def stands_still(stream):
    """Returns once a stream has been standing still for a moment."""

    def wait():
        while stream.standstill_ns() < MOMENT_NS:
            time.sleep(0.001)

    within_limit(wait)


@pytest.mark.parametrize("where", ["source", "loader", "runner", "sink", "finish"])
def test_what_hangs_counts_wherever_it_is(where) -> None:
    running = Running(where)
    assert running.hangs.wait(30)
    stands_still(running.stream)
    running.end()


def test_a_stream_that_moves_never_stands_still_for_long() -> None:
    longest, is_known = [0], threading.Event()

    def values():
        assert is_known.wait(30)
        for item in items_of(range(100)):
            time.sleep(0.002)
            longest[0] = max(longest[0], running.stream.standstill_ns())
            yield item

    running = Running(values=values())
    is_known.set()
    running.end()
    assert longest[0] < MOMENT_NS * 10  # 100 records took four times that


class Lines:
    """A pipe that gives an item a line, and the wish that its reader ends."""

    def __init__(self):
        self.stop = Stop()
        reading, self._writing = os.pipe()
        self._file = os.fdopen(reading, "rb")

    def give(self):
        os.write(self._writing, b"line\n")

    def values(self, *values):
        lines = stoppable(self._file, self.stop)
        for index, value in enumerate(values):
            lines.readline()
            yield Item(index, "pipe", "pipe", lambda value=value: {"x": value})

    def close(self):
        self._file.close()
        os.close(self._writing)


@pytest.fixture
def lines():
    made = Lines()
    yield made
    made.close()


def test_a_source_that_nobody_feeds_does_not_count_and_what_it_gave_does(lines) -> None:
    running = Running("runner", values=lines.values(4, 5), stop=lines.stop)
    lines.give()
    within_limit(lambda: wait_until(lambda: running.stream.summary.num_items == 1 and lines.stop.is_waiting))
    time.sleep(2 * MOMENT_NS / 1e9)
    assert running.stream.standstill_ns() == 0
    lines.give()
    assert running.hangs.wait(30)
    assert running.stream.standstill_ns() < 2 * MOMENT_NS  # the time without input is not counted in
    stands_still(running.stream)
    running.end()


def test_a_batch_that_waits_for_its_time_does_not_count(lines) -> None:
    running = Running(runner=x_to_y(batch=4, batch_delay_ns=3600 * 10**9), values=lines.values(4, 5), stop=lines.stop)
    lines.give()
    within_limit(lambda: wait_until(lambda: running.depth_of_runner() == 1 and lines.stop.is_waiting))
    time.sleep(2 * MOMENT_NS / 1e9)
    assert running.stream.standstill_ns() == 0
    lines.stop.request()
    running.end()
