# SPDX-License-Identifier: Apache-2.0
"""The threads of a stream: what a worker does with a record, and how long it took.

A worker takes records from its queue, works on them one after the other and puts each on. An error of a record stays
with the record; anything else is a bug or the end of the stream, and aborts it. A worker that has nothing to do waits
in its queue and uses no time.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from threading import Lock, Thread
from typing import Protocol

from nndeploy.errors import NndeployError
from nndeploy.stream.description import Step
from nndeploy.stream.queues import AbortedError, BasicQueue, Outlet
from nndeploy.stream.records import Record
from nndeploy.stream.runner import Carry, Runner


class Tracer(Protocol):
    """Wants to know who worked on what, and when."""

    def span(self, worker: str, name: str, began_ns: int, ended_ns: int, indices: Sequence[int]) -> None:
        """Takes one piece of work; called from the worker's thread."""

    def finish(self) -> None:
        """Is called when the stream has ended well."""


@dataclass(frozen=True, slots=True)
class StageFigures:
    """What the equal workers of one stage did: `busy_ns` is of all of them together."""

    name: str
    num_workers: int
    num_done: int
    busy_ns: int


class Stage:
    """Equal workers, counted together. Its numbers are only ever added to."""

    def __init__(self, name: str, num_workers: int, tracer: Tracer | None = None) -> None:
        self.name = name
        self._tracer = tracer
        self._clocks = [Clock(self, f"{name} {i}" if num_workers > 1 else name, tracer) for i in range(num_workers)]

    def clocks(self) -> list["Clock"]:
        """Returns one clock for each worker."""
        return self._clocks

    def figures(self) -> StageFigures:
        """Returns what the workers did so far."""
        clocks = self._clocks
        return StageFigures(
            self.name, len(clocks), sum(clock.num_done for clock in clocks), sum(clock.busy_ns for clock in clocks)
        )


class Clock:
    """Adds up what one worker does; used by its thread alone."""

    def __init__(self, stage: Stage, worker: str, tracer: Tracer | None) -> None:
        self.worker = worker
        self.busy_ns = 0
        self.num_done = 0
        self.stage = stage.name
        self._tracer = tracer

    def add(self, began_ns: int, indices: Sequence[int]) -> None:
        """Adds a piece of work on the records of these indices that ends now."""
        ended_ns = time.perf_counter_ns()
        self.busy_ns += ended_ns - began_ns
        self.num_done += len(indices)
        if self._tracer is not None:
            self._tracer.span(self.worker, self.stage, began_ns, ended_ns, indices)


class Crew:
    """The threads of one stream; the first failure of any of them aborts all."""

    def __init__(self, abort: Callable[[], None]) -> None:
        self._abort = abort
        self._lock = Lock()
        self._threads: list[Thread] = []
        self.failure: BaseException | None = None

    def add(self, name: str, work: Callable[[], None]) -> None:
        """Adds a thread that does `work`."""
        self._threads.append(Thread(target=self._guarded, args=(work,), name=f"nndeploy {name}", daemon=True))

    def start(self) -> None:
        """Starts all threads."""
        for thread in self._threads:
            thread.start()

    def join(self, seconds: float | None = None) -> bool:
        """Waits for all threads, at most `seconds`; returns whether all have ended."""
        deadline = None if seconds is None else time.monotonic() + seconds
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except AbortedError:
            return
        except BaseException as err:  # the thread that started the stream raises it
            with self._lock:
                self.failure = self.failure or err
            self._abort()


def do_steps(record: Record, steps: Iterable[Step], stage: str) -> None:
    """Does the steps on a record, until one of them fails.

    Raises:
        NndeployError: what would hit every record alike.
    """
    if record.error is not None:
        return
    for step in steps:
        try:
            record.add(step(record.fields))
        except NndeployError as err:
            record.fail(err, stage)
            return


def work_on_steps(
    queue: BasicQueue[Record], steps: Sequence[Step], outlet: Outlet[Record], clock: Clock, prepare: Runner | None
) -> None:
    """Does the steps on every record of a queue; `prepare` is the runner behind them, if it alone is."""
    while taken := queue.get():
        record = taken[0]
        began_ns = time.perf_counter_ns()
        record.load()
        do_steps(record, steps, clock.stage)
        if prepare is not None:
            prepare.prepare(record)
        clock.add(began_ns, (record.index,))
        outlet.put(record)
    outlet.close()


@dataclass(frozen=True, slots=True)
class RunnerWork:
    """What a runner's thread needs."""

    queue: BasicQueue[Record]
    runner: Runner
    outlet: Outlet[Record]
    clock: Clock
    batch: int
    delay_ns: int
    is_prepared: bool
    carry: Carry | None

    def __call__(self) -> None:
        """Runs every record of the queue."""
        while taken := self.queue.get(self.batch, self.delay_ns):
            began_ns = time.perf_counter_ns()
            for record in taken:
                record.load()
                if not self.is_prepared:
                    self.runner.prepare(record)
            if self.carry is not None:
                self._carried(taken[0], self.carry)
                continue
            self.runner.run(taken)
            self.clock.add(began_ns, [record.index for record in taken])
            for record in taken:
                self.outlet.put(record)
        self.outlet.close()

    def _carried(self, part: Record, carry: Carry) -> None:
        began_ns = time.perf_counter_ns()
        for done in carry.run(self.runner, part):
            self.clock.add(began_ns, (done.index,))
            self.outlet.put(done)
            began_ns = time.perf_counter_ns()
