# SPDX-License-Identifier: Apache-2.0
"""Paces the runs of a program: each is an item with a time that it may take, and sleeps between its operators.

The first runs are calm: their points are timed, and the plan is made of the medians. Later runs keep correcting it.
Law: without delays a run computes what it ever does; a run that is late never waits.
"""

import statistics
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from nndeploy.pacing.item import Item, PlanMemory
from nndeploy.pacing.library import PaceLibrary
from nndeploy.pacing.plan import proportional

_Array: TypeAlias = "np.ndarray[Any, Any]"

CALM_RUNS = 7
FIRST_MARGIN = 0.05
RUNS_OF_A_PLAN = 16
"""After so many runs the plan is made anew from what they took."""


@dataclass(slots=True)
class PaceRecord:
    """What one run did, in nanoseconds; `work` and `slept` are those of the calling thread."""

    latency: int
    slept: int
    sleeps: int
    late: int
    most_late: int
    longest_run: int
    is_calm: bool


@dataclass
class Pacer:
    """`points` names all points of a program; `cap_ns` is how long a run may take."""

    library: PaceLibrary
    points: Sequence[str]
    cap_ns: int
    num_threads: int = 1
    records: list[PaceRecord] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._free: list[Item] = []
        self._thread = threading.local()
        self._times: list[_Array] = []
        self._order: _Array | None = None
        self._memory: PlanMemory | None = None
        self._margin = FIRST_MARGIN
        self.amounts: _Array = np.zeros(len(self.points))

    def address(self) -> int:
        """Returns the address of the item that this thread works on, 0 where there is none."""
        return getattr(self._thread, "address", 0)

    @contextmanager
    def run(self) -> Iterator[None]:
        """A run of the program by this thread."""
        item = self._taken()
        memory = self._memory
        item.take(memory)
        self._thread.address = item.address
        self.library.begin(item.address, 0, self.cap_ns)
        try:
            yield
        finally:
            latency = self.library.end()
            self._thread.address = 0
            self._learn(item, latency, is_calm=memory is None)

    def _taken(self) -> Item:
        with self._lock:
            return self._free.pop() if self._free else Item(len(self.points), self.num_threads)

    def _learn(self, item: Item, latency: int, *, is_calm: bool) -> None:
        worker = item.workers[0]
        record = PaceRecord(
            latency, worker.slept, worker.sleeps, worker.late, worker.most_late, worker.longest_run, is_calm
        )
        with self._lock:
            self.records.append(record)
            self._times.append(item.times.copy())
            if is_calm:
                self._order = item.order.copy()
            self._free.append(item)
            if len(self._times) >= (CALM_RUNS if self._memory is None else RUNS_OF_A_PLAN):
                self._make_plan()

    def _make_plan(self) -> None:
        amounts = np.median(self._times, 0)
        self._times = []
        if self._memory is None:
            self.amounts = amounts
        else:
            self.amounts += 0.3 * (amounts - self.amounts)
        self._memory = PlanMemory(proportional(self.amounts, self._margin))

    @property
    def calm_ns(self) -> float:
        """The median latency of calm runs, 0 before there was one."""
        calm = [record.latency for record in self.records if record.is_calm]
        return statistics.median(calm) if calm else 0.0
