# SPDX-License-Identifier: Apache-2.0
"""Paces the runs of a program: each is an item with a time that it may take, and sleeps between its operators.

The first runs at a shape are the baseline: their points are timed, and the plan is made of the medians. Later runs keep
correcting it. Law: pacing changes no value; a run that is late never waits.
"""

import statistics
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from nndeploy.errors import DataError
from nndeploy.pacing.achieved import PaceRecord
from nndeploy.pacing.branches import BranchedRun, Branches, BranchPlans, branch_plans
from nndeploy.pacing.goal import PaceGoal
from nndeploy.pacing.group import PaceGroup
from nndeploy.pacing.item import ItemMemory, PlanMemory
from nndeploy.pacing.library import PaceLibrary
from nndeploy.pacing.load_curve import Loads, baseline_timeline, expected_timeline, of_median_peak
from nndeploy.pacing.paced_shape import (
    KEPT_TIMES,
    LEAST_RESERVE_NS,
    RUNS_OF_A_PLAN,
    LearntShape,
    PacedShape,
    Shapes,
    num_elements,
    text_of,
)
from nndeploy.pacing.pairs import END, END_NAME, Pair, PointNames, chosen, num_sharing, pair_name, presets_of
from nndeploy.pacing.plan import PacePlan, PairShares, serial_plan

_Array: TypeAlias = "np.ndarray[Any, Any]"

BASELINE_RUNS = 5
PLAN_SECONDS = 0.2
"""A plan is made anew from the last so many runs, and no sooner than after this time: making one takes 0.4 ms."""
MOST_WAITING = 8
WAITING_SECONDS = 0.1
"""What runs did is looked at once so many have ended, or one so long ago: it takes 0.1 ms behind a run whose operators
left nothing of Python in the caches, and hardly more for several."""
FIRST_RESERVE = 0.03
"""Share of the budget that is kept in reserve before there were runs."""
MOST_SHAPES = 64
SLICE_NS = 20_000_000
"""The scheduling slice that is asked for: others that wake are let in at once."""
KEPT_RECORDS = 10_000
"""Figures are those of the last runs where there are more."""


_BRANCHED: "ContextVar[tuple[BranchedRun, Sequence[int]] | None]" = ContextVar("branched", default=None)
"""The run of which threads run the submodels, and when each is due (CLOCK_MONOTONIC); none where one runs them all."""


@dataclass(frozen=True, slots=True)
class PlannedPoint:
    """A point of a plan: the operator before it, how long that takes, in how many parts, the sleep behind it.

    `followed_by` are the operators that read what it makes, where runs may sleep in between; `done` are those of the
    model that were done there, by kind and value.
    """

    name: str
    amount_us: float
    parts: int
    delay_us: float
    followed_by: tuple[str, ...] = ()
    done: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedPair:
    """A pair of operators, and the delay between them; whether a user set it."""

    pair: str
    delay_us: float
    is_preset: bool


class Pacer:
    """Items for the runs of one program; several threads may run it at once."""

    def __init__(self, library: PaceLibrary, goal: PaceGoal, num_threads: int) -> None:
        """Prepares for runs that at most `num_threads` threads work on.

        Raises:
            UnavailableError, UsageError: there is a group, in which this process cannot take part.
        """
        self.goal = goal
        self.group = PaceGroup.join(goal.group, goal.cpu_limit, library) if goal.group else None
        """With whom its runs share the processor: that alone then says when they sleep."""
        self.points: list[str] = []
        self.pairs: list[Pair] = []
        """Between which runs may sleep, in the order of their points."""
        self.done: list[tuple[str, ...]] = []
        """The operators of the model that were done until each point, by kind and value, as far as is known."""
        self.notes: list[str] = []
        """How points were placed, a line for each submodel that tells."""
        self.adapted = ""
        """How a plan was used for inputs of another shape than it has, in a line; "" where that did not happen."""
        self.has_own_points = False
        """Whether some submodel passes points of its own; a short one may have a single one that is worth it."""
        self._given: LearntShape | None = None
        self._is_cut: list[bool] = []
        self.has_slice = True
        self._library = library
        self._num_threads = num_threads
        self._lock = threading.Lock()
        self.branches: Branches | None = None
        """The submodels, where those that do not wait for each other run at once."""
        self._free: list[ItemMemory] = []
        self._ended: list[tuple[PacedShape, ItemMemory | BranchedRun, int, float]] = []
        self._looked_at = time.monotonic()
        self._records: deque[PaceRecord] = deque(maxlen=KEPT_RECORDS)
        self._thread = threading.local()
        self._shapes: OrderedDict[Shapes, PacedShape] = OrderedDict()

    def add_points(self, points: Sequence[tuple[str, bool]]) -> int:
        """Adds the points of a submodel: the operator before each, and whether it is done in parts.

        Returns the number of the first.
        """
        self.points += [name for name, _ in points]
        self.done += [()] * len(points)
        self._is_cut += [is_cut for _, is_cut in points]
        return len(self.points) - len(points)

    def choose(self, pairs: Sequence[Pair]) -> None:
        """Lets runs sleep between those pairs of a program that the goal chooses, all of them where it chooses none.

        Raises:
            UsageError: the goal names an operator or a pair that is not there.
        """
        if self.goal.pairs:
            self._library.check_terms("chosen pairs")
        self.pairs = chosen(pairs, PointNames(self.points, self.done), self.goal.pairs)

    @property
    def presets_ns(self) -> float:
        """The nanoseconds that a run sleeps where delays were set."""
        return float(sum(pair.preset_ns for pair in self.pairs))

    @property
    def can_sleep(self) -> bool:
        """Whether a run can sleep inside: between two submodels, or in one whose backend has points of its own."""
        return len(self.points) > 1 or self.has_own_points

    def address(self) -> int:
        """Returns the address of the item that this thread works on, 0 where there is none."""
        return getattr(self._thread, "address", 0)

    @contextmanager
    def until(self, deadline_ns: int) -> Iterator[None]:
        """The runs of this thread may take until then (CLOCK_MONOTONIC), whatever the goal says; 0: as it says."""
        self._thread.deadline = deadline_ns
        try:
            yield
        finally:
            self._thread.deadline = 0

    def slept_ns(self) -> int:
        """Returns for how long this thread's last run slept."""
        return getattr(self._thread, "slept", 0)

    @contextmanager
    def run(self, shapes: Shapes) -> Iterator[None]:
        """A run by this thread on inputs of these shapes, or by as many as run its submodels at once."""
        with self._lock:
            shape = self._shape(shapes)
            items = [self._taken_item() for _ in (self.branches.firsts if self.branches is not None else [0])]
            memory, plans, budget, reserve = shape.memory, shape.branches, shape.budget, shape.reserve
        if deadline := getattr(self._thread, "deadline", 0):
            budget = max(1, deadline - time.monotonic_ns())
        is_done = False
        try:
            if self.branches is None:
                did: ItemMemory | BranchedRun = items[0]
                items[0].take(memory)
                with self._working(items[0], budget):
                    yield
            else:
                did = BranchedRun(self.branches, items, time.monotonic_ns())
                with _branched(did, plans):
                    yield
            is_done = True
        finally:
            if is_done:
                with self._lock:
                    self._ended.append((shape, did, budget if memory is not None else 0, reserve))
                    is_enough = memory is None or len(self._ended) == MOST_WAITING
                    if is_enough or time.monotonic() > self._looked_at + WAITING_SECONDS:
                        self._look()

    @contextmanager
    def submodel(self, number: int) -> Iterator[None]:
        """This thread runs a submodel of a run; where one thread runs them all, they are of the same item."""
        found = _BRANCHED.get()
        if found is None:
            yield
            return
        run, dues = found
        with self._working(run.items[number], max(1, dues[number] - time.monotonic_ns()) if dues else 0):
            yield

    @contextmanager
    def _working(self, item: ItemMemory, budget: int) -> Iterator[None]:
        if not hasattr(self._thread, "address"):
            self.has_slice &= bool(self._library.slice(SLICE_NS))
        self._thread.address = item.address
        self._library.begin(item.address, 0, budget)
        try:
            yield
        finally:
            self._library.end()
            self._thread.address = 0
            self._thread.slept = item.slept

    def close(self) -> None:
        """Leaves the group, if there is one; no run may come later."""
        if self.group is not None:
            self.group.leave()

    def _taken_item(self) -> ItemMemory:
        if self._free:
            return self._free.pop()
        at = (0, 0) if self.group is None else (self.group.address, self.group.member)
        return ItemMemory(len(self.points), self._num_threads, *at)

    @property
    def records(self) -> list[PaceRecord]:
        """What the last runs did."""
        with self._lock:
            self._look()
            return list(self._records)

    def forget(self) -> None:
        """Forgets what runs did, not how they are planned."""
        with self._lock:
            self._look()
            self._records.clear()
            if self.goal.only_times:
                self._shapes.clear()

    def known(self) -> "tuple[float, _Array]":
        """Returns the baseline of the shape that ran last, and that of its operators, in ns; 0: not known yet."""
        with self._lock:
            shape = self._planned()
        return (0.0, np.zeros(len(self.points))) if shape is None else (shape.baseline, shape.durations)

    def timed(self) -> "tuple[float, _Array]":
        """Returns the medians of a run and of its operators at the shape that ran last, where runs are only timed."""
        with self._lock:
            self._look()
            shape = next(reversed(self._shapes.values()))
            return float(np.median(shape.latencies)), np.median(shape.times, 0)

    def start(self, learnt: LearntShape) -> None:
        """Paces runs at a shape from the first on: by what is known of it, and by the weights and parts given.

        Raises:
            DataError: an operator is to be done in parts that cannot be.
            UsageError: the time that was granted is less than a run takes.
        """
        for name, is_cut, parts in zip(self.points, self._is_cut, learnt.parts.tolist(), strict=True):
            if parts > 1 and not is_cut:
                raise DataError(f"the plan has {name!r:.80} in {parts} parts, which is done in one")
        if learnt.pairs:
            self.pairs = list(learnt.pairs)
        if self.goal.pairs:
            self._library.check_terms("chosen pairs")
        self.goal.check(learnt.baseline, self.presets_ns)
        with self._lock:
            self._given = learnt
            self._shapes[learnt.shapes] = self._shape_by(learnt)

    def _shape_by(self, learnt: LearntShape, *, is_guess: bool = False) -> PacedShape:
        """Returns a shape that is paced from the first run on."""
        shape = PacedShape(
            order=learnt.order, durations=learnt.durations, baseline=learnt.baseline, given=learnt, is_guess=is_guess
        )
        shape.budget = self._budget_ns(learnt.baseline)
        shape.keep_back(learnt.reserve)
        self._apply(shape)
        return shape

    def _adapted(self, key: Shapes) -> PacedShape:
        """Returns inputs of another shape paced by the plan: as much longer as they are larger, until runs tell."""
        assert self._given is not None
        factor = num_elements(key) / num_elements(self._given.shapes)
        if not self.adapted:
            self.adapted = (
                f"the plan is of inputs of {text_of(self._given.shapes)}: its times were taken {factor:.3g} times as "
                f"long for {text_of(key)}, and for other shapes likewise, until runs told better"
            )
        shape = self._shape_by(self._given.scaled(key, factor), is_guess=True)
        if shape.budget < shape.baseline:
            self.adapted += f"; the time granted leaves nothing to sleep in at {text_of(key)}"
        return shape

    def learnt(self) -> LearntShape | None:
        """Returns what is known of the shape that ran last, None where there is no plan."""
        with self._lock:
            shape = self._planned()
            if shape is None:
                return None
            key = next(key for key, one in self._shapes.items() if one is shape)
            _, plan = self._in_order(shape)
            weights, parts = plan.weights[shape.order], plan.parts[shape.order]
            return LearntShape(
                key, shape.order, shape.durations, weights, parts, shape.baseline, shape.reserve, tuple(self.pairs)
            )

    def plan(self) -> list[PlannedPoint]:
        """Returns the plan at the shape that ran last, in the order in which points are passed; empty where none is."""
        with self._lock:
            shape = self._planned()
            if shape is None:
                return []
            order, plan = self._in_order(shape)
            delays = self._delays(shape, plan)
        followed_by: list[list[str]] = [[] for _ in self.points]
        for pair in self.pairs:
            followed_by[pair.source].append(END_NAME if pair.target == END else self.points[pair.target])
        return [
            PlannedPoint(
                self.points[number], duration / 1e3, parts, delay / 1e3, tuple(followed_by[number]), self.done[number]
            )
            for number, duration, parts, delay in zip(
                order.tolist(), plan.durations.tolist(), plan.parts.tolist(), delays.tolist(), strict=True
            )
        ]

    def planned_pairs(self) -> list[PlannedPair]:
        """Returns the pairs of the plan at the shape that ran last, those of the first point that is passed first."""
        with self._lock:
            shape = self._planned()
            if shape is None:
                return []
            order, plan = self._in_order(shape)
            shared = self._delays(shape, plan) - plan.presets
        place = np.argsort(order)
        counts = num_sharing(self.pairs, len(self.points))
        return [
            PlannedPair(
                pair_name(self.points, pair),
                (pair.preset_ns or float(shared[place[pair.source]] / counts[pair.source])) / 1e3,
                bool(pair.preset_ns),
            )
            for pair in sorted(self.pairs, key=lambda pair: int(place[pair.source]))
        ]

    def loads(self) -> Loads | None:
        """Returns the load over time of runs at the shape that ran last, None where there is no plan."""
        with self._lock:
            shape = self._planned()
            if shape is None:
                return None
            _, plan = self._in_order(shape)
            baseline, timelines = shape.baseline, list(shape.timelines)
            budget = float(shape.budget)
            if shape.branches is not None:
                plan, budget = shape.branches.longest
                baseline = plan.total
        return Loads(baseline_timeline(baseline), expected_timeline(plan, budget), of_median_peak(timelines))

    def _planned(self) -> PacedShape | None:
        """Returns the shape that ran last of those that have a plan."""
        self._look()
        return next((shape for shape in reversed(self._shapes.values()) if shape.memory is not None), None)

    def _shape(self, key: Shapes) -> PacedShape:
        if key in self._shapes:
            self._shapes.move_to_end(key)
        elif self._given is not None:
            self._keep(key, self._adapted(key))
        else:
            num_times = KEPT_TIMES if self.goal.only_times else RUNS_OF_A_PLAN
            self._keep(key, PacedShape(times=deque(maxlen=num_times)))
        return self._shapes[key]

    def _keep(self, key: Shapes, shape: PacedShape) -> None:
        self._shapes[key] = shape
        if len(self._shapes) > MOST_SHAPES:
            self._shapes.popitem(last=False)

    def _look(self) -> None:
        """Learns from the runs that have ended."""
        for shape, item, budget, reserve in self._ended:
            self._learn(shape, item, budget, reserve)
            self._free += [item] if isinstance(item, ItemMemory) else item.items
        self._ended.clear()
        self._looked_at = time.monotonic()

    def _learn(self, shape: PacedShape, item: ItemMemory | BranchedRun, budget: int, reserve: float) -> None:
        latency, threads = item.latency, 1 if isinstance(item, ItemMemory) else len(item.items)
        self._records.append(
            PaceRecord(
                budget, latency, item.slept, item.used, item.waiting_used, item.longest_run, item.busiest,
                tuple(item.late), threads,
            )
        )  # fmt: skip
        shape.times.append(item.times.copy())
        if budget:
            baseline = max(shape.baseline, self._length(item.times))  # whose budget is shorter was late when it began
            shape.keep_back(latency - max(budget - reserve, baseline))
            shape.budgets.append(budget)
            shape.stretch(item.worked)
            shape.timelines.append(item.timeline())
            if shape.given is not None:
                shape.order = item.order.copy()  # a library may run operators in another order each time it is loaded
            is_time = len(shape.times) == RUNS_OF_A_PLAN and time.monotonic() > shape.planned_at + PLAN_SECONDS
        else:
            is_grouped = self.group is not None
            shape.latencies.append(
                latency - item.slept if is_grouped else latency
            )  # a group lets also baseline runs sleep
            shape.order = item.order.copy()
            is_time = len(shape.times) == BASELINE_RUNS and not self.goal.only_times
        if is_time:
            self._plan(shape)

    def _plan(self, shape: PacedShape) -> None:
        """Makes the plan of a shape from the runs since the last one: first the baseline, then those that it made."""
        durations = np.median(shape.times, 0)
        if shape.memory is None:
            shape.durations, shape.baseline = durations, float(np.median(shape.latencies))
            shape.budget = self._budget_ns(shape.baseline)
            outside = max(0.0, shape.baseline - self._length(durations))
            shape.keep_back(LEAST_RESERVE_NS + outside + FIRST_RESERVE * shape.budget)
        elif shape.is_guess:
            shape.is_guess = False
            shape.baseline *= float(durations.sum()) / max(1.0, float(shape.durations.sum()))
            shape.durations, shape.budget = durations, self._budget_ns(shape.baseline)
        else:
            shape.durations = shape.durations + 0.15 * (durations - shape.durations)
            if in_time := [budget for budget in shape.budgets if budget > shape.baseline]:
                shape.budget = statistics.median_low(in_time)
        shape.times.clear()
        shape.latencies.clear()
        self._apply(shape)

    def _apply(self, shape: PacedShape) -> None:
        """Lets the next runs at a shape go by what is known of it now."""
        shape.planned_at = time.monotonic()
        _, plan = self._in_order(shape)
        stretch = 1.0 if shape.memory is None else shape.memory.struct.stretch
        shape.memory = PlanMemory(plan, shape.order, stretch)
        if self.branches is not None:
            total = shape.budget - shape.reserve
            shape.branches = branch_plans(self.branches, shape.order, plan, total, self.goal.policy)

    def _in_order(self, shape: PacedShape) -> tuple[_Array, PacePlan]:
        """Returns the points of a shape in the order in which they are passed, and their plan."""
        passed = np.argsort(shape.order)
        durations, is_cut = shape.durations[passed], np.array(self._is_cut)[passed]
        beside = float(durations.sum()) - self._length(shape.durations)  # work that other work hides
        budget = shape.budget + beside
        plan = serial_plan(durations, is_cut, budget, shape.reserve, self.goal.policy, self._shares(passed))
        if shape.given is not None:
            plan = replace(plan, weights=shape.given.weights[passed], parts=shape.given.parts[passed])
        return passed, plan

    def _shares(self, passed: _Array) -> PairShares | None:
        """Returns what the pairs make of the points that are passed in this order, None where nobody says any."""
        if not self.pairs:
            return None
        num_points = len(self.points)
        sharing, presets = num_sharing(self.pairs, num_points), presets_of(self.pairs, num_points)
        return PairShares(sharing[passed], presets[passed], bool(self.goal.pairs))

    def _length(self, times: _Array) -> float:
        """Returns how long a run is whose points take so long, without delays."""
        return float(times.sum()) if self.branches is None else self.branches.baseline_ns(times)

    def _delays(self, shape: PacedShape, plan: PacePlan) -> _Array:
        """Returns how long is slept behind each point, in the order in which they are passed."""
        if shape.branches is None:
            return plan.delays(shape.budget)
        delays = np.zeros(len(plan.durations))
        for points, found in zip(shape.branches.points, shape.branches.delays, strict=True):
            delays[shape.order[points]] = found
        return delays

    def _budget_ns(self, baseline: float) -> int:
        return self.goal.budget_ns(baseline, self.presets_ns)


@contextmanager
def _branched(run: BranchedRun, plans: BranchPlans | None) -> Iterator[None]:
    """A run whose submodels find out by themselves that they are of it, on whatever thread they run."""
    for number, item in enumerate(run.items):
        item.take(None if plans is None else plans.memories[number])
    token = _BRANCHED.set((run, [run.begin_ns + due for due in plans.dues] if plans is not None else []))
    try:
        yield
    finally:
        _BRANCHED.reset(token)
        run.end_ns = time.monotonic_ns()
