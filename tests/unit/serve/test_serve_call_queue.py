# SPDX-License-Identifier: Apache-2.0
"""Calls wait for workers: so many at most, for so long at most, and each of them ends once."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from nndeploy.errors import BusyError, DeadlineError, UnavailableError
from nndeploy.serve.call_queue import Call, CallQueue
from nndeploy.serve.infer_request import Answer
from nndeploy.stream.records import Record


class Work:
    """Answers calls once `gate` is open, and keeps how many came together."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.batches: list[int] = []
        self.error: Exception | None = None
        self.numbers: Counter[str] = Counter()

    def __call__(self, calls: Sequence[Call]) -> None:
        self.batches.append(len(calls))
        self.gate.wait()
        if self.error is not None:
            raise self.error
        for call in calls:
            call.done.set_result(Answer({}, "1"))


@pytest.fixture
def work() -> Work:
    return Work()


@pytest.fixture
def queue_of(work: Work) -> Iterator[Callable[..., CallQueue]]:
    made: list[CallQueue] = []

    def queue(workers: int = 1, batch: int = 1, **options: Any) -> CallQueue:
        made.append(CallQueue(work, "m", **({"most_waiting": 4, "numbers": work.numbers} | options)))
        made[-1].batch = batch
        made[-1].start(workers)
        return made[-1]

    yield queue
    work.gate.set()
    for one in made:
        one.close(5.0)


def call(until_ns: int = 0) -> Call:
    return Call(Record(0, "", ""), until_ns)


def put(queue: CallQueue, count: int) -> list[Call]:
    calls = [call() for _ in range(count)]
    for one in calls:
        queue.put(one)
    return calls


def test_a_full_queue_refuses_at_once(queue_of, work, until) -> None:
    queue = queue_of(most_waiting=2)
    (first,) = put(queue, 1)
    until(lambda: work.numbers["running"] == 1)
    waiting = put(queue, 2)
    with pytest.raises(BusyError, match="2 requests"):
        queue.put(call())
    work.gate.set()
    assert [one.done.result(10).version for one in (first, *waiting)] == ["1"] * 3


def test_calls_that_wait_go_together(queue_of, work, until) -> None:
    queue = queue_of(batch=3, most_waiting=9)
    put(queue, 1)
    until(lambda: work.batches == [1])
    calls = put(queue, 7)
    work.gate.set()
    for one in calls:
        one.done.result(10)
    assert work.batches == [1, 3, 3, 1]


def test_a_call_waits_for_others_of_its_batch(queue_of, work) -> None:
    queue = queue_of(batch=2, batch_delay_ns=60_000_000_000)
    work.gate.set()
    first = put(queue, 1)[0]
    time.sleep(0.05)  # in which a worker that does not wait would take it
    assert not first.done.done()
    second = put(queue, 1)[0]
    assert [one.done.result(10).version for one in (first, second)] == ["1", "1"]
    assert work.batches == [2]


def test_a_call_does_not_wait_for_ever(queue_of, work) -> None:
    queue = queue_of(batch=2, batch_delay_ns=1_000_000)
    work.gate.set()
    assert put(queue, 1)[0].done.result(10)


def test_a_call_whose_time_is_over_is_never_run(queue_of, work, until) -> None:
    queue = queue_of()
    put(queue, 1)
    until(lambda: work.batches == [1])
    late = call(until_ns=time.monotonic_ns() + 1)
    queue.put(late)
    work.gate.set()
    with pytest.raises(DeadlineError, match="timed out"):
        late.done.result(10)
    assert work.batches == [1]


def test_a_call_that_nobody_waits_for_is_never_run(queue_of, work, until) -> None:
    queue = queue_of(most_waiting=2)
    put(queue, 1)
    until(lambda: work.batches == [1])
    gone, _ = put(queue, 2)
    assert gone.done.cancel()
    (stays,) = put(queue, 1)  # in its place
    work.gate.set()
    stays.done.result(10)
    assert work.batches == [1, 1, 1]


def test_a_bug_ends_its_calls_and_no_worker(queue_of, work) -> None:
    queue = queue_of()
    work.gate.set()
    work.error = ValueError("a bug")
    with pytest.raises(ValueError, match="a bug"):
        put(queue, 1)[0].done.result(10)
    work.error = None
    assert put(queue, 1)[0].done.result(10)


def test_closing_ends_what_is_there_and_takes_no_more(queue_of, work, until) -> None:
    queue = queue_of()
    calls = put(queue, 3)
    closing = threading.Thread(target=queue.close, args=(30.0,))
    closing.start()

    def is_closed() -> bool:
        try:
            queue.put(call())
        except UnavailableError:
            return True
        except BusyError:
            pass
        return False

    until(is_closed)
    work.gate.set()
    closing.join(10)
    assert all(one.done.result(10) for one in calls)


def test_closing_waits_no_longer_than_it_may(queue_of, work, until) -> None:
    queue = queue_of()
    running, waiting = put(queue, 2)
    until(lambda: work.numbers["running"] == 1)
    assert not queue.close(0.05)
    with pytest.raises(UnavailableError, match="shutting down"):
        waiting.done.result(10)
    assert not running.done.done()


def test_several_workers_run_at_once(queue_of, work, until) -> None:
    queue = queue_of(workers=3)
    put(queue, 3)
    until(lambda: work.numbers["running"] == 3)
    assert 0 < work.numbers["began_ns"] < time.monotonic_ns()
