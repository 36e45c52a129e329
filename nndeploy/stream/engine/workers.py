# SPDX-License-Identifier: Apache-2.0
"""The workers of a stream: what one does with a record, and how long it took.

A worker is called with the records that it gets from its queue, works on them and puts each on. An error of a record
stays with the record; anything else is a bug or the end of the stream, and aborts it.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Protocol

from nndeploy.runtime.chain_stages import stages_told
from nndeploy.runtime.latency import Latencies, percentiles_ms
from nndeploy.stream.description import StageStep
from nndeploy.stream.engine.loop import Loop, More, no_more
from nndeploy.stream.engine.queues import Outlet
from nndeploy.stream.engine.runner import Runner
from nndeploy.stream.engine.steps import do_steps
from nndeploy.stream.records import Record
from nndeploy.target.run_delay import new_run_delay_ns, thread_run_delay_ns

ASKED_NS = 200_000
"""A hundred times what it takes to ask the kernel how long a thread waited for cores; who works for less did not."""
MAX_LATENCIES = 2048
"""Percentiles are taken of a sample where a worker was called more often."""


class Tracer(Protocol):
    """Wants to know who worked on what, and when."""

    def span(self, worker: str, name: str, began_ns: int, ended_ns: int, indices: Sequence[int]) -> None:
        """Takes one piece of work; called from the worker's thread."""

    def finish(self) -> None:
        """Is called when the stream has ended well."""


class Carried(Protocol):
    """Runs records whose model has a state: from part to part, or from record to record."""

    def run(self, runner: Runner, record: Record, /) -> Iterator[Record]:
        """Runs a record, if it is its turn, and others that waited for it; yields each that is done."""


@dataclass(frozen=True, slots=True)
class StageFigures:
    """What the equal workers of one stage did: `busy_ns` is of all of them together.

    `core_wait_ns` is the part of it in which they waited for a core, None where the system does not count that.
    `calls` holds how long each call of a worker took, which may be of several records at once.
    """

    name: str
    num_workers: int
    num_done: int
    busy_ns: int
    calls: Sequence[Latencies] = field(default=(), compare=False)
    core_wait_ns: int | None = None

    def worked_ms(self) -> dict[str, float]:
        """Returns percentiles of the milliseconds of a call so far; they are counted anew each time."""
        return percentiles_ms(self.calls)

    def to_json(self) -> dict[str, Any]:
        """Returns the figures as plain data."""
        counts = {"num_workers": self.num_workers, "num_done": self.num_done, "busy_ns": self.busy_ns}
        waits = {} if self.core_wait_ns is None else {"core_wait_ns": self.core_wait_ns}
        return {"name": self.name, **counts, **waits, "worked_ms": self.worked_ms()}


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
            self.name, len(clocks), sum(clock.num_done for clock in clocks), sum(clock.busy_ns for clock in clocks),
            [clock.latencies for clock in clocks],
            None if thread_run_delay_ns() is None else sum(clock.core_wait_ns for clock in clocks),
        )  # fmt: skip


class Clock:
    """Adds up what one worker does."""

    def __init__(self, stage: Stage, worker: str, tracer: Tracer | None) -> None:
        self.worker = worker
        self.busy_ns = self.core_wait_ns = 0
        self.num_done = 0
        self.latencies = Latencies(most=MAX_LATENCIES)
        self.stage = stage.name
        self._tracer = tracer

    def add(self, began_ns: int, indices: Sequence[int], *, num_again: int = 0) -> int:
        """Adds a piece of work on the records of these indices that ends now; returns how long it took.

        So many of them were counted before.
        """
        ended_ns = time.perf_counter_ns()
        self.busy_ns += ended_ns - began_ns
        if ended_ns - began_ns > ASKED_NS:
            self.core_wait_ns += min(ended_ns - began_ns, new_run_delay_ns())
        self.num_done += len(indices) - num_again
        self.latencies.add(ended_ns - began_ns)
        if self._tracer is not None:
            self._tracer.span(self.worker, self.stage, began_ns, ended_ns, indices)
        return ended_ns - began_ns


class PlaceClocks:
    """The clocks of the places of one program, whose chain spans several."""

    def __init__(self, clocks: Mapping[str, Clock]) -> None:
        self._clocks = clocks
        self._lock = Lock()

    def counting(self, records: Sequence[Record]) -> AbstractContextManager[None]:
        """Counts what this thread's calls do on the places meanwhile; each record once, however often it is there.

        `records` are those that are then under way.
        """
        seen: dict[str, set[int]] = {place: set() for place in self._clocks}

        def on_stage(place: str, began_ns: int) -> None:
            indices, before = [record.index for record in records], seen[place]
            with self._lock:
                self._clocks[place].add(began_ns, indices, num_again=len(before.intersection(indices)))
            before.update(indices)

        return stages_told(on_stage)


@dataclass(frozen=True, slots=True, eq=False)
class StepsWorker:
    """Does the steps of a stage on records; `prepare` is the runner behind it, if it alone is."""

    steps: Sequence[StageStep]
    outlet: Outlet
    clock: Clock
    prepare: Runner | None

    def __call__(self, records: list[Record]) -> None:
        """Works on each of the records, and hands it on."""
        for record in records:
            self._work(record)

    def _work(self, record: Record) -> None:
        began_ns = time.perf_counter_ns()
        with record.paced.working(self.clock.stage):
            record.load()
            do_steps(record, self.steps, self.clock.stage)
            if self.prepare is not None:
                self.prepare.prepare(record)
        self.clock.add(began_ns, (record.index,))
        self.outlet.put(record)


@dataclass(frozen=True, slots=True, eq=False)
class RunnerWorker:
    """Runs records through a model, those that come together in one batch; `places` sees those of its chain."""

    runner: Runner
    outlet: Outlet
    clock: Clock
    is_prepared: bool
    carry: Carried | None
    places: "PlaceClocks | None" = None

    def __call__(self, records: list[Record]) -> None:
        """Works on some records."""
        with nullcontext() if self.places is None else self.places.counting(records):
            self._work(records)

    def _work(self, records: list[Record]) -> None:
        began_ns = time.perf_counter_ns()
        _prepare(records, None if self.is_prepared else self.runner)
        if self.carry is not None:
            for record in records:
                _hand_on(self.carry.run(self.runner, record), self.outlet, self.clock)
            return
        self.runner.run(records)
        self.clock.add(began_ns, [record.index for record in records])
        for record in records:
            self.outlet.put(record)


@dataclass(slots=True, eq=False)
class LoopWorker:
    """Runs records through a model again and again, and with them those that `more` gives meanwhile."""

    runner: Runner
    outlet: Outlet
    clock: Clock
    is_prepared: bool
    loop: Loop
    places: "PlaceClocks | None" = None
    more: More = no_more

    def __call__(self, records: list[Record]) -> None:
        """Works on some records, and on others until there are none."""
        going = list(records)

        def more(most: int) -> Sequence[Record]:
            new = self.more(most)
            _prepare(new, unprepared)
            going.extend(new)
            return new

        def ended() -> Iterator[Record]:
            for record in self.loop.run(self.runner, records, more):
                yield record
                going.remove(record)

        unprepared = None if self.is_prepared else self.runner
        with nullcontext() if self.places is None else self.places.counting(going):
            _prepare(records, unprepared)
            _hand_on(ended(), self.outlet, self.clock)


def _prepare(records: Iterable[Record], runner: Runner | None) -> None:
    """Loads records, and has the runner look at what it is going to take, if it is given."""
    for record in records:
        record.load()
        if runner is not None:
            runner.prepare(record)


def _hand_on(ended: Iterable[Record], outlet: Outlet, clock: Clock) -> None:
    """Puts records on, each once it is done, and counts them."""
    began_ns = time.perf_counter_ns()
    for record in ended:
        clock.add(began_ns, (record.index,))
        outlet.put(record)
        began_ns = time.perf_counter_ns()
