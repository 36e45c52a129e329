# SPDX-License-Identifier: Apache-2.0
"""Paces the runs of a program: each is an item with a time that it may take, and sleeps between its operators.

The first runs at a shape are the baseline: their points are timed, and the plan is made of the medians. Later runs keep
correcting it. Law: pacing changes no value; a run that is late never waits.
"""

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar

import numpy as np

from nndeploy.errors import DataError
from nndeploy.pacing.plan.goal import PaceGoal
from nndeploy.pacing.plan.learnt_shape import LearntShape, Shapes, num_elements
from nndeploy.pacing.plan.load_curve import Loads, baseline_timeline, expected_timeline, of_median_peak
from nndeploy.pacing.plan.pairs import Pair
from nndeploy.pacing.run.achieved import PaceRecord
from nndeploy.pacing.run.branches import BranchedRun, BranchPlans
from nndeploy.pacing.run.group import PaceGroup
from nndeploy.pacing.run.item import ItemMemory
from nndeploy.pacing.run.library import PaceLibrary
from nndeploy.pacing.run.own_time import Stopwatch, Took
from nndeploy.pacing.run.paced_points import PacedPoints
from nndeploy.pacing.run.paced_shape import KEPT_TIMES, RUNS_OF_A_PLAN, KeptBack, PacedShape
from nndeploy.pacing.run.plan_maker import PlanMaker
from nndeploy.pacing.run.planned import PlannedPair, PlannedPoint, planned_pairs, planned_points
from nndeploy.target.run_delay import thread_run_delay_ns
from nndeploy.values.types import Array

BASELINE_RUNS = 5
PLAN_SECONDS = 0.2
"""A plan is made anew from the last so many runs, and no sooner than after this time: making one takes 0.4 ms."""
MOST_WAITING = 8
WAITING_SECONDS = 0.1
"""What runs did is looked at once so many have ended, or one so long ago: it takes 0.1 ms behind a run whose operators
left nothing of Python in the caches, and hardly more for several."""
MOST_SHAPES = 64
SLICE_NS = 20_000_000
"""The scheduling slice that is asked for: others that wake are let in at once."""
KEPT_RECORDS = 10_000
"""Figures are those of the last runs where there are more."""


_BRANCHED: "ContextVar[tuple[BranchedRun, Sequence[int]] | None]" = ContextVar("branched", default=None)
"""The run of which threads run the submodels, and when each is due (CLOCK_MONOTONIC); none where one runs them all."""


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
        self.points = PacedPoints()
        self._plans = PlanMaker(self.points, goal)
        self.notes: list[str] = []
        """How points were placed, a line for each submodel that tells."""
        self.has_slice = True
        self._library = library
        self._num_threads = num_threads
        self._lock = threading.Lock()
        self._free: list[ItemMemory] = []
        self._ended: list[tuple[PacedShape, ItemMemory | BranchedRun, Took, int, float]] = []
        self._looked_at = time.monotonic()
        self._records: deque[PaceRecord] = deque(maxlen=KEPT_RECORDS)
        self._thread = threading.local()
        self._shapes: OrderedDict[Shapes, PacedShape] = OrderedDict()

    def choose(self, pairs: Sequence[Pair]) -> None:
        """Lets runs sleep between those pairs of a program that the goal chooses, all of them where it chooses none.

        Raises:
            UsageError: the goal names an operator or a pair that is not there.
        """
        self.points.choose(pairs, self.goal.pairs)

    @property
    def adapted(self) -> str:
        """How a plan was used for inputs of another shape than it has, in a line; "" where that did not happen."""
        return self._plans.adapted

    @property
    def busy_note(self) -> str:
        """How much runs waited for cores from which plans were made, in a line; "" where they did not."""
        return self._plans.busy_note

    @contextmanager
    def until(self, deadline_ns: int, following_ns: float = 0.0) -> Iterator[None]:
        """The runs of this thread may take until then (CLOCK_MONOTONIC), whatever the goal says; 0: as it says.

        Work of `following_ns` comes behind them, and has its share of the time.
        """
        self._thread.deadline, self._thread.following = deadline_ns, following_ns
        try:
            yield
        finally:
            self._thread.deadline = 0

    def slept_ns(self) -> int:
        """Returns for how long this thread's last run slept."""
        return getattr(self._thread, "slept", 0)

    def stretched(
        self, due_ns: int, work_ns: int, *, is_followed: bool = True
    ) -> AbstractContextManager[Callable[[], int]]:
        """Work of this thread beside its runs: see `PaceLibrary.stretched`."""
        return self._library.stretched(due_ns, work_ns, is_followed=is_followed)

    @contextmanager
    def run(self, shapes: Shapes) -> Iterator[None]:
        """A run by this thread on inputs of these shapes, or by as many as run its submodels at once."""
        branches = self.points.branches
        with self._lock:
            shape = self._shape(shapes)
            items = [self._taken_item() for _ in (branches.firsts if branches is not None else [0])]
            memory, plans, budget, reserve = shape.memory, shape.branches, shape.budget, shape.reserve
        if deadline := getattr(self._thread, "deadline", 0):
            share = shape.expected_ns / ((shape.expected_ns + self._thread.following) or 1.0)
            budget = max(1, round(share * (deadline - time.monotonic_ns())))
        is_done, stopwatch = False, Stopwatch() if memory is None else None
        try:
            if branches is None:
                did: ItemMemory | BranchedRun = items[0]
                items[0].take(memory)
                with self._working(items[0], budget):
                    yield
            else:
                did = BranchedRun(branches, items, time.monotonic_ns())
                with _branched(did, plans):
                    yield
            is_done = True
        finally:
            if is_done:
                took = self._took(did, stopwatch)
                with self._lock:
                    self._ended.append((shape, did, took, budget if memory is not None else 0, reserve))
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
        if not hasattr(self._thread, "slept"):
            self.has_slice &= bool(self._library.slice(SLICE_NS))
        before = thread_run_delay_ns()
        try:
            with self._library.working(item, budget):
                yield
        finally:
            after = thread_run_delay_ns()
            item.waited = None if after is None or before is None else after - before
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

    def known(self) -> tuple[float, Array]:
        """Returns the baseline of the shape that ran last, and that of its operators, in ns; 0: not known yet."""
        with self._lock:
            shape = self._planned()
        return (0.0, np.zeros(len(self.points))) if shape is None else (shape.baseline, shape.durations)

    def timed(self) -> tuple[float, Array]:
        """Returns the medians of a run and of its operators at the shape that ran last, where runs are only timed."""
        with self._lock:
            self._look()
            shape = next(reversed(self._shapes.values()))
            return shape.own_ns, shape.median_durations

    def start(self, learnt: LearntShape) -> None:
        """Paces runs at a shape from the first on: by what is known of it, and by the weights and parts given.

        Raises:
            DataError: an operator is to be done in parts that cannot be.
            UsageError: the time that was granted is less than a run takes.
        """
        for name, is_cut, parts in zip(self.points.names, self.points.is_cut, learnt.parts.tolist(), strict=True):
            if parts > 1 and not is_cut:
                raise DataError(f"the plan has {name!r:.80} in {parts} parts, which is done in one")
        if learnt.pairs:
            self.points.pairs = list(learnt.pairs)
        self.goal.check(learnt.baseline, self.points.presets_ns)
        with self._lock:
            self._plans.given = learnt
            self._shapes[learnt.shapes] = self._plans.by(learnt)

    def learnt(self) -> LearntShape | None:
        """Returns what is known of the shape that ran last, None where there is no plan."""
        with self._lock:
            self._look()
            found = self._last_planned()
            if found is None:
                return None
            key, shape = found
            _, plan = self._plans.in_order(shape)
            weights, parts = plan.weights[shape.order], plan.parts[shape.order]
            return LearntShape(
                key,
                shape.order,
                shape.durations,
                weights,
                parts,
                shape.baseline,
                shape.reserve,
                tuple(self.points.pairs),
            )

    def plan(self) -> list[PlannedPoint]:
        """Returns the plan at the shape that ran last, in the order in which points are passed; empty where none is."""
        with self._lock:
            shape = self._planned()
            if shape is None:
                return []
            order, plan = self._plans.in_order(shape)
            return planned_points(self.points, order, plan, self._plans.delays(shape, plan))

    def planned_pairs(self) -> list[PlannedPair]:
        """Returns the pairs of the plan at the shape that ran last, those of the first point that is passed first."""
        with self._lock:
            shape = self._planned()
            if shape is None:
                return []
            order, plan = self._plans.in_order(shape)
            return planned_pairs(self.points, order, plan, self._plans.delays(shape, plan))

    def kept_back(self) -> KeptBack | None:
        """Returns what runs at the shape that ran last keep back from sleeping; None where no plan grants them time."""
        with self._lock:
            shape = self._planned()
        return None if shape is None or self.group is not None or self.goal.has_presets_only else shape.kept_back

    def loads(self) -> Loads | None:
        """Returns the load over time of runs at the shape that ran last, None where there is no plan."""
        with self._lock:
            shape = self._planned()
            if shape is None:
                return None
            _, plan = self._plans.in_order(shape)
            baseline, timelines = shape.baseline, list(shape.timelines)
            budget = float(shape.budget)
            if shape.branches is not None:
                plan, budget = shape.branches.longest
                baseline = plan.total
        return Loads(baseline_timeline(baseline), expected_timeline(plan, budget), of_median_peak(timelines))

    def _planned(self) -> PacedShape | None:
        """Returns the shape that ran last of those that have a plan."""
        self._look()
        found = self._last_planned()
        return None if found is None else found[1]

    def _last_planned(self) -> tuple[Shapes, PacedShape] | None:
        return next(((key, one) for key, one in reversed(self._shapes.items()) if one.memory is not None), None)

    def _shape(self, key: Shapes) -> PacedShape:
        if key in self._shapes:
            self._shapes.move_to_end(key)
        elif self._plans.given is not None:
            self._keep(key, self._plans.adapted_to(key))
        elif self.goal.is_of_item and (known := self._last_planned()) is not None:
            self._keep(key, self._plans.guessed(known[1], num_elements(key) / num_elements(known[0])))
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
        for shape, item, took, budget, reserve in self._ended:
            self._learn(shape, item, took, budget, reserve)
            self._free += [item] if isinstance(item, ItemMemory) else item.items
        self._ended.clear()
        self._looked_at = time.monotonic()

    def _took(self, run: ItemMemory | BranchedRun, stopwatch: Stopwatch | None) -> Took:
        """Returns what a run took: a baseline run, which has a stopwatch, or one by a plan.

        Of one by a plan it is known what the threads waited that called it, alone. A group lets also baseline runs
        sleep.
        """
        if stopwatch is None:
            clock_ns, worked = self.points.length_ns(run.times), max(1, run.worked)
            return Took(clock_ns * min(1.0, max(run.used, worked - (run.waited or 0)) / worked), clock_ns)
        threads = 1 if isinstance(run, ItemMemory) else len(run.items)
        return stopwatch.took(run.latency - (run.slept if self.group is not None else 0), run.used / threads)

    def _learn(
        self, shape: PacedShape, item: ItemMemory | BranchedRun, took: Took, budget: int, reserve: float
    ) -> None:
        latency, threads = item.latency, 1 if isinstance(item, ItemMemory) else len(item.items)
        self._records.append(
            PaceRecord(
                budget, latency, item.slept, item.used, item.waiting_used, item.longest_run, item.busiest,
                tuple(item.late), threads, item.waited,
            )
        )  # fmt: skip
        shape.took.append(took)
        shape.times.append(item.times.copy())
        if budget:
            # whose budget is shorter than what runs take was late when it began
            baseline = max(shape.baseline, self.points.length_ns(item.times))
            if not self.goal.is_of_item:
                shape.keep_back(latency - max(budget - reserve, baseline))
            shape.budgets.append(budget)
            shape.stretch(item.worked)
            shape.timelines.append(item.timeline())
            if shape.given is not None:
                shape.order = item.order.copy()  # a library may run operators in another order each time it is loaded
            is_time = len(shape.times) == RUNS_OF_A_PLAN and time.monotonic() > shape.planned_at + PLAN_SECONDS
        else:
            shape.order = item.order.copy()
            is_time = len(shape.times) == BASELINE_RUNS and not self.goal.only_times
        if is_time:
            self._plans.make_anew(shape)


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
