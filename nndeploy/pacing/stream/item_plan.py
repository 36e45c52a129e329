# SPDX-License-Identifier: Apache-2.0
"""When each runner of a pipeline should be done with an item, out of the time that the item may take in all.

The stages of a pipeline are operators of the solver's graph: processors are rigid, runners may be delayed. Levels
follow each other and add up; what stands beside each other in a level is joined, so the longest counts, and a runner
that has time until the others are done gets it. Of a pipeline with `each` the parts follow each other through the
runner, while the processors before and behind it work beside it: they count for one part.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from nndeploy.pacing.plan.operator_graph import OperatorGraph
from nndeploy.pacing.plan.policy import PacePolicy
from nndeploy.pacing.plan.solving import solve
from nndeploy.pacing.stream.protocol import StreamItem, StreamLevels, StreamStages


@dataclass(frozen=True, slots=True)
class Window:
    """From when until when a runner has an item, in nanoseconds from the item's begin."""

    begin: float
    end: float

    def due(self, done: float) -> float:
        """Returns until when that share of its work should be done."""
        return self.begin + (self.end - self.begin) * done


@dataclass(frozen=True, slots=True)
class ItemPlan:
    """The windows of the runners, by stage; the last stage ends `total` nanoseconds after the item's begin."""

    windows: Mapping[str, Window]
    total: float


@dataclass(slots=True, eq=False)
class PacedItem(StreamItem):
    """An item that is under way: when it began (CLOCK_MONOTONIC), and the work that stages did on it and its parts.

    Without a plan it is only measured. `done` are the runners that are through with it.
    """

    began_ns: int
    plan: ItemPlan | None
    work: list[tuple[str, int]] = field(default_factory=list)  # appended to by several threads
    done: list[str] = field(default_factory=list)

    def did(self, stage: str, took_ns: int) -> None:
        """Says that a stage worked on it, or on a part of it."""
        self.work.append((stage, took_ns))

    def is_late(self, now_ns: int) -> bool:
        """Returns whether a stage has it for longer than was planned."""
        if self.plan is None:
            return False
        left = (window.end for stage, window in self.plan.windows.items() if stage not in self.done)
        return now_ns - self.began_ns > min(left, default=self.plan.total)


def durations_of(plan: StreamLevels, work: Sequence[tuple[str, int]]) -> dict[str, float]:
    """Returns what each stage adds to the time of an item on which that work was done."""
    times = dict[str, list[int]]()
    for stage, took in work:
        times.setdefault(stage, []).append(took)
    durations = dict[str, float]()
    for pipeline in plan.pipelines:
        for stage in _rigid(pipeline):
            durations[stage] = sum(parts) / len(parts) if (parts := times.get(stage)) else 0.0
        if pipeline.num_runners:
            parts = times.get(pipeline.runner_stage, [])
            durations[pipeline.runner_stage] = sum(parts) / max(1, min(len(parts), pipeline.num_runners))
    return durations


def baseline_ns(plan: StreamLevels, durations: Mapping[str, float]) -> float:
    """Returns how long the stages of an item take without delays."""
    return _Graph(plan, durations).graph.baseline_ns


def planned(
    plan: StreamLevels, durations: Mapping[str, float], total: float, policy: PacePolicy = PacePolicy.PROPORTIONAL
) -> ItemPlan:
    """Returns the plan of items that may take `total` nanoseconds; what takes longer anyway has no delays."""
    if policy is PacePolicy.SOLVED:  # slack beside the longest ways is used below in any case
        policy = PacePolicy.PROPORTIONAL
    made = _Graph(plan, durations)
    total = max(total, made.graph.baseline_ns)
    starts = made.graph.starts_ns(solve(made.graph, total, policy))
    windows = dict[str, Window]()
    for (before, after), level in zip(made.joins, plan.levels, strict=True):
        for pipeline in level:
            if pipeline.num_runners:
                begin = starts[before] + _longest(pipeline.loader_workers, durations)
                windows[pipeline.runner_stage] = Window(
                    begin, starts[after] - _longest(pipeline.post_workers, durations)
                )
    return ItemPlan(windows, total)


def _rigid(pipeline: StreamStages) -> list[str]:
    return [*pipeline.loader_workers, *pipeline.post_workers]


def _longest(stages: Iterable[str], durations: Mapping[str, float]) -> float:
    return max((durations[stage] for stage in stages), default=0.0)


class _Graph:
    """The stages of a plan as operators, with one of no duration before and behind each level: its joins."""

    def __init__(self, plan: StreamLevels, durations: Mapping[str, float]) -> None:
        self._durations, self._bounds = list[float](), list[float]()
        self._edges = list[tuple[int, int]]()
        self.joins = list[tuple[int, int]]()
        join = self._operator(0.0, [])
        for level in plan.levels:
            ends = list[int]()
            for pipeline in level:
                ends += self._pipeline(pipeline, durations, join)
            after = self._operator(0.0, ends)
            self.joins.append((join, after))
            join = after
        self.graph = OperatorGraph(self._durations, self._edges, self._bounds)

    def _operator(self, duration: float, before: Sequence[int], bound: float = 0.0) -> int:
        self._durations.append(duration)
        self._bounds.append(bound)
        number = len(self._durations) - 1
        self._edges += [(one, number) for one in before]
        return number

    def _pipeline(self, pipeline: StreamStages, durations: Mapping[str, float], join: int) -> list[int]:
        """Adds the stages of a pipeline; returns those behind which nothing of it follows."""
        ends = [self._operator(durations[stage], [join]) for stage in pipeline.loader_workers] or [join]
        if pipeline.num_runners:
            ends = [self._operator(durations[pipeline.runner_stage], ends, float("inf"))]
        return [self._operator(durations[stage], ends) for stage in pipeline.post_workers] or ends
