# SPDX-License-Identifier: Apache-2.0
"""Queues: nothing is lost, nothing comes twice, nobody waits for ever, and memory stays flat."""

import sys
import threading
import time
import tracemalloc

import pytest
from streaming import within_limit

from nndeploy.errors import InputError
from nndeploy.stream.queues import AbortedError, BasicQueue, CopyQueue, SyncQueue, Tokens
from nndeploy.stream.records import Record


@pytest.fixture(autouse=True)
def short_turns():
    """Threads change places as often as the interpreter can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def record(index):
    return Record(index, f"item {index}", str(index))


def in_threads(*works):
    """Runs all at once, and returns what each of them gave."""
    results = [None] * len(works)

    def do(place, work):
        results[place] = work()

    def all_of_them():
        threads = [threading.Thread(target=do, args=pair, daemon=True) for pair in enumerate(works)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results

    return within_limit(all_of_them)


def put_all(queue, items):
    for item in items:
        queue.put(item)
    queue.close()


def get_all(queue, most=1):
    found = []
    while taken := queue.get(most):
        found += taken
    return found


@pytest.mark.parametrize(
    ("producers", "consumers", "capacity", "most"), [(1, 1, 1, 1), (3, 2, 2, 1), (2, 4, 5, 3), (4, 1, 8, 100)]
)
def test_each_item_of_a_basic_queue_is_taken_once(producers, consumers, capacity, most) -> None:
    queue = BasicQueue("q", capacity, producers)
    puts = [lambda n=n: put_all(queue, range(n, 3000, producers)) for n in range(producers)]
    found = in_threads(*puts, *[lambda: get_all(queue, most)] * consumers)[producers:]
    assert sorted(item for one in found for item in one) == list(range(3000))
    if producers == 1:
        assert all(one == sorted(one) for one in found)
    figures = queue.figures()
    assert (figures.num_passed, figures.depth) == (3000, 0)
    assert 0 < figures.max_depth <= capacity


def test_a_full_queue_makes_the_producer_wait() -> None:
    queue = BasicQueue("q", 2)
    done = []
    thread = threading.Thread(target=lambda: (put_all(queue, range(5)), done.append(True)), daemon=True)
    thread.start()
    time.sleep(0.05)
    assert not done
    assert queue.figures().depth == 2
    assert within_limit(lambda: get_all(queue)) == [0, 1, 2, 3, 4]
    thread.join(10)
    assert done
    assert queue.figures().put_wait_ns > 10_000_000


def test_the_end_comes_after_the_last_item_of_the_last_producer() -> None:
    queue = BasicQueue("q", 10, 2)
    queue.put(1)
    queue.close()
    queue.put(2)
    queue.close()
    assert [queue.get(), queue.get(), queue.get(), queue.get()] == [[1], [2], [], []]


def test_a_batch_is_full_or_its_time_is_over() -> None:
    queue = BasicQueue("q", 10)
    for i in range(5):
        queue.put(i)
    assert queue.get(4, 10**12) == [0, 1, 2, 3]  # it is full: nobody waits
    began = time.perf_counter()
    assert queue.get(4, 30_000_000) == [4]
    assert 0.03 <= time.perf_counter() - began < 5
    queue.put(5)
    queue.close()
    assert within_limit(lambda: queue.get(4, 10**12)) == [5]  # the end: nobody else can come


def test_a_consumer_that_waits_for_a_batch_goes_on_when_another_takes_its_items() -> None:
    queue = BasicQueue("q", 4)

    def patient():
        return queue.get(2, delay_ns=50_000_000)

    def quick():
        while not queue._items:
            time.sleep(0.001)
        time.sleep(0.01)  # the patient one waits for its second item now
        taken = queue.get()
        time.sleep(0.1)  # and its time is over
        queue.put("late")
        queue.close()
        return taken

    def producer():
        queue.put("early")

    assert in_threads(patient, quick, producer)[:2] == [["late"], ["early"]]


def test_abort_wakes_everybody() -> None:
    full, empty, tokens = BasicQueue("full", 1), BasicQueue("empty", 1), Tokens(1)
    full.put(0)
    tokens.take()
    sync = SyncQueue("sync", empty, 1, 1)
    parent = record(0)
    sync.put(parent.branch(0, 2, 0))

    def attempt(work):
        def done():
            try:
                work()
            except AbortedError:
                return "aborted"

        return done

    def abort():
        time.sleep(0.05)
        for queue in (full, empty, tokens, sync):
            queue.abort()

    works = (
        lambda: full.put(1),
        empty.get,
        lambda: empty.get(3, 10**12),
        tokens.take,
        lambda: sync.put(parent.branch(0, 2, 5)),
    )
    assert in_threads(*map(attempt, works), abort) == ["aborted"] * 5 + [None]
    with pytest.raises(AbortedError):
        full.put(2)


def copied_and_joined(num_records, kinds, workers, capacity):
    """Sends records to different workers and joins what they made; returns the joined records."""
    out = BasicQueue("out", capacity)
    sync = SyncQueue("sync", out, capacity, kinds * workers)
    queues = [BasicQueue(f"kind {kind}", capacity) for kind in range(kinds)]
    copy = CopyQueue("copy", queues, 2)

    def work(kind):
        while taken := queues[kind].get():
            (one,) = taken
            if one.index % 17 == kind:
                one.fail(InputError(f"kind {kind}"), f"kind {kind}")
            else:
                one.add({f"made {kind}": one.index})
            sync.put(one)
        sync.close()

    puts = [lambda n=n: put_all(copy, map(record, range(n, num_records, 2))) for n in range(2)]
    works = [lambda kind=kind: work(kind) for kind in range(kinds) for _ in range(workers)]
    return in_threads(*puts, *works, lambda: get_all(out))[-1]


@pytest.mark.parametrize(("kinds", "workers", "capacity"), [(2, 1, 1), (2, 3, 1), (3, 2, 2), (4, 3, 16)])
def test_copies_are_joined_once_whatever_is_full(kinds, workers, capacity) -> None:
    found = copied_and_joined(1500, kinds, workers, capacity)
    assert sorted(one.index for one in found) == list(range(1500))
    for one in found:
        if one.index % 17 < kinds:
            assert str(one.error) == f"item {one.index}: kind {one.index % 17}"
            assert one.stage == f"kind {one.index % 17}"
            assert one.made == {}
        else:
            assert one.error is None
            assert one.made == {f"made {kind}": one.index for kind in range(kinds)}


def test_the_first_of_two_errors_is_the_record_s() -> None:
    out = BasicQueue("out", 2)
    sync = SyncQueue("sync", out, 2, 2)
    parent = record(3)
    for place in (1, 0):
        branch = parent.branch(place, 2, 0)
        branch.fail(InputError(f"place {place}"))
        sync.put(branch)
        sync.close()
    assert get_all(out) == [parent]
    assert str(parent.error) == "item 3: place 0"


def test_tokens_limit_how_many_are_out() -> None:
    tokens, out, most = Tokens(3), [0], [0]
    lock = threading.Lock()

    def work():
        for _ in range(300):
            tokens.take()
            with lock:
                out[0] += 1
                most[0] = max(most[0], out[0])
            with lock:
                out[0] -= 1
            tokens.give_back()

    in_threads(*[work] * 6)
    assert 1 <= most[0] <= 3


def test_memory_stays_flat_however_many_pass() -> None:
    copied_and_joined(200, 2, 2, 4)
    tracemalloc.start()
    try:
        basic = BasicQueue("q", 8)
        in_threads(lambda: put_all(basic, map(record, range(4000))), lambda: sum(1 for _ in iter(basic.get, [])))
        assert tracemalloc.get_traced_memory()[1] < 400_000
    finally:
        tracemalloc.stop()


def test_room_for_two_wakes_two() -> None:
    queue = BasicQueue("q", 2)
    for i in range(2):
        queue.put(i)
    threads = [threading.Thread(target=queue.put, args=(i,), daemon=True) for i in (2, 3)]
    for thread in threads:
        thread.start()
    time.sleep(0.05)  # both wait
    assert queue.get(2) == [0, 1]
    for thread in threads:
        thread.join(10)
    assert sorted(queue.get(2)) == [2, 3]


def test_a_full_sync_queue_takes_the_oldest_record() -> None:
    """Without that, one that is late could never come, and those that wait for it would wait for ever."""
    out = BasicQueue("out", 9)
    sync = SyncQueue("sync", out, 1, 2)
    early, late = record(1), record(0)
    sync.put(early.branch(0, 2, 1))
    within_limit(lambda: sync.put(late.branch(0, 2, 0)), 10)
    within_limit(lambda: sync.put(late.branch(1, 2, 0)), 10)
    within_limit(lambda: sync.put(early.branch(1, 2, 1)), 10)
    assert out.get(2) == [late, early]
