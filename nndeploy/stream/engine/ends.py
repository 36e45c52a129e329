# SPDX-License-Identifier: Apache-2.0
"""The two ends of a stream, as stations of its schedule: items come in at one, outcomes go out at the other.

Each has one worker, so a source and a sink are never used by two threads at once, and a sink gets outcomes in order.
"""

import time
from collections.abc import Callable, Iterable
from threading import Lock

from nndeploy.pacing.stream.protocol import STREAM_NOT_PACED, StreamPacing
from nndeploy.stream.engine.habits import Habits
from nndeploy.stream.engine.queues import Outlet, QueueFigures
from nndeploy.stream.engine.schedule import AbortedError, Schedule, Worker
from nndeploy.stream.engine.workers import Clock
from nndeploy.stream.items import Item
from nndeploy.stream.records import Record
from nndeploy.stream.stopping import Stop


class Entrance:
    """Lets items in, one after the other, as long as there is room and no stop is asked for.

    Where the stream is paced, an item that was read is held until its time has come.
    """

    def __init__(
        self,
        items: Iterable[Item],
        schedule: Schedule,
        entry: Outlet,
        stop: Stop,
        clock: Clock,
        pacing: StreamPacing = STREAM_NOT_PACED,
    ) -> None:
        self.idle: list[Worker] = [self._read]
        self.habits = Habits(1, may_wait=True)
        self._items = iter(items)
        self._schedule = schedule
        self._entry = entry
        self._stop = stop
        self._clock = clock
        self._pacing = pacing
        self._held: Record | None = None

    def is_ready(self) -> bool:
        """Returns whether one more record may be on its way."""
        if self._held is None:
            return self._schedule.has_room()
        deadline_ns = self.deadline_ns()
        return deadline_ns is not None and deadline_ns <= time.perf_counter_ns()

    def deadline_ns(self) -> int | None:
        """Returns when the record that is held may go on, None where there is none or it waits for others."""
        return None if self._held is None else self._pacing.next_begin_ns()

    def take(self) -> list[Record]:
        """Counts a record that is still to be read."""
        if self._held is None:
            self._schedule.let_in()
        return []

    def _read(self, _: list[Record]) -> None:
        record = self._held or self._next()
        if record is None or self._stop.is_requested:
            self._held = None
            self._schedule.end()
            return
        due_ns = self._pacing.next_begin_ns()
        if due_ns is None or due_ns > time.perf_counter_ns():
            self._held = record
            return
        self._pacing.begin(record)
        self._held = None
        record.let_in_ns = time.perf_counter_ns()
        self._entry.put(record)

    def _next(self) -> Record | None:
        began_ns, waited_ns = time.perf_counter_ns(), self._stop.sum_waited_ns
        with self._pacing.beside():
            item = None if self._stop.is_requested else next(self._items, None)
        self.habits.waited_ns = self._stop.sum_waited_ns - waited_ns
        if item is None:
            return None
        self._clock.add(began_ns, (item.index,))
        return Record(item.index, item.origin, item.stem, item, source=item.source)


class Exit:
    """Hands records to `write`, in the order of their indices or as they come."""

    write: Callable[[Record], None]

    def __init__(self, schedule: Schedule, first_index: int | None, pacing: StreamPacing = STREAM_NOT_PACED) -> None:
        """The first index is the one that is written first; None where order does not matter."""
        self.idle: list[Worker] = [self._write]
        self.habits = Habits(1)
        self._schedule = schedule
        self._next_index = first_index
        self._waiting: dict[int, Record] = {}  # never more than are let in
        self._max_depth = self._num_passed = 0
        self._is_writing = Lock()
        self._pacing = pacing

    def put(self, record: Record) -> None:
        """Takes a record that is done."""
        record.item_ns = time.perf_counter_ns() - record.let_in_ns
        self._pacing.end(record)
        with self._schedule.lock:
            if self._schedule.is_aborted:
                raise AbortedError
            self._waiting[record.index] = record
            self._max_depth = max(self._max_depth, len(self._waiting))

    def is_ready(self) -> bool:
        """Returns whether the next record is there."""
        return bool(self._waiting) if self._next_index is None else self._next_index in self._waiting

    def deadline_ns(self) -> None:
        """Nothing that is here waits for more of its kind."""

    def take(self) -> list[Record]:
        """Returns the next records."""
        if self._next_index is None:
            taken, self._waiting = list(self._waiting.values()), {}
            return taken
        taken = []
        while (record := self._waiting.pop(self._next_index, None)) is not None:
            taken.append(record)
            self._next_index += 1
        return taken

    def figures(self) -> QueueFigures:
        """Returns how many records wait for their turn, and did."""
        return QueueFigures("sink", len(self._waiting), self._max_depth, self._schedule.in_flight, self._num_passed)

    def close(self, seconds: float) -> None:
        """Waits for a write that is not over, at most `seconds`; once the schedule was aborted no other begins."""
        self._is_writing.acquire(timeout=seconds)

    def _write(self, records: list[Record]) -> None:
        for record in records:
            with self._is_writing:
                if self._schedule.is_over:
                    return
                with self._pacing.beside():
                    self.write(record)
            self._num_passed += 1
            self._schedule.let_out(is_held=self.habits.is_short)
