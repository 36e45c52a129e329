# SPDX-License-Identifier: Apache-2.0
"""Queues: nothing is lost, nothing comes twice, branches are joined once, a batch waits as long as it should."""

import threading
import time

import pytest
from streaming import within_limit

from nndeploy.errors import InputError
from nndeploy.stream.engine.queues import BasicQueue, CopyQueue, Siblings, SyncQueue
from nndeploy.stream.engine.schedule import Schedule
from nndeploy.stream.records import Record

pytestmark = pytest.mark.usefixtures("short_turns")


class Kept:
    """An outlet that keeps what it gets."""

    def __init__(self) -> None:
        self.records = []

    def put(self, record) -> None:
        self.records.append(record)


def record(index):
    return Record(index, f"item {index}", str(index))


def basic(capacity=4, batch=1, delay_ns=0):
    return BasicQueue("q", Schedule(1, capacity), [lambda records: None], capacity, batch, delay_ns)


def in_threads(works):
    """Runs all at once."""
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    within_limit(lambda: [thread.join() for thread in threads])


def test_a_basic_queue_gives_each_record_once_in_order_and_counts() -> None:
    queue = basic(capacity=3)
    assert not queue.is_ready()
    records = [record(i) for i in range(3)]
    for one in records:
        queue.put(one)
    assert queue.figures().depth == 3
    taken = []
    while queue.is_ready():
        taken += queue.take()
    assert taken == records
    figures = queue.figures()
    assert (figures.depth, figures.max_depth, figures.capacity, figures.num_passed) == (0, 3, 3, 3)


def test_more_than_may_be_on_their_way_is_a_bug() -> None:
    queue = basic(capacity=1)
    queue.put(record(0))
    with pytest.raises(AssertionError):
        queue.put(record(1))


def test_a_batch_is_full_or_its_time_is_over() -> None:
    queue = basic(capacity=10, batch=4, delay_ns=30_000_000)
    records = [record(i) for i in range(5)]
    for one in records:
        queue.put(one)
    assert queue.is_ready()
    assert queue.take() == records[:4]
    assert not queue.is_ready()
    assert 0 < queue.deadline_ns() - time.perf_counter_ns() <= 30_000_000
    time.sleep(0.03)
    assert queue.is_ready()
    assert queue.take() == records[4:]
    assert queue.deadline_ns() is None


def test_a_batch_without_a_time_waits_for_others_only_while_there_is_something_else_to_do() -> None:
    queue = basic(batch=2)
    queue.put(record(0))
    assert not queue.is_ready()
    assert queue.deadline_ns() <= time.perf_counter_ns()


def test_one_that_is_eager_takes_what_is_there() -> None:
    for is_eager in (True, False):
        queue = BasicQueue("q", Schedule(1, 9), [lambda records: None], 9, 3, is_eager=is_eager)
        assert not queue.is_ready()
        queue.put(record(0))
        assert queue.is_ready() is is_eager
        for number in range(1, 5):
            queue.put(record(number))
        assert [one.index for one in queue.take()] == [0, 1, 2]
        assert queue.is_ready() is is_eager
        assert [one.index for one in queue.take()] == [3, 4]


@pytest.mark.parametrize("kinds", [2, 3, 5])
def test_branches_that_come_in_any_order_are_joined_once(kinds) -> None:
    out = Kept()
    sync = SyncQueue("sync", out, 400)
    outlets = [Kept() for _ in range(kinds)]
    copy = CopyQueue("copy", outlets)
    records = [record(i) for i in range(400)]
    in_threads([lambda part=part: [copy.put(one) for one in part] for part in (records[:200], records[200:])])

    def work(kind):
        for one in outlets[kind].records[:: 1 if kind % 2 else -1]:
            if one.index % 17 == kind:
                one.fail(InputError(f"kind {kind}"), f"kind {kind}")
            else:
                one.add({f"made {kind}": one.index})
            sync.put(one)

    in_threads([lambda kind=kind: work(kind) for kind in range(kinds)])
    assert sorted(one.index for one in out.records) == list(range(400))
    for one in out.records:
        assert one is records[one.index]
        if one.index % 17 < kinds:
            assert str(one.error) == f"item {one.index}: kind {one.index % 17}"
            assert one.stage == f"kind {one.index % 17}"
            assert one.made == {}
        else:
            assert one.error is None
            assert one.made == {f"made {kind}": one.index for kind in range(kinds)}
    assert copy.figures().num_passed == 400
    figures = sync.figures()
    assert (figures.depth, figures.num_passed) == (0, 400)
    assert 0 < figures.max_depth <= 400


def test_the_first_of_two_errors_is_the_record_s() -> None:
    out = Kept()
    sync = SyncQueue("sync", out, 2)
    parent = record(3)
    for place in (1, 0):
        branch = parent.branch(place, 2)
        branch.fail(InputError(f"place {place}"))
        sync.put(branch)
    assert out.records == [parent]
    assert str(parent.error) == "item 3: place 0"


def test_siblings_come_back_in_order_when_the_last_one_is_there() -> None:
    siblings, one, two = Siblings(), record(0), record(1)
    assert siblings.add(one.branch(2, 3)) is None
    assert siblings.add(two.branch(1, 2)) is None
    assert siblings.add(one.branch(0, 3)) is None
    assert len(siblings) == 2
    assert [branch.place for branch in siblings.add(one.branch(1, 3))] == [0, 1, 2]
    assert [branch.place for branch in siblings.add(two.branch(0, 2))] == [0, 1]
    assert (len(siblings), siblings.max_depth, siblings.num_complete) == (0, 2, 2)
