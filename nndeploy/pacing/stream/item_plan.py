# SPDX-License-Identifier: Apache-2.0
"""When each stage of a pipeline should be done with an item, out of the time that the item may take in all.

The levels of a stream follow each other and are operators of the solver's graph; in a level the longest pipeline
counts. Each pipeline has the time of its level, which its stages share by what they take. Of a pipeline with `each`
the parts follow each other through the runner, while the processors before and behind it work beside it: they count
for one part.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from nndeploy.pacing.plan.operator_graph import OperatorGraph
from nndeploy.pacing.plan.policy import PacePolicy
from nndeploy.pacing.plan.solving import solve
from nndeploy.pacing.stream.protocol import StreamItem, StreamLevels, StreamStages


class Stretch(Protocol):
    """Around work that sleeps in between; see `PaceLibrary.stretched`."""

    def __call__(
        self, due_ns: int, work_ns: int, *, is_followed: bool = True
    ) -> AbstractContextManager[Callable[[], int]]: ...


@dataclass(frozen=True, slots=True)
class Window:
    """From when until when a stage has an item, in nanoseconds from the item's begin."""

    begin: float
    end: float

    def due(self, done: float) -> float:
        """Returns until when that share of its work should be done."""
        return self.begin + (self.end - self.begin) * done


@dataclass(frozen=True, slots=True)
class ItemPlan:
    """The windows of the stages; the last one ends `total` nanoseconds after the item's begin.

    `durations` is what each stage takes without delays, of one part where it works on parts; `with_parts` are the
    loaders and post-processors that do, each part of which has as long as the window of one.
    """

    windows: Mapping[str, Window]
    total: float
    durations: Mapping[str, float]
    with_parts: frozenset[str] = frozenset()


@dataclass(slots=True, eq=False)
class PacedItem(StreamItem):
    """An item that is under way: when it began (CLOCK_MONOTONIC), and the work that stages did on it and its parts.

    Without a plan it is only measured. `stretch` lets processors sleep in their work. `done` are the stages that are
    through with it.
    """

    began_ns: int
    plan: ItemPlan | None
    stretch: Stretch
    work: list[tuple[str, int]] = field(default_factory=list)  # appended to by several threads
    done: list[str] = field(default_factory=list)

    def did(self, stage: str, took_ns: int) -> None:
        """Says that a stage worked on it, or on a part of it."""
        self.work.append((stage, took_ns))

    @contextmanager
    def working(self, stage: str) -> Iterator[None]:
        """Around the work of a loader or a post-processor on it, or on a part of it."""
        began_ns, slept_ns = time.monotonic_ns(), 0
        if self.plan is None:
            yield
        else:
            window, has_parts = self.plan.windows[stage], stage in self.plan.with_parts
            due_ns = began_ns + window.end - window.begin if has_parts else self.began_ns + window.end
            is_followed = has_parts or window.end < self.plan.total - 1.0  # a nanosecond: ends are sums of floats
            with self.stretch(round(due_ns), round(self.plan.durations[stage]), is_followed=is_followed) as slept:
                yield
            slept_ns = slept()
        self.did(stage, time.monotonic_ns() - began_ns - slept_ns)
        if self.plan is not None and stage not in self.plan.with_parts:
            self.done.append(stage)

    def is_late(self, now_ns: int) -> bool:
        """Returns whether a stage has it for longer than was planned."""
        if self.plan is None:
            return False
        without = self.plan.with_parts.union(self.done)
        left = (window.end for stage, window in self.plan.windows.items() if stage not in without)
        return now_ns - self.began_ns > min(left, default=self.plan.total)


def durations_of(plan: StreamLevels, work: Sequence[tuple[str, int]]) -> dict[str, float]:
    """Returns what each stage adds to the time of an item on which that work was done."""
    times = dict[str, list[int]]()
    for stage, took in work:
        times.setdefault(stage, []).append(took)
    durations = dict[str, float]()
    for pipeline in plan.pipelines:
        for stage in _processors(pipeline):
            durations[stage] = sum(parts) / len(parts) if (parts := times.get(stage)) else 0.0
        if pipeline.num_runners:
            parts = times.get(pipeline.runner_stage, [])
            durations[pipeline.runner_stage] = sum(parts) / max(1, min(len(parts), pipeline.num_runners))
    return durations


def baseline_ns(plan: StreamLevels, durations: Mapping[str, float]) -> float:
    """Returns how long the stages of an item take without delays."""
    return _row_of_levels(plan, durations).baseline_ns


def planned(
    plan: StreamLevels, durations: Mapping[str, float], total: float, policy: PacePolicy = PacePolicy.PROPORTIONAL
) -> ItemPlan:
    """Returns the plan of items that may take `total` nanoseconds; what takes longer anyway has no delays."""
    if policy is PacePolicy.SOLVED:  # slack beside the longest ways is used below in any case
        policy = PacePolicy.PROPORTIONAL
    row = _row_of_levels(plan, durations)
    total = max(total, row.baseline_ns)
    starts = row.starts_ns(solve(row, total, policy)).tolist()
    windows = dict[str, Window]()
    for level, begin, end in zip(plan.levels, starts, [*starts[1:-1], total], strict=False):
        for pipeline in level:
            windows.update(_windows_of(pipeline, durations, Window(begin, end)))
    with_parts = frozenset(stage for one in plan.pipelines if one.each for stage in _processors(one))
    return ItemPlan(windows, total, durations, with_parts)


def _windows_of(pipeline: StreamStages, durations: Mapping[str, float], level: Window) -> Iterator[tuple[str, Window]]:
    """Yields the stages of a pipeline, each with its share of the level's time by what it takes."""
    begin, whole = 0.0, _length(pipeline, durations)
    for stages in _in_a_row(pipeline):
        end = begin + _longest(stages, durations)
        shares = (begin / whole, end / whole) if whole else (0.0, 1.0)
        for stage in stages:
            yield stage, Window(*map(level.due, shares))
        begin = end


def _row_of_levels(plan: StreamLevels, durations: Mapping[str, float]) -> OperatorGraph:
    """Returns the levels as operators, and one of no duration behind them."""
    lengths = [max(_length(pipeline, durations) for pipeline in level) for level in plan.levels]
    return OperatorGraph([*lengths, 0.0], [(number, number + 1) for number in range(len(lengths))])


def _processors(pipeline: StreamStages) -> list[str]:
    return [*pipeline.loader_workers, *pipeline.post_workers]


def _in_a_row(pipeline: StreamStages) -> list[list[str]]:
    """Returns the stages of a pipeline that follow each other, those together that are beside each other."""
    runner = [pipeline.runner_stage] if pipeline.num_runners else []
    return [list(pipeline.loader_workers), runner, list(pipeline.post_workers)]


def _length(pipeline: StreamStages, durations: Mapping[str, float]) -> float:
    return sum(_longest(stages, durations) for stages in _in_a_row(pipeline))


def _longest(stages: Iterable[str], durations: Mapping[str, float]) -> float:
    return max((durations[stage] for stage in stages), default=0.0)
