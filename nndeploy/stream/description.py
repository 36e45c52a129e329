# SPDX-License-Identifier: Apache-2.0
"""What a stream is made of, as frozen values: levels of pipelines of stages of steps.

A TOML file (`nndeploy.stream.pipeline`) or a bundle alone (`only_the_model`) becomes a `StreamPlan`; the
assembly (engine/assembly.py) makes queues and threads of it. Law: a plan has been checked as a whole, so each
field that a step takes is there when it runs, and nothing here is checked again.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from nndeploy.bundle.manifest import Manifest
from nndeploy.processors.known_shapes import Known
from nndeploy.target.place_limits import num_calls
from nndeploy.values.types import Value

DEFAULT_LOADERS = 2
"""Threads that read and decode where nobody says how many; a batch of the model runs beside them."""


class StageStep(Protocol):
    """One step of work on the fields of a record, as `nndeploy.processors` makes it of a table in TOML."""

    @property
    def takes(self) -> tuple[str, ...]:
        """The fields that it needs."""

    @property
    def gives(self) -> tuple[str, ...]:
        """The fields that it makes."""

    def __call__(self, fields: Mapping[str, Value]) -> Mapping[str, Value]:
        """Returns the fields that it makes.

        Raises:
            DataError: this record's values cannot be worked on; it says which step failed.
        """


def step_name(step: StageStep) -> str:
    """Returns what messages call a step: the name of its processor."""
    return str(getattr(getattr(step, "processor", step), "name", ""))


def largest_values(step: StageStep) -> dict[str, int]:
    """Returns the largest whole numbers that a step gives, by field, where its processor knows them."""
    known: Mapping[str, int] = _said(step, "largest_values", {})
    return {name: known[own] for own, name in _by_own_names(step, "gives").items() if own in known}


def handed_on(step: StageStep) -> dict[str, str]:
    """Returns the fields that a step gives with the numbers of one that it takes, as its processor says, and which."""
    takes, gives = (_by_own_names(step, key) for key in ("takes", "gives"))
    return {gives[name]: takes[name] for name in _said(step, "hands_on", ())}


def optional_fields(step: StageStep) -> tuple[str, ...]:
    """Returns the fields that a step also takes where a record has them."""
    return tuple(getattr(step, "may_take", ()))


def read_last(step: StageStep) -> frozenset[str]:
    """Returns the fields of which a step reads the last position alone, where its processor says so."""
    own: Collection[str] = _said(step, "reads_last", ())
    return frozenset(name for one, name in _by_own_names(step, "takes").items() if one in own)


def given_shapes(step: StageStep, known: Mapping[str, Known]) -> dict[str, Known]:
    """Returns what is known of the fields that a step gives, from what is known of others, as its processor says."""
    told: Callable[..., Sequence[Known]] | None = _said(step, "given_shapes", None)
    shapes = (None,) * len(step.gives) if told is None else told(*(known.get(name) for name in step.takes))
    return dict(zip(step.gives, shapes, strict=True))


def _said(step: StageStep, key: str, otherwise: Any) -> Any:
    """Returns what a step's processor says of itself; a step that has none speaks for itself."""
    return getattr(getattr(step, "processor", step), key, otherwise)


def _by_own_names(step: StageStep, key: str) -> dict[str, str]:
    """Returns the fields that a step `takes` or `gives`, by what its processor calls them."""
    return dict(zip(_said(step, key, ()), getattr(step, key), strict=True))


class Condition(Protocol):
    """A condition on the fields of a record, as `nndeploy.stream.conditions` reads it."""

    @property
    def needs(self) -> frozenset[str]:
        """The fields that it asks for without having asked whether they are there."""

    @property
    def mentions(self) -> frozenset[str]:
        """All fields of which it speaks."""

    @property
    def implies(self) -> frozenset[str]:
        """The fields that a record has for which it holds."""

    def holds(self, fields: Mapping[str, Value]) -> bool:
        """Returns whether it holds.

        Raises:
            InputError: a field is missing, or its value cannot be asked that.
        """


QueueKind: TypeAlias = Literal["copy", "basic", "switch"]
"""Whether each pipeline of a level takes every record, they share them, or the first one whose condition holds."""

NotTaken: TypeAlias = Literal["end", "pass"]
"""What becomes of a record that no pipeline of a level takes: it ends there, or goes on."""

MAX_SESSIONS = 100
"""The state of so many sessions is kept where nobody says."""


@dataclass(frozen=True, slots=True)
class LevelPlan:
    """How a level shares its records out: the kind of queue before it, and whether one that none takes goes on.

    Behind it a record goes back to the level number `back_to` until its field `until` has a value; 0: none does.
    """

    queue: QueueKind = "copy"
    not_taken: NotTaken = "end"
    back_to: int = 0
    until: str = ""


@dataclass(frozen=True, slots=True)
class RoutePlan:
    """Which records a pipeline takes: of a source, those for which a condition holds.

    Where a level's pipelines share one queue, each takes its `share` of the records (0: as many as it has time for),
    and one with a higher `priority` comes first.
    """

    source: str = ""
    when: Condition | None = None
    share: int = 0
    priority: int = 0

    @property
    def is_any(self) -> bool:
        """Whether every record may be taken."""
        return not self.source and self.when is None


class StepElsewhere(StageStep, Protocol):
    """What does the steps of a stage in another place than this process, until it is closed."""

    def close(self) -> None:
        """Ends what it began; a second call does nothing."""


@dataclass(frozen=True, slots=True)
class StagePlan:
    """Steps that one worker does one after the other, and how many equal workers do them.

    A worker takes up to `take` records at once, as many as are there. `elsewhere` makes what does the steps for one
    worker, None: it does them itself.
    """

    steps: tuple[StageStep, ...] = ()
    workers: int = 1
    take: int = 1
    elsewhere: Callable[[], StepElsewhere] | None = None

    @property
    def gives(self) -> tuple[str, ...]:
        """The fields that the steps make, each once."""
        return tuple(dict.fromkeys(name for step in self.steps for name in step.gives))


@dataclass(frozen=True, slots=True)
class RunnerPlan:
    """How records go through a bundle.

    `inputs` maps inputs of the model to fields, None hands over all fields under their own names; `outputs` maps
    outputs of the model to fields. Up to `batch` records are run at once, the first waits at most `batch_delay_ns`
    for others. `carry` maps outputs to the inputs that get them in the next part of the same record, in the next round
    of a loop, or, with `session`, in the next record of which that field says the same; the state of `sessions` of them
    is kept. There is one program for each of `devices`. `stages` are the places of a chain that spans several, through
    which calls follow each other; `serial` says why they go one by one, "" where they need not.
    """

    inputs: Mapping[str, str] | None
    outputs: Mapping[str, str]
    model: str = ""
    devices: tuple[str, ...] = ("auto",)
    batch: int = 1
    batch_delay_ns: int = 0
    carry: Mapping[str, str] = field(default_factory=dict)
    session: str = ""
    sessions: int = MAX_SESSIONS
    stages: tuple[str, ...] = ()
    serial: str = ""

    @property
    def calls_at_once(self) -> int:
        """How many calls of each program are under way (`nndeploy.target.place_limits.num_calls`)."""
        return 1 if self.serial or not self.stages else num_calls(self.stages)

    @property
    def num_runners(self) -> int:
        """How many runners there are: threads may be inside so many calls."""
        return len(self.devices) * self.calls_at_once


@dataclass(frozen=True, slots=True)
class LoopPlan:
    """Steps after each call of the model, which is then called again, until they give the field `until` a value.

    An empty text, 0 and false are none.
    """

    steps: tuple[StageStep, ...]
    until: str


@dataclass(frozen=True, slots=True)
class PipelinePlan:
    """Loaders, a runner and post-processors; different loaders each make a part, so do different post-processors.

    With `each` the list of that name is worked on part by part, a part being the field `part`. With `loop` the runner
    takes a record again and again. `keep` are the fields that go on from here, None for all.
    """

    name: str
    loaders: tuple[StagePlan, ...] = ()
    runner: RunnerPlan | None = None
    posts: tuple[StagePlan, ...] = ()
    each: str = ""
    part: str = ""
    keep: tuple[str, ...] | None = None
    route: RoutePlan = RoutePlan()
    loop: LoopPlan | None = None

    @property
    def num_held(self) -> int:
        """How many records its workers have in hand, each as many as it takes."""
        workers = sum(stage.workers * stage.take for stage in (*self.loaders, *self.posts))
        return workers + (self.num_runners * self.runner.batch if self.runner is not None else 0)

    @property
    def loader_workers(self) -> dict[str, int]:
        """The names of the different loaders, each with its number of workers."""
        return _workers(self.loaders, f"{self.name}: loader")

    @property
    def post_workers(self) -> dict[str, int]:
        """The names of the different post-processors, each with its number of workers."""
        return _workers(self.posts, f"{self.name}: post")

    @property
    def runner_stage(self) -> str:
        """The name of the stage that runs the model."""
        return f"{self.name}: runner"

    @property
    def num_runners(self) -> int:
        """How many runners there are, 0 without a model."""
        return 0 if self.runner is None else self.runner.num_runners

    @property
    def gives(self) -> tuple[str, ...]:
        """The fields that are made here, each once."""
        outputs = self.runner.outputs.values() if self.runner is not None else ()
        steps = [name for stage in (*self.loaders, *self.looped, *self.posts) for name in stage.gives]
        return tuple(dict.fromkeys((*steps, *outputs)))

    @property
    def looped(self) -> tuple[StagePlan, ...]:
        """The steps of the loop as a stage, none without one."""
        return () if self.loop is None else (StagePlan(self.loop.steps),)


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """Levels of pipelines, the fields of an outcome, and how many records may be on their way at once."""

    levels: tuple[tuple[PipelinePlan, ...], ...]
    fields: tuple[str, ...]
    in_flight: int = 0
    is_named: bool = True
    """Whether stages have names that the user gave, and errors should tell them."""
    may_lack: frozenset[str] = frozenset()
    """Those of `fields` that not every record has, because it came another way."""
    hows: tuple[LevelPlan, ...] = ()
    """How each level shares its records out; empty: each pipeline takes every record."""

    def how(self, number: int) -> LevelPlan:
        """How the level of a number, counted from 1, shares its records out."""
        return self.hows[number - 1] if self.hows else LevelPlan()

    @property
    def pipelines(self) -> tuple[PipelinePlan, ...]:
        """The pipelines of all levels."""
        return tuple(pipeline for level in self.levels for pipeline in level)


def _workers(stages: Sequence[StagePlan], name: str) -> dict[str, int]:
    names = [name] if len(stages) == 1 else [f"{name} {i}" for i in range(1, len(stages) + 1)]
    return {one: stage.workers for one, stage in zip(names, stages, strict=True)}


def only_the_model(manifest: Manifest, loaders: int = DEFAULT_LOADERS) -> StreamPlan:
    """Returns the plan of a bundle without a pipeline: read, run, and all outputs are the outcome."""
    outputs = tuple(output.name for output in manifest.outputs)
    runner = RunnerPlan(None, {name: name for name in outputs})
    pipeline = PipelinePlan("model", (StagePlan((), loaders),), runner)
    return StreamPlan(((pipeline,),), outputs, is_named=False)


def default_in_flight(plan: StreamPlan) -> int:
    """Returns how many records may be on their way: enough that every worker has one and the next one waits."""
    return 2 * sum(pipeline.num_held for pipeline in plan.pipelines) + 2
