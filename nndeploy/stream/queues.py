# SPDX-License-Identifier: Apache-2.0
"""The queues between the workers of a stream: basic, copy and sync, each bounded, each with its figures.

* `BasicQueue` holds records for equal workers: first come, first served, each record to one of them.
* `CopyQueue` gives each record, branched, to every one of several outlets: different workers that each need it all.
* `SyncQueue` joins the branches of a record again before it goes on: different workers that each make one part.

Only a basic queue has somebody who waits for records; copy and sync queues work in the thread of whoever puts, so a
record never waits for a thread that only passes it on. Everything that takes records is an `Outlet`: `put` waits
while there is no room, `close` says that one producer will put no more; after the last one the end goes on, behind
the last record. `abort` wakes everybody who waits, and each gets `AbortedError`.

Laws: a record that was put is taken once, unless the stream is aborted. Bounded queues cannot deadlock: records flow
one way, the branches of one copy queue stand in the same order in all of its outlets, and a sync queue that is full
always takes the oldest record it does not hold complete.
"""

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Condition, Lock
from typing import Generic, Protocol, TypeVar

from nndeploy.stream.records import Record

_T = TypeVar("_T")
_Put = TypeVar("_Put", contravariant=True)


class AbortedError(Exception):
    """The stream was aborted; the thread that gets this ends."""


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """What a queue did so far; waits are of all threads together, `max_depth` the most records it ever held."""

    name: str
    depth: int
    max_depth: int
    capacity: int
    num_passed: int
    put_wait_ns: int
    get_wait_ns: int


class Outlet(Protocol[_Put]):
    """Takes what a stage made."""

    def put(self, item: _Put) -> None:
        """Takes one; waits while there is no room.

        Raises:
            AbortedError: the stream was aborted.
        """

    def close(self) -> None:
        """Says that one producer will put no more."""


class BasicQueue(Generic[_T]):
    """A bounded queue, first in, first out, for any number of producers and consumers."""

    def __init__(self, name: str, capacity: int, num_producers: int = 1) -> None:
        """Makes a queue that ends after `num_producers` calls of `close`."""
        assert capacity > 0
        assert num_producers > 0
        self.name = name
        self.capacity = capacity
        lock = Lock()
        self._filled = Condition(lock)
        self._room = Condition(lock)
        self._items: deque[_T] = deque()
        self._num_open = num_producers
        self._is_aborted = False
        self._num_passed = self._max_depth = self._put_wait_ns = self._get_wait_ns = 0

    def put(self, item: _T) -> None:
        """Appends one item; waits while the queue is full."""
        with self._room:
            if len(self._items) >= self.capacity:
                self._wait_for_room()
            if self._is_aborted:
                raise AbortedError
            assert self._num_open > 0
            self._items.append(item)
            depth = len(self._items)
            if depth > self._max_depth:
                self._max_depth = depth
            self._filled.notify()

    def _wait_for_room(self) -> None:
        began = time.perf_counter_ns()
        while len(self._items) >= self.capacity and not self._is_aborted:
            self._room.wait()
        self._put_wait_ns += time.perf_counter_ns() - began

    def get(self, most: int = 1, delay_ns: int = 0) -> list[_T]:
        """Returns the next items, at least one; an empty list at the end of the stream.

        Waits for the first one, then up to `delay_ns` until there are `most`.

        Raises:
            AbortedError: the stream was aborted.
        """
        with self._filled:
            while not self._is_aborted:
                if not self._items and self._num_open > 0:
                    self._wait_for_item()
                if delay_ns and len(self._items) < most:
                    self._wait_for_more(most, delay_ns)
                if self._items or self._num_open == 0:
                    break  # else another consumer took what this one was waiting with
            if self._is_aborted:
                raise AbortedError
            items = self._items
            taken = [items.popleft() for _ in range(min(most, len(items)))]
            self._num_passed += len(taken)
            if taken:
                self._room.notify(len(taken))
            return taken

    def _wait_for_item(self) -> None:
        began = time.perf_counter_ns()
        while not self._items and self._num_open > 0 and not self._is_aborted:
            self._filled.wait()
        self._get_wait_ns += time.perf_counter_ns() - began

    def _wait_for_more(self, most: int, delay_ns: int) -> None:
        deadline = time.perf_counter_ns() + delay_ns
        most = min(most, self.capacity)
        while 0 < len(self._items) < most and self._num_open > 0 and not self._is_aborted:
            left_ns = deadline - time.perf_counter_ns()
            if left_ns <= 0:
                break
            self._filled.wait(left_ns / 1e9)

    def close(self) -> None:
        """Says that one producer will put no more; after the last one, what is left is taken, then the end."""
        with self._filled:
            self._num_open -= 1
            assert self._num_open >= 0 or self._is_aborted
            if self._num_open == 0:
                self._filled.notify_all()

    def abort(self) -> None:
        """Drops what is held and wakes everybody."""
        with self._filled:
            self._is_aborted = True
            self._items.clear()
            self._filled.notify_all()
            self._room.notify_all()

    def figures(self) -> QueueFigures:
        """Returns what the queue did so far."""
        return QueueFigures(
            self.name, len(self._items), self._max_depth, self.capacity,
            self._num_passed, self._put_wait_ns, self._get_wait_ns,
        )  # fmt: skip


class Producers:
    """Counts who still puts into something that holds nothing itself."""

    def __init__(self, count: int) -> None:
        self._lock = Lock()
        self._num_open = count

    def close(self) -> bool:
        """Counts one producer less; returns whether it was the last one."""
        with self._lock:
            self._num_open -= 1
            assert self._num_open >= 0
            return self._num_open == 0


class CopyQueue:
    """Gives each record to every outlet, as a branch of its own, in the same order to all of them."""

    def __init__(self, name: str, outlets: Sequence[Outlet[Record]], num_producers: int = 1) -> None:
        """Makes a queue that closes each of the outlets once, after `num_producers` calls of `close`."""
        self.name = name
        self._outlets = tuple(outlets)
        self._lock = Lock()
        self._producers = Producers(num_producers)
        self._num_put = 0
        self._put_wait_ns = 0

    def put(self, record: Record) -> None:
        """Hands the record to every outlet; waits until the last one has taken it."""
        record.load()
        began = time.perf_counter_ns()
        with self._lock:  # while it is held other producers wait, as they would for the outlet that is full
            serial, count = self._num_put, len(self._outlets)
            self._num_put += 1
            for place, outlet in enumerate(self._outlets):
                outlet.put(record.branch(place, count, serial))
            self._put_wait_ns += time.perf_counter_ns() - began

    def close(self) -> None:
        """Says that one producer will put no more."""
        if self._producers.close():
            for outlet in self._outlets:
                outlet.close()

    def figures(self) -> QueueFigures:
        """Returns what the queue did so far; it holds nothing itself."""
        return QueueFigures(self.name, 0, 0, len(self._outlets), self._num_put, self._put_wait_ns, 0)


class SyncQueue:
    """Joins the branches of a record into it and hands it on, once all of them have come."""

    def __init__(self, name: str, outlet: Outlet[Record], capacity: int, num_producers: int) -> None:
        """Makes a queue that holds about `capacity` records of which branches are missing."""
        assert capacity > 0
        self.name = name
        self.capacity = capacity
        self._outlet = outlet
        self._room = Condition(Lock())
        self._pending: dict[int, list[Record]] = {}
        self._num_open = num_producers
        self._is_aborted = False
        self._num_passed = self._max_depth = self._put_wait_ns = 0

    def put(self, branch: Record) -> None:
        """Takes one branch; with the last one of a record the record goes on."""
        with self._room:
            if not self._has_room(branch.serial):
                began = time.perf_counter_ns()
                while not self._has_room(branch.serial) and not self._is_aborted:
                    self._room.wait()
                self._put_wait_ns += time.perf_counter_ns() - began
            if self._is_aborted:
                raise AbortedError
            branches = self._pending.setdefault(branch.serial, [])
            branches.append(branch)
            self._max_depth = max(self._max_depth, len(self._pending))
            if len(self._pending) > 1:
                self._room.notify_all()  # a branch of the same record may be waiting
            if len(branches) < branch.num_places:
                return
            del self._pending[branch.serial]
            self._num_passed += 1
            self._room.notify_all()
        self._outlet.put(_joined(branches))

    def _has_room(self, serial: int) -> bool:
        pending = self._pending
        return len(pending) < self.capacity or serial in pending or serial < min(pending)

    def close(self) -> None:
        """Says that one producer will put no more."""
        with self._room:
            self._num_open -= 1
            assert self._num_open >= 0
            is_last = self._num_open == 0
            assert not (is_last and self._pending and not self._is_aborted), f"{self.name}: branches are missing"
        if is_last:
            self._outlet.close()

    def abort(self) -> None:
        """Drops what is held and wakes everybody."""
        with self._room:
            self._is_aborted = True
            self._pending.clear()
            self._room.notify_all()

    def figures(self) -> QueueFigures:
        """Returns what the queue did so far; depth counts records of which branches are missing."""
        return QueueFigures(
            self.name, len(self._pending), self._max_depth, self.capacity, self._num_passed, self._put_wait_ns, 0
        )


def _joined(branches: list[Record]) -> Record:
    branches.sort(key=_place)
    record = branches[0].parent
    assert record is not None
    record.join(branches)
    return record


def _place(branch: Record) -> int:
    return branch.place


class Tokens:
    """Limits how many are on their way: `take` waits for one, `give_back` returns it."""

    def __init__(self, count: int) -> None:
        assert count > 0
        self._back = Condition(Lock())
        self._num_left = count
        self._is_aborted = False

    def take(self) -> None:
        """Takes one; waits while there is none.

        Raises:
            AbortedError: the stream was aborted.
        """
        with self._back:
            while self._num_left == 0 and not self._is_aborted:
                self._back.wait()
            if self._is_aborted:
                raise AbortedError
            self._num_left -= 1

    def give_back(self) -> None:
        """Returns one."""
        with self._back:
            self._num_left += 1
            self._back.notify()

    def abort(self) -> None:
        """Wakes everybody who waits."""
        with self._back:
            self._is_aborted = True
            self._back.notify_all()
