# SPDX-License-Identifier: Apache-2.0
"""The queues between the workers of a stream: basic, copy and sync, each with its figures.

* `BasicQueue` holds records for equal workers: first come, first served, each record to one of them.
* `CopyQueue` gives each record, branched, to every one of several outlets: different workers that each need it all.
* `SyncQueue` joins the branches of a record again before it goes on: different workers that each make one part.

Only in a basic queue records wait for a worker; copy and sync queues work in the thread of whoever puts, so a record
never waits for a thread that only passes it on. Everything that takes records is an `Outlet`, and none of them makes
its caller wait: how much a queue holds is limited by the records that the schedule lets in.
"""

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Protocol

from nndeploy.runtime.latency import Latencies
from nndeploy.stream.engine.habits import Habits
from nndeploy.stream.engine.schedule import AbortedError, Schedule, Worker
from nndeploy.stream.records import Record

MAX_WAITS = 4096
"""Percentiles are taken of a sample where more records waited."""


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """What a queue did so far; `max_depth` is the most records that it ever held.

    `waits` holds how long records waited for a worker, None where none does.
    """

    name: str
    depth: int
    max_depth: int
    capacity: int
    num_passed: int
    waits: Latencies | None = field(default=None, compare=False)

    def waited_ms(self) -> dict[str, float]:
        """Returns percentiles of the milliseconds that a record waited so far; they are counted anew each time."""
        return {} if self.waits is None else self.waits.percentiles_ms()

    def to_json(self) -> dict[str, Any]:
        """Returns the figures as plain data."""
        counts = {"depth": self.depth, "max_depth": self.max_depth, "capacity": self.capacity}
        return {"name": self.name, **counts, "num_passed": self.num_passed, "waited_ms": self.waited_ms()}


class Outlet(Protocol):
    """Takes what a stage made."""

    def put(self, record: Record) -> None:
        """Takes one record.

        Raises:
            AbortedError: the stream was aborted.
        """


class BasicQueue:
    """Records that wait for equal workers, first in, first out; a station of the schedule.

    A worker gets up to `batch` records at once. Fewer only if `delay_ns` have passed since the first of them came, or
    if no time is set and nobody has anything else to do; one that `is_eager` takes what is there.
    """

    def __init__(
        self,
        name: str,
        schedule: Schedule,
        workers: Sequence[Worker],
        capacity: int,
        batch: int = 1,
        delay_ns: int = 0,
        *,
        is_eager: bool = False,
    ) -> None:
        """Makes a queue that never gets more than `capacity` records; the schedule must be told of it."""
        assert 0 < batch <= capacity
        self.name = name
        self.capacity = capacity
        self.idle = list(workers)
        self.habits = Habits(len(workers))
        self._schedule = schedule
        self._lock = schedule.lock
        self._batch = batch
        self._delay_ns = delay_ns
        self._least = 1 if is_eager else batch
        self._waiting: deque[tuple[Record, int]] = deque()  # and when each came
        self._waits = Latencies(most=MAX_WAITS)
        self._num_passed = self._max_depth = 0

    def put(self, record: Record) -> None:
        """Appends one record."""
        with self._lock:
            if self._schedule.is_aborted:
                raise AbortedError
            waiting = self._waiting
            waiting.append((record, time.perf_counter_ns()))
            if len(waiting) > self._max_depth:
                self._max_depth = len(waiting)
                assert self._max_depth <= self.capacity

    def is_ready(self) -> bool:
        """Returns whether a full batch is there, or one for which time is over."""
        waiting = self._waiting
        if len(waiting) >= self._least:
            return True
        return bool(waiting and self._delay_ns) and time.perf_counter_ns() >= waiting[0][1] + self._delay_ns

    def deadline_ns(self) -> int | None:
        """Returns until when the first record waits for others."""
        return self._waiting[0][1] + self._delay_ns if self._waiting else None

    def take(self) -> list[Record]:
        """Returns the next records, at least one."""
        return self._taken(self._batch)

    def _taken(self, most: int) -> list[Record]:
        waiting = self._waiting
        taken, now_ns = [waiting.popleft() for _ in range(min(most, len(waiting)))], time.perf_counter_ns()
        self._num_passed += len(taken)
        for _, came_ns in taken:
            self._waits.add(now_ns - came_ns)
        return [record for record, _ in taken]

    def take_now(self, most: int) -> list[Record]:
        """Returns the records that wait, at most so many, to a worker that is not done with others yet.

        Raises:
            AbortedError: the stream was aborted.
        """
        with self._lock:
            if self._schedule.is_aborted:
                raise AbortedError
            return self._taken(most)

    def figures(self) -> QueueFigures:
        """Returns what the queue did so far."""
        return QueueFigures(
            self.name, len(self._waiting), self._max_depth, self.capacity, self._num_passed, self._waits
        )


class CopyQueue:
    """Gives each record to every outlet, as a branch of its own."""

    def __init__(self, name: str, outlets: Sequence[Outlet]) -> None:
        self.name = name
        self._outlets = tuple(outlets)
        self._lock = Lock()
        self._num_put = 0

    def put(self, record: Record) -> None:
        """Hands a branch of the record to every outlet."""
        record.load()
        with self._lock:
            self._num_put += 1
        for place, outlet in enumerate(self._outlets):
            outlet.put(record.branch(place, len(self._outlets)))

    def figures(self) -> QueueFigures:
        """Returns what the queue did so far; it holds nothing itself."""
        return QueueFigures(self.name, 0, 0, len(self._outlets), self._num_put)


class Siblings:
    """Collects the branches or parts of records until those of one record are complete."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._missing: dict[int, list[Record]] = {}
        self.max_depth = self.num_complete = 0

    def __len__(self) -> int:
        """Returns of how many records some have come and some are missing."""
        return len(self._missing)

    def add(self, one: Record) -> list[Record] | None:
        """Takes one; returns all of its record, in their order, if this was the last one."""
        key = id(one.parent)
        with self._lock:
            siblings = self._missing.setdefault(key, [])
            siblings.append(one)
            self.max_depth = max(self.max_depth, len(self._missing))
            if len(siblings) < one.num_places:
                return None
            del self._missing[key]
            self.num_complete += 1
        siblings.sort(key=_place)
        return siblings


def _place(sibling: Record) -> int:
    return sibling.place


class SyncQueue:
    """Joins the branches of a record into it and hands it on, once all of them have come."""

    def __init__(self, name: str, outlet: Outlet, capacity: int) -> None:
        """Makes a queue that never gets branches of more than `capacity` records at once."""
        self.name = name
        self.capacity = capacity
        self._outlet = outlet
        self._siblings = Siblings()

    def put(self, branch: Record) -> None:
        """Takes one branch; with the last one of a record the record goes on."""
        branches = self._siblings.add(branch)
        if branches is None:
            return
        record = branch.parent
        assert record is not None
        record.join(branches)
        self._outlet.put(record)

    def figures(self) -> QueueFigures:
        """Returns what the queue did so far; depth counts records of which branches are missing."""
        found = self._siblings
        return QueueFigures(self.name, len(found), found.max_depth, self.capacity, found.num_complete)
