# SPDX-License-Identifier: Apache-2.0
"""Turns a checked plan into queues and threads, from the last one back to the first.

    source -> level -> level -> ... -> the sink's queue
    level:    copy -> one pipeline each -> sync             (nothing is copied or joined where there is only one)
    pipeline: split -> stage -> runner -> stage -> gather   (parts only with `each`)
    stage:    copy -> basic queue and its workers, for each kind of worker -> sync

Equal workers share a basic queue; different ones get copies and are joined. Each piece is built knowing its outlet, so
this file reads backwards, as the records do not flow.
"""

from collections.abc import Callable, Mapping, Sequence

from nndeploy.errors import UsageError
from nndeploy.stream.description import PipelinePlan, RunnerPlan, StagePlan, StreamPlan, default_in_flight
from nndeploy.stream.non_finite import NanPolicy
from nndeploy.stream.parts import Gatherer, Keeper, Splitter
from nndeploy.stream.queues import BasicQueue, CopyQueue, Outlet, QueueFigures, SyncQueue, Tokens
from nndeploy.stream.records import Record
from nndeploy.stream.runner import Carry, Runner, RunsValues
from nndeploy.stream.workers import Clock, Crew, RunnerWork, Stage, StageFigures, Tracer, work_on_steps

MIN_ROOM = 8
"""Records that a queue holds at least: with less, each hop of a short record is a switch of threads. Tokens bound how
many are on their way, so more room costs no memory. 2 cores of an EPYC, 2026-11-20, empty stages: 31 us a record with
room for 2, 20 us with 8, 18 us with 32."""

Programs = Mapping[str, Sequence[RunsValues]]
"""The programs of each pipeline that has a runner, one for each of its devices."""


class Assembly:
    """The queues and threads of one stream; records go into `entry` and come out of `done`."""

    def __init__(self, plan: StreamPlan, programs: Programs, nan: NanPolicy, tracer: Tracer | None = None) -> None:
        """Builds everything; nothing runs before `start`.

        Raises:
            UsageError: a runner does not fit its model.
        """
        self.plan = plan
        self.in_flight = plan.in_flight or default_in_flight(plan)
        self.tokens = Tokens(self.in_flight)
        self.crew = Crew(self.abort)
        self._programs = programs
        self._nan = nan
        self._tracer = tracer
        self._abortable: list[Tokens | BasicQueue[Record] | SyncQueue] = [self.tokens]
        self._queues: list[BasicQueue[Record] | CopyQueue | SyncQueue] = []
        self._stages: list[Stage] = []
        self.done: BasicQueue[Record]
        self.entry: Outlet[Record]
        self._build()
        self._queues.reverse()
        self._stages.reverse()

    def _build(self) -> None:
        last = self.plan.levels[-1]
        self.done = self._basic("sink", self.in_flight, 1 if len(last) > 1 else _num_ends(last[0]))
        outlet: Outlet[Record] = self.done
        for number, level in reversed(list(enumerate(self.plan.levels, 1))):
            is_first = number == 1
            num_before = 1 if is_first else _num_level_ends(self.plan.levels[number - 2])
            outlet = self._level(level, outlet, f"level {number}", num_before)
        self.entry = outlet

    def _level(
        self, level: Sequence[PipelinePlan], outlet: Outlet[Record], name: str, num_before: int
    ) -> Outlet[Record]:
        if len(level) == 1:
            return self._pipeline(level[0], outlet, num_before)
        joined = self._sync(name, outlet, self.in_flight, sum(map(_num_ends, level)))
        return self._copy(name, [self._pipeline(pipeline, joined, 1) for pipeline in level], num_before)

    def _pipeline(self, plan: PipelinePlan, outlet: Outlet[Record], num_before: int) -> Outlet[Record]:
        if plan.keep is not None:
            outlet = Keeper(plan.keep, outlet)
        if not plan.each:
            return self._stages_of(plan, outlet, num_before)
        tokens = Tokens(2 * default_in_flight(StreamPlan(((plan,),), ())))
        self._abortable.append(tokens)
        names = [name for name in plan.gives if plan.keep is None or name in plan.keep]
        gatherer = Gatherer(names, outlet, tokens, _num_ends_of_stages(plan))
        entry = self._stages_of(plan, gatherer, 1)
        return Splitter(plan.each, plan.part, entry, gatherer, tokens, num_before)

    def _stages_of(self, plan: PipelinePlan, outlet: Outlet[Record], num_before: int) -> Outlet[Record]:
        counts = _ends(plan)
        if plan.posts:
            before = counts["runner"] or counts["loaders"] or num_before
            outlet = self._kinds(plan.posts, f"{plan.name}: post", outlet, before, None)
        runners: list[Runner] = []
        if plan.runner is not None:
            outlet, runners = self._runners(plan, plan.runner, outlet, counts["loaders"] or num_before)
        if plan.loaders:
            prepare = runners[0] if runners and len(plan.loaders) == 1 else None
            outlet = self._kinds(plan.loaders, f"{plan.name}: loader", outlet, num_before, prepare)
        return outlet

    def _kinds(
        self, kinds: Sequence[StagePlan], name: str, outlet: Outlet[Record], num_before: int, prepare: Runner | None
    ) -> Outlet[Record]:
        """Returns the entry of different workers that each get every record; `outlet` gets their results together."""
        if len(kinds) == 1:
            return self._workers(kinds[0], name, outlet, num_before, prepare)
        workers = sum(kind.workers for kind in kinds)
        joined = self._sync(name, outlet, 2 * workers, workers)
        names = [f"{name} {i}" for i in range(1, len(kinds) + 1)]
        entries = [self._workers(kind, one, joined, 1, None) for kind, one in zip(kinds, names, strict=True)]
        return self._copy(name, entries, num_before)

    def _workers(
        self, kind: StagePlan, name: str, outlet: Outlet[Record], num_before: int, prepare: Runner | None
    ) -> BasicQueue[Record]:
        """Returns the queue of equal workers."""
        queue = self._basic(name, max(2 * kind.workers, MIN_ROOM), num_before)
        for clock in self._stage(name, kind.workers).clocks():
            self.crew.add(clock.worker, _steps_work(queue, kind, outlet, clock, prepare))
        return queue

    def _runners(
        self, plan: PipelinePlan, how: RunnerPlan, outlet: Outlet[Record], num_before: int
    ) -> tuple[Outlet[Record], list[Runner]]:
        """Returns the queue of the runners of a pipeline, and the runners."""
        programs, name = self._programs[plan.name], f"{plan.name}: runner"
        assert len(programs) == len(how.devices)
        queue = self._basic(name, max(2 * len(programs), 2 * how.batch, MIN_ROOM), num_before)
        runners = [Runner(program, how, self._nan, name) for program in programs]
        if how.carry and not plan.each:
            raise UsageError("carry needs each: it leads from one part of a record to the next", where=name)
        carry = Carry(how, programs[0].manifest) if how.carry else None
        is_prepared = len(plan.loaders) == 1
        for runner, clock in zip(runners, self._stage(name, len(runners)).clocks(), strict=True):
            work = RunnerWork(queue, runner, outlet, clock, how.batch, how.batch_delay_ns, is_prepared, carry)
            self.crew.add(clock.worker, work)
        return queue, runners

    def _basic(self, name: str, capacity: int, num_producers: int) -> BasicQueue[Record]:
        queue: BasicQueue[Record] = BasicQueue(name, capacity, num_producers)
        self._abortable.append(queue)
        self._queues.append(queue)
        return queue

    def _sync(self, name: str, outlet: Outlet[Record], capacity: int, num_producers: int) -> SyncQueue:
        queue = SyncQueue(f"{name}, sync", outlet, capacity, num_producers)
        self._abortable.append(queue)
        self._queues.append(queue)
        return queue

    def _copy(self, name: str, outlets: Sequence[Outlet[Record]], num_producers: int) -> CopyQueue:
        queue = CopyQueue(f"{name}, copy", outlets, num_producers)
        self._queues.append(queue)
        return queue

    def _stage(self, name: str, num_workers: int) -> Stage:
        stage = Stage(name, num_workers, self._tracer)
        self._stages.append(stage)
        return stage

    def abort(self) -> None:
        """Wakes everybody; each thread ends as soon as it is back from what it does."""
        for queue in self._abortable:
            queue.abort()

    def queues(self) -> list[QueueFigures]:
        """Returns what the queues did so far, from the source to the sink."""
        return [queue.figures() for queue in self._queues]

    def stages(self) -> list[StageFigures]:
        """Returns what the workers did so far, from the source to the sink."""
        return [stage.figures() for stage in self._stages]


def _steps_work(
    queue: BasicQueue[Record], kind: StagePlan, outlet: Outlet[Record], clock: Clock, prepare: Runner | None
) -> Callable[[], None]:
    return lambda: work_on_steps(queue, kind.steps, outlet, clock, prepare)


def _ends(plan: PipelinePlan) -> dict[str, int]:
    """Returns how often each stage closes what is behind it, 0 where there is no such stage."""
    return {
        "loaders": _num_closes(plan.loaders),
        "runner": len(plan.runner.devices) if plan.runner is not None else 0,
        "posts": _num_closes(plan.posts),
    }


def _num_closes(kinds: Sequence[StagePlan]) -> int:
    return kinds[0].workers if len(kinds) == 1 else min(len(kinds), 1)  # a sync queue closes once


def _num_ends_of_stages(plan: PipelinePlan) -> int:
    counts = _ends(plan)
    return counts["posts"] or counts["runner"] or counts["loaders"] or 1


def _num_ends(plan: PipelinePlan) -> int:
    return 1 if plan.each else _num_ends_of_stages(plan)


def _num_level_ends(level: Sequence[PipelinePlan]) -> int:
    return _num_ends(level[0]) if len(level) == 1 else 1
