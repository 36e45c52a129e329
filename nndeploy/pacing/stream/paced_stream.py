# SPDX-License-Identifier: Apache-2.0
"""Paces a stream: the time that is granted belongs to the item, from where it is let in until its last stage is done.

The first items are the baseline: each alone in the pipeline and without delays, so what they take is known. From then
on each stage has a planned end, counted from the item's begin, and is paced to it: what earlier stages lost is slept
less, what they saved more, and who is late does not sleep. Items since then keep correcting the plan.

Items beside each other would work at once, and then leave the cores idle. So an item is let in one budget behind the
one before it. A live source sets a pace of its own: its items are let in one interval behind each other, the longest
time that any stage keeps a worker for, so that delays do not become waiting in front of a stage. None is let in while
one that is under way is late.
"""

import math
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from threading import Lock

import numpy as np

from nndeploy.errors import UsageError
from nndeploy.pacing.plan.goal import PaceGoal, check_slack
from nndeploy.pacing.plan.plan_file import PacePlanFile
from nndeploy.pacing.run.own_time import SURE, Stopwatch, Took, busy_text, waited_share
from nndeploy.pacing.run.paced_program import PacedProgram
from nndeploy.pacing.run.paced_shape import KEPT_ERRORS, LEAST_RESERVE_NS, NOT_SEEN_YET
from nndeploy.pacing.run.pacer import Pacer
from nndeploy.pacing.run.plan_maker import FIRST_RESERVE
from nndeploy.pacing.run.protocol import ProgramPacing
from nndeploy.pacing.stream.item_plan import ItemPlan, PacedItem, Stretch, baseline_ns, durations_of, planned
from nndeploy.pacing.stream.protocol import (
    STREAM_NOT_PACED,
    Due,
    PacedRecord,
    StreamLevels,
    StreamPacing,
    StreamStages,
)
from nndeploy.target.target import num_cores

BASELINE_ITEMS = 5
ITEMS_OF_A_PLAN = 8
"""Number of items after which the plan is made anew."""
LEAST_ITEM_RESERVE = 0.01
"""Smallest share of the budget kept in reserve: all stages use what they have, so items come close to its end."""
MOST_ITEM_RESERVE = 0.25
"""Largest share of the budget kept in reserve: an item is held up in every stage, by those of other items too."""
KEPT_ITEMS = 32
"""Items of whose stages the plan takes the medians."""
KEPT_LATENCIES = 100_000
BESIDE_NS = 60_000_000_000
"""What is done beside an item may take so long, and is not slept in later."""
AT_ONCE = 1
"""A time that is long past: who should be done by then does not sleep."""


def item_goal(
    by: PaceGoal | PacePlanFile | None, with_batches: Sequence[str], *, is_one_route: bool, where: str
) -> PaceGoal | None:
    """Returns what the user grants to each item of a pipeline, None where nothing is paced.

    `with_batches` are the pipelines whose runners take several items at once; with `is_one_route` every record goes
    through all stages. `where` is the pipeline's file.

    Raises:
        UsageError: the pipeline cannot be paced by that.
    """
    if isinstance(by, PacePlanFile):
        raise UsageError(
            "--pace-plan is for a bundle alone: a pipeline profiles its own stages",
            hint="--max-latency or --cpu-limit",
        )
    if by is not None and (by.pairs or by.total_ns):
        raise UsageError(
            "--pace-pair and --pace-total are for a bundle alone: delays of a pipeline belong to its items",
            hint="--max-latency or --cpu-limit",
        )
    if by is None or not by.max_latency_ns:
        return by
    if with_batches:
        raise UsageError(
            f"the pipeline {with_batches[0]!r} runs batches, in which items wait for others, so no latency can be "
            "guaranteed",
            hint="leave out batch, or pace by --cpu-limit",
        )
    if not is_one_route:
        raise UsageError(
            "a latency budget needs every record to take the same route", where=where,
            hint="leave out source, when and queue, or pace by --cpu-limit",
        )  # fmt: skip
    return replace(by, is_of_item=True)


def stream_pacing(
    plan: StreamLevels, programs: Mapping[str, Sequence[ProgramPacing]], goal: PaceGoal | None
) -> StreamPacing:
    """Returns the pacing of a stream by that of each pipeline's programs; one that is not paced without a goal."""
    if goal is None:
        return STREAM_NOT_PACED
    pacers = {name: [one.pacer for one in some if isinstance(one, PacedProgram)] for name, some in programs.items()}
    return PacedStream(plan, pacers, goal)


@dataclass(frozen=True, slots=True)
class AchievedItems:
    """Times in milliseconds, shares 0..1; `process_load` is processor time a second, of all threads and libraries.

    `cap_ms` is 0 where only the runners are limited, `interval_ms` 0 where items are let in as they come.
    """

    items: int
    cap_ms: float
    calm_ms: float
    interval_ms: float
    p50_ms: float
    p99_ms: float
    over_cap: float
    process_load: float


@dataclass(frozen=True, slots=True)
class RunnerDue:
    """Until when the runs of one runner may take."""

    pacer: Pacer
    stage: str
    posts: Sequence[str]
    num_runners: int
    has_parts: bool
    is_by_item: bool

    @contextmanager
    def __call__(self, record: PacedRecord) -> Iterator[None]:
        """The run of a record, or of a part of one."""
        item, began_ns = record.paced, time.monotonic_ns()
        assert isinstance(item, PacedItem)
        with self.pacer.until(*self._end(item, record) if self.is_by_item else (0,)):
            yield
        item.did(self.stage, time.monotonic_ns() - began_ns - self.pacer.slept_ns())
        if not self.has_parts or sum(stage == self.stage for stage, _ in item.work) == record.num_places:
            item.done.append(self.stage)

    def _end(self, item: PacedItem, record: PacedRecord) -> tuple[int, float]:
        """Returns until when the run, and what comes behind it, may take, and how long that takes without delays."""
        if item.plan is None:
            return AT_ONCE, 0.0
        own, plan = item.plan.windows[self.stage], item.plan
        if self.has_parts:
            done = min(1.0, (record.place + self.num_runners) / record.num_places)
            return item.began_ns + round(own.due(done)), 0.0
        end = max((plan.windows[stage].end for stage in self.posts), default=own.end)
        return item.began_ns + round(end), max((plan.durations[stage] for stage in self.posts), default=0.0)


class PacedStream(StreamPacing):
    """What the items of one stream may take, when the next is let in, and what was achieved."""

    def __init__(self, plan: StreamLevels, pacers: Mapping[str, Sequence[Pacer]], goal: PaceGoal) -> None:
        """`pacers` are those of each pipeline's programs, one for each device."""
        self.pacers = pacers
        self.budget_ns = goal.max_latency_ns
        self._policy = goal.policy
        self._is_live = False
        self._stretch: Stretch = next((one.stretched for some in pacers.values() for one in some), _not_stretched)
        self.baseline_ns = 0.0
        self.busy_note = ""
        """How much the items of the baseline waited for cores, in a line; "" where they did not."""
        self.interval_ns = 0.0
        self._plan = plan
        self._item_plan: ItemPlan | None = None
        self._lock = Lock()
        self._reserve = 0.0
        self._durations: deque[dict[str, float]] = deque(maxlen=KEPT_ITEMS)
        self._busy: deque[float] = deque(maxlen=KEPT_ITEMS)  # the longest time that an item kept a worker for
        self._took = list[Took]()  # of the baseline
        self._late: deque[float] = deque(maxlen=KEPT_ERRORS)  # behind the planned end
        self._latencies: deque[int] = deque(maxlen=KEPT_LATENCIES)
        self._under_way = set[PacedItem]()
        self._num_new = self._next_begin_ns = 0
        self._cpu_ns = list[int]()
        self._paced_since = self._marks = _Marks()
        self._stopwatch = Stopwatch()  # of the item that is alone

    # What the stream asks

    def due(self, pipeline: StreamStages) -> Sequence[Due]:
        """Returns until when the runs of a pipeline may take, one for each of its programs."""
        pacers = self.pacers[pipeline.name]
        name, posts, has_parts = pipeline.runner_stage, list(pipeline.post_workers), bool(pipeline.each)
        return [RunnerDue(pacer, name, posts, len(pacers), has_parts, self.budget_ns > 0) for pacer in pacers]

    def feed(self, *, is_live: bool) -> None:
        """Says where items come from: a live source sets a pace of its own, another one waits."""
        self._is_live = is_live

    def next_begin_ns(self) -> int | None:
        """Returns when the next item may be let in (CLOCK_MONOTONIC), None where others must be done first."""
        with self._lock:
            if not self.budget_ns:
                return 0
            if self._item_plan is None:
                return None if self._under_way else 0
            now = time.monotonic_ns()
            return None if any(item.is_late(now) for item in self._under_way) else self._next_begin_ns

    def beside(self) -> AbstractContextManager[object]:
        """Around what is done beside the items, which takes as many times as long as they do."""
        if self._item_plan is None or self._is_live:
            return nullcontext()
        work_ns = round(BESIDE_NS * self.baseline_ns / self.budget_ns)
        return self._stretch(time.monotonic_ns() + BESIDE_NS, work_ns, is_followed=False)

    def begin(self, record: PacedRecord) -> None:
        """Says that an item was read and goes to its first stage."""
        with self._lock:
            now = time.monotonic_ns()
            self._next_begin_ns = now + round(self.interval_ns)
            if self._item_plan is None:
                self._marks, self._stopwatch = _Marks(), Stopwatch()
            record.paced = PacedItem(now, self._item_plan, self._stretch)
            self._under_way.add(record.paced)

    def end(self, record: PacedRecord) -> None:
        """Says that the last stage of an item is done.

        Raises:
            UsageError: the time that was granted is less than items take without delays.
        """
        item, now = record.paced, time.monotonic_ns()
        assert isinstance(item, PacedItem)
        with self._lock:
            self._under_way.remove(item)
            if record.error is None:
                self._learn(item, now - item.began_ns)

    def achieved(self) -> AchievedItems | None:
        """Returns the figures of the paced items, None where there was none."""
        with self._lock:
            if not self._latencies:
                return None
            latencies, passed = np.array(self._latencies), _Marks()
            return AchievedItems(
                items=len(latencies),
                cap_ms=self.budget_ns / 1e6,
                calm_ms=self.baseline_ns / 1e6,
                interval_ms=self.interval_ns / 1e6,
                p50_ms=float(np.median(latencies)) / 1e6,
                p99_ms=float(np.quantile(latencies, 0.99)) / 1e6,
                over_cap=float(np.mean(latencies > self.budget_ns)) if self.budget_ns else 0.0,
                process_load=passed.load_since(self._paced_since),
            )

    # What it learns; under the lock

    def _learn(self, item: PacedItem, latency: int) -> None:
        if not self.budget_ns:
            self._latencies.append(latency)
            return
        self._durations.append(durations_of(self._plan, item.work))
        self._busy.append(self._longest_busy(item))
        self._num_new += 1
        if self._item_plan is None:
            self._took.append(self._stopwatch.took(latency))
            self._cpu_ns.append(_Marks().cpu_ns - self._marks.cpu_ns)
            if self._num_new >= BASELINE_ITEMS:
                self._begin_pacing()
        elif item.plan is not None:
            self._latencies.append(latency)
            self._late.append(latency - max(item.plan.total, baseline_ns(self._plan, self._durations[-1])))
            if self._num_new >= ITEMS_OF_A_PLAN:
                self._plan_anew()

    def _begin_pacing(self) -> None:
        took = sorted(one.own_ns for one in self._took)
        self.baseline_ns = statistics.median(took)
        if waited := waited_share(self._took):
            self.busy_note = busy_text(waited)
            self._leave_out_waits()
        check_slack("an item", self.baseline_ns, self.budget_ns, SURE if waited else 1.0)
        outside = max(0.0, self.baseline_ns - baseline_ns(self._plan, self._medians()))
        spread = took[-2] - self.baseline_ns  # the slowest is the first one, to which all is new
        reserve = LEAST_RESERVE_NS + outside + spread + FIRST_RESERVE * self.budget_ns
        self._reserve = min(reserve, MOST_ITEM_RESERVE * self.budget_ns)
        for pacers in self.pacers.values():
            for pacer in pacers:
                pacer.forget()
        self._make_plan(statistics.median(self._cpu_ns))
        self._paced_since = self._marks

    def _plan_anew(self) -> None:
        most = float(np.quantile(self._late, 0.99, method="higher"))
        stands_out = max(0.0, most - max(0.0, float(np.median(self._late))))
        needed = most + NOT_SEEN_YET / math.sqrt(len(self._late)) * stands_out
        needed = max(needed, LEAST_RESERVE_NS, LEAST_ITEM_RESERVE * self.budget_ns)
        self._reserve = min(needed, MOST_ITEM_RESERVE * self.budget_ns)
        self._make_plan((_Marks().cpu_ns - self._marks.cpu_ns) / self._num_new)

    def _make_plan(self, cpu_ns: float) -> None:
        """Makes the plan of the items that follow, each of which needs so much processor time."""
        durations = self._medians()
        made = planned(self._plan, durations, self.budget_ns - self._reserve, self._policy)
        windows = (
            (window.end - window.begin) / num_workers[stage] + self._reserve
            for num_workers in map(_num_workers, self._plan.pipelines)
            for stage, window in made.windows.items()
            if stage in num_workers
        )
        alone = 0.0 if self._is_live else float(self.budget_ns)
        self.interval_ns = max(1.0, alone, statistics.median(self._busy), cpu_ns / num_cores(), *windows)
        self._item_plan, self._num_new, self._marks = made, 0, _Marks()

    def _leave_out_waits(self) -> None:
        """Lets stages have taken the least that they did, and no longer than items take by themselves."""
        least = {stage: min(one[stage] for one in self._durations) for stage in self._durations[0]}
        own = min(1.0, self.baseline_ns / max(1.0, baseline_ns(self._plan, least)))
        self._durations = deque([{stage: own * took for stage, took in least.items()}], maxlen=KEPT_ITEMS)
        self._busy = deque([own * min(self._busy)], maxlen=KEPT_ITEMS)

    def _medians(self) -> dict[str, float]:
        return {stage: statistics.median(one[stage] for one in self._durations) for stage in self._durations[0]}

    def _longest_busy(self, item: PacedItem) -> float:
        processors = {
            stage: num
            for pipeline in self._plan.pipelines
            for stage, num in _num_workers(pipeline).items()
            if stage != pipeline.runner_stage
        }
        busy = dict.fromkeys(processors, 0.0)
        for stage, took in item.work:
            if stage in busy:
                busy[stage] += took / processors[stage]
        return max(busy.values(), default=0.0)


def _num_workers(pipeline: StreamStages) -> dict[str, int]:
    """Returns the number of workers of each stage."""
    runners = {pipeline.runner_stage: pipeline.num_runners} if pipeline.num_runners else {}
    return {**pipeline.loader_workers, **runners, **pipeline.post_workers}


@contextmanager
def _not_stretched(due_ns: int, work_ns: int, *, is_followed: bool = True) -> Iterator[Callable[[], int]]:  # noqa: ARG001
    """Work where nothing is run that could be paced."""
    yield lambda: 0


class _Marks:
    """The clocks of the wall and of this process."""

    def __init__(self) -> None:
        self.wall_ns, self.cpu_ns = time.monotonic_ns(), time.process_time_ns()

    def load_since(self, before: "_Marks") -> float:
        return (self.cpu_ns - before.cpu_ns) / max(1, self.wall_ns - before.wall_ns)
