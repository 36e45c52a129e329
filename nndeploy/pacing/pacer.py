# SPDX-License-Identifier: Apache-2.0
"""Paces the runs of a program: each is an item with a time that it may take, and sleeps between its operators.

The first runs at a shape are calm: their points are timed, and the plan is made of the medians. Later runs keep
correcting it. Law: pacing changes no value; a run that is late never waits.
"""

import math
import threading
from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from nndeploy.errors import DataError, UsageError
from nndeploy.pacing.item import Item, PlanMemory
from nndeploy.pacing.library import PaceLibrary
from nndeploy.pacing.plan import PacePlan, proportional

_Array: TypeAlias = "np.ndarray[Any, Any]"
Shapes: TypeAlias = tuple[tuple[int, ...], ...]
"""Of the inputs of a run."""

CALM_RUNS = 5
RUNS_OF_A_PLAN = 8
"""After so many runs the plan is made anew from what they took."""
KEPT_ERRORS = 200
"""Runs from whose ends the reserve follows."""
LEAST_RESERVE_NS = 0.15e6
FIRST_RESERVE = 0.02
"""Of the cap, before there were runs."""
MOST_RESERVE = 0.25
"""Of the cap: what is later than that is no matter of reserves."""
MOST_SHAPES = 64
LEAST_SLACK = 1.02
"""A cap is refused that is nearer to the calm time."""
SLICE_NS = 20_000_000
"""The scheduling slice that is asked for: others that wake are let in at once."""
KEPT_TIMES = 1000
"""Runs of which the times of every operator are kept where runs are only timed."""
KEPT_RECORDS = 100_000
"""Figures are those of the last runs where there are more."""


@dataclass(frozen=True, slots=True)
class PaceGoal:
    """What the user grants: `max_latency_ns` for a run, or else the share 0..1 of its time that its thread may work.

    With `only_times` nothing is slept: operators are timed, nothing else.
    """

    max_latency_ns: int = 0
    cpu_limit: float = 0.0
    only_times: bool = False

    def __post_init__(self) -> None:
        if self.max_latency_ns <= 0 and not 0 < self.cpu_limit < 1 and not self.only_times:
            raise UsageError("a latency above 0 or a CPU limit between 0% and 100% is needed to pace by")

    def cap_ns(self, calm_ns: float) -> int:
        """Returns how long a run may take that takes `calm_ns` without delays."""
        return self.max_latency_ns or round(calm_ns / self.cpu_limit)

    def check(self, calm_ns: float) -> None:
        """Checks that a run which takes `calm_ns` without delays can be done in time.

        Raises:
            UsageError: it cannot.
        """
        least = calm_ns * LEAST_SLACK
        if self.cap_ns(calm_ns) < least:
            granted = self.max_latency_ns / 1e6
            raise UsageError(
                f"a run takes {calm_ns / 1e6:.3g} ms without delays: {granted:g} ms leave nothing to sleep in",
                hint=f"--max-latency {math.ceil(least / 1e5) / 10:g}ms is the least that works",
            )


ONLY_TIMES = PaceGoal(only_times=True)


@dataclass(frozen=True, slots=True, eq=False)
class LearntShape:
    """What is known of runs at one shape of the inputs: arrays by point, times in nanoseconds.

    `order` tells of each point as which one it is passed, `calm` is what a run takes without delays.
    """

    shapes: Shapes
    order: _Array
    amounts: _Array
    weights: _Array
    parts: _Array
    calm: float
    reserve: float


@dataclass(frozen=True, slots=True)
class PaceRecord:
    """What one run did, in nanoseconds: `cap` is 0 for a calm one, `late` the sum by which sleeps ended too late.

    `busiest` is the most work in any window of 10 ms; all is that of the calling thread.
    """

    cap: int
    latency: int
    slept: int
    sleeps: int
    late: int
    most_late: int
    longest_run: int
    busiest: int


@dataclass(frozen=True, slots=True)
class PlannedPoint:
    """A point of a plan: the operator before it, how long that takes, in how many parts, the sleep behind it."""

    name: str
    amount_us: float
    parts: int
    delay_us: float


def _nothing() -> _Array:
    return np.zeros(0)


@dataclass(slots=True)
class _Shape:
    """What is known of runs at one shape of the inputs; only times and latencies before there is a plan (`memory`)."""

    times: list[_Array] = field(default_factory=list)
    latencies: list[int] = field(default_factory=list)
    order: _Array = field(default_factory=_nothing)
    amounts: _Array = field(default_factory=_nothing)
    calm: float = 0.0
    reserve: float = 0.0
    errors: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT_ERRORS))
    cap: int = 0
    memory: PlanMemory | None = None
    given: LearntShape | None = None


class Pacer:
    """Items for the runs of one program; several threads may run it at once."""

    def __init__(self, library: PaceLibrary, goal: PaceGoal, num_threads: int) -> None:
        """At most `num_threads` work on one run."""
        self.goal = goal
        self.points: list[str] = []
        self._is_cut: list[bool] = []
        self.records: deque[PaceRecord] = deque(maxlen=KEPT_RECORDS)
        self.has_slice = True
        self._library = library
        self._num_threads = num_threads
        self._lock = threading.Lock()
        self._free: list[Item] = []
        self._thread = threading.local()
        self._shapes: OrderedDict[Shapes, _Shape] = OrderedDict()

    def add_points(self, points: Sequence[tuple[str, bool]]) -> int:
        """Adds the points of a submodel: the operator before each, and whether it is done in parts.

        Returns the number of the first.
        """
        self.points += [name for name, _ in points]
        self._is_cut += [is_cut for _, is_cut in points]
        return len(self.points) - len(points)

    def address(self) -> int:
        """Returns the address of the item that this thread works on, 0 where there is none."""
        return getattr(self._thread, "address", 0)

    @contextmanager
    def run(self, shapes: Shapes) -> Iterator[None]:
        """A run by this thread on inputs of these shapes."""
        if not hasattr(self._thread, "address"):
            self.has_slice &= bool(self._library.slice(SLICE_NS))
        with self._lock:
            shape = self._shape(shapes)
            item = self._free.pop() if self._free else Item(len(self.points), self._num_threads)
            memory, cap = shape.memory, shape.cap
        item.take(memory)
        self._thread.address = item.address
        self._library.begin(item.address, 0, cap)
        is_done = False
        try:
            yield
            is_done = True
        finally:
            self._library.end()
            self._thread.address = 0
            if is_done:
                self._learn(shape, item, cap if memory is not None else 0)

    def known(self) -> "tuple[float, _Array]":
        """Returns the nanoseconds of a calm run at the shape that ran last, and of its operators; 0: not known yet."""
        with self._lock:
            shape = self._planned()
        return (0.0, np.zeros(len(self.points))) if shape is None else (shape.calm, shape.amounts)

    def timed(self) -> "tuple[float, _Array]":
        """Returns the medians of a run and of its operators at the shape that ran last, where runs are only timed."""
        with self._lock:
            shape = next(reversed(self._shapes.values()))
            return float(np.median(shape.latencies)), np.median(shape.times, 0)

    def forget(self) -> None:
        """Forgets all runs before."""
        with self._lock:
            self._shapes.clear()
            self.records.clear()

    def start(self, learnt: LearntShape) -> None:
        """Paces runs at a shape from the first on: by what is known of it, and by the weights and parts given.

        Raises:
            DataError: an operator is to be done in parts that cannot be.
            UsageError: the time that was granted is less than a run takes.
        """
        for name, is_cut, parts in zip(self.points, self._is_cut, learnt.parts.tolist(), strict=True):
            if parts > 1 and not is_cut:
                raise DataError(f"the plan has {name!r:.80} in {parts} parts, which is done in one")
        self.goal.check(learnt.calm)
        cap = self.goal.cap_ns(learnt.calm)
        shape = _Shape(
            order=learnt.order, amounts=learnt.amounts, calm=learnt.calm, reserve=learnt.reserve, cap=cap, given=learnt
        )
        with self._lock:
            _, plan = self._in_order(shape)
            shape.memory = PlanMemory(plan, shape.order)
            self._shapes[learnt.shapes] = shape

    def learnt(self) -> LearntShape | None:
        """Returns what is known of the shape that ran last, None where there is no plan."""
        with self._lock:
            shape = self._planned()
            if shape is None:
                return None
            key = next(key for key, one in self._shapes.items() if one is shape)
            _, plan = self._in_order(shape)
            weights, parts = plan.weights[shape.order], plan.parts[shape.order]
            return LearntShape(key, shape.order, shape.amounts, weights, parts, shape.calm, shape.reserve)

    def plan(self) -> list[PlannedPoint]:
        """Returns the plan at the shape that ran last, in the order in which points are passed; empty where none is."""
        with self._lock:
            shape = self._planned()
            if shape is None:
                return []
            order, plan = self._in_order(shape)
            slack = max(0.0, shape.cap - shape.reserve - plan.total)
        return [
            PlannedPoint(self.points[number], amount / 1e3, parts, weight * slack / 1e3)
            for number, amount, parts, weight in zip(
                order.tolist(), plan.amounts.tolist(), plan.parts.tolist(), plan.weights.tolist(), strict=True
            )
        ]

    def _planned(self) -> _Shape | None:
        """Returns the shape that ran last of those that have a plan."""
        return next((shape for shape in reversed(self._shapes.values()) if shape.memory is not None), None)

    def _shape(self, key: Shapes) -> _Shape:
        if key in self._shapes:
            self._shapes.move_to_end(key)
        else:
            self._shapes[key] = _Shape()
            if len(self._shapes) > MOST_SHAPES:
                self._shapes.popitem(last=False)
        return self._shapes[key]

    def _learn(self, shape: _Shape, item: Item, cap: int) -> None:
        did, latency = item.workers[0], item.latency
        record = PaceRecord(cap, latency, did.slept, did.sleeps, did.late, did.most_late, did.longest_run, item.busiest)
        with self._lock:
            self.records.append(record)
            shape.times.append(item.times.copy())
            shape.latencies.append(latency)
            if not cap:
                shape.order = item.order.copy()
            self._free.append(item)
            if self.goal.only_times:
                del shape.times[:-KEPT_TIMES], shape.latencies[:-KEPT_TIMES]
            elif len(shape.times) >= (RUNS_OF_A_PLAN if cap else CALM_RUNS):
                self._plan(shape)

    def _plan(self, shape: _Shape) -> None:
        """Makes the plan of a shape from the runs since the last one: first the calm ones, then those that it made.

        The reserve is what 99 of 100 runs needed beyond the end that was planned for them.
        """
        amounts = np.median(shape.times, 0)
        if shape.memory is None:
            shape.amounts, shape.calm = amounts, float(np.median(shape.latencies))
            shape.cap = self.goal.cap_ns(shape.calm)
            outside = max(0.0, shape.calm - float(amounts.sum()))
            shape.reserve = LEAST_RESERVE_NS + outside + FIRST_RESERVE * shape.cap
        else:
            shape.amounts = shape.amounts + 0.15 * (amounts - shape.amounts)
            shape.errors.extend(latency - (shape.cap - shape.reserve) for latency in shape.latencies)
            needed = float(np.quantile(shape.errors, 0.99, method="higher"))
            shape.reserve = min(max(needed, LEAST_RESERVE_NS), MOST_RESERVE * shape.cap)
        shape.times, shape.latencies = [], []
        _, plan = self._in_order(shape)
        shape.memory = PlanMemory(plan, shape.order)

    def _in_order(self, shape: _Shape) -> tuple[_Array, PacePlan]:
        """Returns the points of a shape in the order in which they are passed, and their plan."""
        passed = np.argsort(shape.order)
        plan = proportional(shape.amounts[passed], np.array(self._is_cut)[passed], shape.cap, shape.reserve)
        if shape.given is not None:
            plan = replace(plan, weights=shape.given.weights[passed], parts=shape.given.parts[passed])
        return passed, plan
