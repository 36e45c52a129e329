# SPDX-License-Identifier: Apache-2.0
"""A stream that ends early or fails: what is on its way, how much is ever held, and that nobody waits for ever."""

import gc
import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest
from start_stop import ENDINGS, cycle
from streaming import Make, Program, Sink, items_of, pipeline, plan_of, stream, within_limit, x_to_y

from nndeploy.errors import BundleError
from nndeploy.stream.items import Item
from nndeploy.stream.stopping import Stop, stoppable

IDENTITY = Program(lambda x: {"y": x})


def loaded_by(function, workers=2, **options):
    return plan_of(pipeline(loaders=[([Make(("x",), ("x",), function)], workers)], runner=x_to_y()), **options)


def test_a_slow_record_holds_up_the_source_and_not_the_memory() -> None:
    read, slow = [], threading.Event()

    def load(x):
        if x == 0:
            slow.wait(20)
        return x

    def values():
        for item in items_of(range(200)):
            read.append(item.index)
            if item.index == 11:  # with 12 on their way, nobody may be let in before the first is out
                threading.Timer(0.2, slow.set).start()
            assert item.index < 12 or slow.is_set()
            yield item

    sink, _ = stream(loaded_by(load, in_flight=12), {"p": IDENTITY}, values())
    assert [one.index for one in sink.outcomes] == list(range(200))


def test_a_stop_finishes_what_is_on_its_way() -> None:
    stop, read = Stop(), []

    def values():
        for item in items_of(range(10**9)):
            read.append(item.index)
            if item.index == 50:
                stop.request()
            yield item

    sink, summary = stream(loaded_by(lambda x: x), {"p": IDENTITY}, values(), stop=stop)
    assert summary.is_stopped
    assert sink.ending == "discarded"
    assert [one.index for one in sink.outcomes] == list(range(50))


@pytest.mark.parametrize("waits", [lambda stop, pipe: stop.wait(), lambda stop, pipe: stop.wait_readable(pipe)])
def test_a_signal_stops_a_main_thread_that_it_does_not_wake(waits) -> None:
    """As one that comes just before the thread waits: another thread is interrupted."""
    stop, (reading, writing) = Stop(), os.pipe()
    before = signal.signal(signal.SIGUSR1, lambda *_: stop.request())
    signaller = threading.Timer(0.05, signal.raise_signal, (signal.SIGUSR1,))
    late = threading.Timer(20, stop.request)  # lest the test hangs
    try:
        signaller.start()
        late.start()
        assert not waits(stop, reading)
        assert late.is_alive()
    finally:
        late.cancel()
        signaller.join()
        signal.signal(signal.SIGUSR1, before)
        os.close(reading)
        os.close(writing)


def test_a_stop_wakes_a_reader_of_a_silent_pipe() -> None:
    reading, writing = os.pipe()
    stop = Stop()
    with os.fdopen(reading, "rb") as file:
        lines = stoppable(file, stop)
        os.write(writing, b"one\n")

        def values():
            for index in range(2):
                line = lines.readline()
                if index == 0:
                    threading.Timer(0.1, stop.request).start()
                yield Item(index, "pipe", "pipe", lambda line=line: {"x": line})

        sink, _ = stream(loaded_by(lambda x: x), {"p": IDENTITY}, values(), stop=stop, limit=10)
    os.close(writing)
    assert [one.outputs["y"] for one in sink.outcomes] == [b"one\n"]


@pytest.mark.parametrize("error", [ZeroDivisionError("a bug"), BundleError("a lie")])
@pytest.mark.parametrize("where", ["source", "load", "loader", "runner", "post", "sink"])
def test_what_is_no_error_of_a_record_ends_the_stream_wherever_it_comes_up(where, error) -> None:
    def at(place, value):
        if place == where and value == 30:
            raise error
        return value

    class Failing(Sink):
        def write(self, outcome):
            at("sink", outcome.index)

    def values():
        for item in items_of(range(100)):
            at("source", item.index)
            yield Item(item.index, "", "", lambda index=item.index: {"x": at("load", index)})

    plan = plan_of(pipeline(
        loaders=[([Make(("x",), ("x",), lambda x: at("loader", x))], 2), ([Make(("x",), ("z",), lambda x: x)], 2)],
        runner=x_to_y(), posts=[([Make(("y",), ("y",), lambda y: at("post", y))], 2)],
    ))  # fmt: skip
    sink, before = Failing(), threading.active_count()
    with pytest.raises(type(error), match=str(error)) as caught:
        stream(plan, {"p": Program(lambda x: {"y": at("runner", x)})}, values(), sink)
    assert sink.ending == "discarded"
    assert any(entry.name == "at" for entry in caught.traceback)  # it still says where
    time.sleep(0.05)
    assert threading.active_count() <= before


def test_who_waits_uses_no_time() -> None:
    def values():
        for item in items_of(range(2)):
            time.sleep(0.3)
            yield item

    began = time.process_time()
    stream(loaded_by(lambda x: x, workers=4), {"p": IDENTITY}, values())
    assert time.process_time() - began < 0.1


def test_unordered_outcomes_come_as_they_are_done() -> None:
    first = threading.Event()

    def load(x):
        if x == 0:
            first.wait(10)
        return x

    sink = Sink()
    stream(loaded_by(load), {"p": IDENTITY}, list(range(4)), sink, lambda one: first.set(), is_ordered=False)
    assert sink.outcomes[0].index != 0
    assert sorted(one.index for one in sink.outcomes) == [0, 1, 2, 3]


def test_streams_that_start_and_end_in_every_way_leave_nothing_and_never_stick() -> None:
    """`make bench-soak` does it ten thousand times."""
    dice = random.Random(20261126)  # noqa: S311 - no secret
    assert {cycle(dice) for _ in range(150)} == set(ENDINGS)


@pytest.mark.parametrize("num_threads", [1, 2])
def test_a_stream_goes_on_with_the_threads_that_the_system_gives(num_threads, monkeypatch) -> None:
    started, start = [], threading.Thread.start

    def start_some(thread):
        if thread.name.startswith("nndeploy stream"):
            if len(started) == num_threads:
                raise RuntimeError("can't start new thread")
            started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_some)
    sink, _ = stream(loaded_by(lambda x: time.sleep(0.001) or x), {"p": IDENTITY}, items_of(range(50)))
    assert [one.index for one in sink.outcomes] == list(range(50))
    assert len(started) == num_threads


def test_a_stream_that_gets_no_thread_at_all_says_so_and_is_discarded(monkeypatch) -> None:
    def refuse(thread):
        if thread.name.startswith("nndeploy stream"):
            raise RuntimeError("can't start new thread")
        start(thread)

    sink, start = Sink(), threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        stream(loaded_by(lambda x: x), {"p": IDENTITY}, items_of(range(5)), sink)
    assert sink.ending == "discarded"


def test_a_wait_ends_with_its_time_or_with_the_wish_to_end() -> None:
    stop = Stop()
    assert stop.wait(0)
    assert stop.wait(0.001)
    asking = threading.Thread(target=stop.request)
    asking.start()
    assert not within_limit(stop.wait)
    assert not stop.wait(60), "at once, as it was asked for before"
    asking.join()
    stop.close()


def test_streams_leave_no_descriptors() -> None:
    def pipes():
        links = (str(path.readlink()) for path in Path("/proc/self/fd").iterdir() if path.exists())
        return {link for link in links if link.startswith("pipe:")}

    before = pipes()
    for _ in range(20):
        stream(loaded_by(lambda x: x), {"p": IDENTITY}, items_of(range(3)))
    gc.collect()
    assert len(pipes() - before) < 20  # of the streams before this test some may be collected now
