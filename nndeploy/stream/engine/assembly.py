# SPDX-License-Identifier: Apache-2.0
"""Turns a checked plan into queues and workers, from the last one back to the first.

    source -> level -> level -> ... -> outlet               (or back to an earlier level: returning.py)
    level:    copy -> one pipeline each -> sync             (nothing is copied or joined where there is only one)
              or routes -> the pipelines that take a record -> sync where these are several   (routing.py)
    pipeline: split -> stage -> runner -> stage -> gather   (parts only with `each`)
    stage:    copy -> basic queue and its workers, for each kind of worker -> sync

Equal workers share a basic queue; different ones get copies and are joined. Each piece is built knowing its outlet, so
this file reads backwards, as the records do not flow; the schedule prefers what was built first.
"""

from collections.abc import Mapping, Sequence

from nndeploy.bundle.manifest import Manifest
from nndeploy.pacing.stream.protocol import STREAM_NOT_PACED, StreamPacing
from nndeploy.runtime.batching import Runs, proof_of
from nndeploy.stream.description import (
    LevelPlan,
    PipelinePlan,
    RunnerPlan,
    StagePlan,
    StageStep,
    StepElsewhere,
    StreamPlan,
    default_in_flight,
)
from nndeploy.stream.engine.carry import Carry
from nndeploy.stream.engine.loop import Loop, OnRound, no_round
from nndeploy.stream.engine.non_finite import NanPolicy
from nndeploy.stream.engine.parts import Gatherer, Keeper, Splitter
from nndeploy.stream.engine.queues import BasicQueue, CopyQueue, Outlet, QueueFigures, SyncQueue
from nndeploy.stream.engine.returning import Returning
from nndeploy.stream.engine.routing import CopyRoutes, Leaving, Rejoining, SharedQueue, SwitchRoutes, Way
from nndeploy.stream.engine.runner import Runner
from nndeploy.stream.engine.schedule import Schedule, Worker
from nndeploy.stream.engine.sessions import Sessions
from nndeploy.stream.engine.workers import (
    Carried,
    LoopWorker,
    PlaceClocks,
    RunnerWorker,
    Stage,
    StageFigures,
    StepsWorker,
    Tracer,
)
from nndeploy.stream.model_fit import check_fits

Programs = Mapping[str, Sequence[Runs]]
"""The programs of each pipeline that has a runner, one for each of its devices."""


class Assembly:
    """The queues and workers of one stream; records go into `entry` and come out at the outlet."""

    def __init__(
        self,
        plan: StreamPlan,
        programs: Programs,
        schedule: Schedule,
        outlet: Outlet,
        nan: NanPolicy,
        tracer: Tracer | None = None,
        pacing: StreamPacing = STREAM_NOT_PACED,
        on_round: OnRound = no_round,
    ) -> None:
        """Builds everything; nothing runs before the schedule is started. `on_round` sees the rounds of loops.

        Raises:
            UsageError: a runner does not fit its model.
        """
        self._programs = programs
        self._schedule = schedule
        self._nan = nan
        self._tracer = tracer
        self._pacing = pacing
        self._on_round = on_round
        self._most = schedule.in_flight  # that can come into what is being built
        self._queues: list[BasicQueue | CopyQueue | SyncQueue | CopyRoutes | SwitchRoutes | SharedQueue] = []
        self._stages: list[Stage] = []
        self._sessions: list[Sessions] = []
        self._elsewhere: list[StepElsewhere] = []
        returning: dict[int, list[Returning]] = {}
        for number, level in reversed(list(enumerate(plan.levels, 1))):
            how = plan.how(number)
            if how.back_to:
                outlet = Returning(how.until, outlet)
                returning.setdefault(how.back_to, []).append(outlet)
            outlet = self._level(level, how, outlet, f"level {number}")
            for one in returning.get(number, ()):
                one.entry = outlet
        self.entry = outlet
        self._queues.reverse()
        self._stages.reverse()

    @property
    def num_forgotten(self) -> int:
        """How many sessions were forgotten to keep to a limit."""
        return sum(one.num_forgotten for one in self._sessions)

    def _level(self, level: Sequence[PipelinePlan], how: LevelPlan, outlet: Outlet, name: str) -> Outlet:
        takes_all = all(pipeline.route.is_any for pipeline in level)
        if takes_all and len(level) == 1:
            return self._pipeline(level[0], outlet)
        if how.queue == "basic":
            return self._shared(level, how, outlet, name)
        if how.queue == "switch":
            ways = [Way(pipeline.route, self._pipeline(pipeline, outlet)) for pipeline in level]
            return self._routes(SwitchRoutes(f"{name}, switch", ways, outlet, how))
        joined = self._sync(name, outlet)
        if takes_all:
            return self._copy(name, [self._pipeline(pipeline, joined) for pipeline in level])
        rejoining = Rejoining(joined, outlet)
        ways = [Way(pipeline.route, self._pipeline(pipeline, rejoining)) for pipeline in level]
        return self._routes(CopyRoutes(f"{name}, copy", ways, outlet, how))

    def _shared(self, level: Sequence[PipelinePlan], how: LevelPlan, outlet: Outlet, name: str) -> Outlet:
        """Returns the queue that different pipelines share."""
        ways = [Way(pipeline.route, outlet, pipeline.num_held) for pipeline in level]
        queue = SharedQueue(f"{name}, basic", ways, outlet, how, self._most)
        for way, pipeline in zip(ways, level, strict=True):
            way.outlet = self._pipeline(pipeline, Leaving(way, queue))
        return self._routes(queue)

    def _routes(self, queue: CopyRoutes | SwitchRoutes | SharedQueue) -> Outlet:
        self._queues.append(queue)
        return queue

    def _pipeline(self, plan: PipelinePlan, outlet: Outlet) -> Outlet:
        if plan.keep is not None:
            outlet = Keeper(plan.keep, outlet)
        if not plan.each:
            return self._stages_of(plan, outlet)
        names = [name for name in plan.gives if plan.keep is None or name in plan.keep]
        gatherer = Gatherer(names, outlet)
        self._most = 2 * default_in_flight(StreamPlan(((plan,),), ()))
        splitter = Splitter(plan.each, plan.part, self._stages_of(plan, gatherer), gatherer, self._most)
        self._most = self._schedule.in_flight
        return splitter

    def _stages_of(self, plan: PipelinePlan, outlet: Outlet) -> Outlet:
        if plan.posts:
            outlet = self._kinds(plan.posts, [*plan.post_workers], f"{plan.name}: post", outlet, None)
        runners: list[Runner] = []
        if plan.runner is not None:
            outlet, runners = self._runners(plan, plan.runner, outlet)
        if plan.loaders:
            prepare = runners[0] if runners and len(plan.loaders) == 1 else None
            outlet = self._kinds(plan.loaders, [*plan.loader_workers], f"{plan.name}: loader", outlet, prepare)
        return outlet

    def _kinds(
        self, kinds: Sequence[StagePlan], names: Sequence[str], name: str, outlet: Outlet, prepare: Runner | None
    ) -> Outlet:
        """Returns the entry of different workers that each get every record; `outlet` gets their results together."""
        if len(kinds) == 1:
            return self._workers(kinds[0], name, outlet, prepare)
        joined = self._sync(name, outlet)
        entries = [self._workers(kind, one, joined, None) for kind, one in zip(kinds, names, strict=True)]
        return self._copy(name, entries)

    def _workers(self, kind: StagePlan, name: str, outlet: Outlet, prepare: Runner | None) -> BasicQueue:
        """Returns the queue of equal workers."""
        clocks = self._stage(name, kind.workers).clocks()
        workers = [StepsWorker(self._steps(kind), outlet, clock, prepare) for clock in clocks]
        return self._basic(name, workers, min(kind.take, self._most), is_eager=True)

    def _steps(self, kind: StagePlan) -> Sequence[StageStep]:
        """Returns what one worker does."""
        if kind.elsewhere is None:
            return kind.steps
        self._elsewhere.append(kind.elsewhere())
        return self._elsewhere[-1:]

    def _runners(self, plan: PipelinePlan, how: RunnerPlan, outlet: Outlet) -> tuple[Outlet, list[Runner]]:
        """Returns the queue of the runners of a pipeline, and the runners.

        A program whose chain spans places has several, so that its calls follow each other over these.
        """
        programs, name = self._programs[plan.name], plan.runner_stage
        assert len(programs) == len(how.devices)
        check_fits(plan, programs[0].manifest, name)
        proof = proof_of(programs[0])
        numbers = [i for i in range(len(programs)) for _ in range(how.calls_at_once)]
        runners = [
            Runner(programs[i], how, self._nan, name, proof, due)
            for i, due in zip(numbers, self._pacing.due(plan), strict=True)
        ]
        places = self._places(name, how)
        whole = Stage(name, len(runners)) if how.stages else self._stage(name, len(runners))
        each = zip(numbers, runners, whole.clocks(), strict=True)
        is_prepared, batch = len(plan.loaders) == 1, min(how.batch, self._most)
        if plan.loop is not None:
            loop = Loop(how, plan.loop, programs[0].manifest, f"{plan.name}: loop", self._on_round)
            going = [LoopWorker(runner, outlet, clock, is_prepared, loop, places[i]) for i, runner, clock in each]
            queue = self._basic(name, going, batch, is_eager=True)
            for one in going:
                one.more = queue.take_now
            return queue, runners
        carry = self._carry(how, programs[0].manifest, name)
        workers = [RunnerWorker(runner, outlet, clock, is_prepared, carry, places[i]) for i, runner, clock in each]
        return self._basic(name, workers, batch, how.batch_delay_ns), runners

    def _places(self, name: str, how: RunnerPlan) -> list[PlaceClocks | None]:
        """Returns for each program the clocks of the places of its chain, None where that has one place."""
        if not how.stages:
            return [None] * len(how.devices)
        stages = {place: self._stage(f"{name} {place}", len(how.devices)) for place in reversed(how.stages)}
        every = range(len(how.devices))
        return [PlaceClocks({place: stage.clocks()[i] for place, stage in stages.items()}) for i in every]

    def _carry(self, how: RunnerPlan, manifest: Manifest, name: str) -> Carried | None:
        if not how.carry:
            return None
        if not how.session:
            return Carry(how, manifest)
        self._sessions.append(Sessions(how, manifest, name))
        return self._sessions[-1]

    def _basic(
        self, name: str, workers: Sequence[Worker], batch: int, delay_ns: int = 0, *, is_eager: bool = False
    ) -> BasicQueue:
        queue = BasicQueue(name, self._schedule, workers, self._most, batch, delay_ns, is_eager=is_eager)
        self._schedule.add(queue)
        self._queues.append(queue)
        return queue

    def _sync(self, name: str, outlet: Outlet) -> SyncQueue:
        queue = SyncQueue(f"{name}, sync", outlet, self._most)
        self._queues.append(queue)
        return queue

    def _copy(self, name: str, outlets: Sequence[Outlet]) -> CopyQueue:
        queue = CopyQueue(f"{name}, copy", outlets)
        self._queues.append(queue)
        return queue

    def _stage(self, name: str, num_workers: int) -> Stage:
        stage = Stage(name, num_workers, self._tracer)
        self._stages.append(stage)
        return stage

    def close(self) -> None:
        """Ends what does steps elsewhere; a second call does nothing."""
        for one in self._elsewhere:
            one.close()

    def queues(self) -> list[QueueFigures]:
        """Returns what the queues did so far, from the source to the sink."""
        return [queue.figures() for queue in self._queues]

    def stages(self) -> list[StageFigures]:
        """Returns what the workers did so far, from the source to the sink."""
        return [stage.figures() for stage in self._stages]
