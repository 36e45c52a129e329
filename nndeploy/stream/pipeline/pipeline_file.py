# SPDX-License-Identifier: Apache-2.0
"""Reads a pipeline from TOML, and makes a checked plan of it once the models are known.

`pipeline_from_toml` reads a file: form, types, ranges and the parameters of every step. `plan_of_file` adds what the
models say of their inputs and outputs and follows the fields from the source to the sinks: each field that a step
takes must be given by the source or an earlier step, and no two that work beside each other may give the same one.
All that is wrong is found before anything runs, as one line that names the file and the place in it.

What a pipeline means is in docs/reference/pipelines.md; it names processors and never holds code.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nndeploy.bundle.manifest import Manifest
from nndeploy.errors import DataError, NndeployError, did_you_mean
from nndeploy.files.toml_file import toml_from_bytes
from nndeploy.files.toml_table import TomlTable
from nndeploy.stream.description import PipelinePlan, RunnerPlan, StagePlan, StageStep, StreamPlan
from nndeploy.stream.model_fit import check_fits
from nndeploy.values.types import OptionalType

MAX_WORKERS = 256
MAX_BATCH = 4096
MAX_DELAY_MS = 60_000
MAX_IN_FLIGHT = 65_536

ReadFile = Callable[[str], bytes]
"""Returns the content of a file that the pipeline names, relative to it."""
MakeStep = Callable[[Mapping[str, object], str, ReadFile], StageStep]
"""Returns the step of a table; the place in the file, for messages; reads files that it names."""


@dataclass(frozen=True, slots=True)
class SourceTable:
    """What a pipeline says of its source: the kind, the fields where the kind does not say, other settings."""

    kind: str = ""
    fields: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SinkTable:
    """What a pipeline says of a sink. `name` is what it is called in the folder of all of them."""

    kind: str
    name: str
    fields: tuple[str, ...]
    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PipelineFile:
    """A pipeline as its file says it; `runner.inputs` holds only what is renamed. `named` are the files it names."""

    where: str
    source: SourceTable
    levels: tuple[tuple[PipelinePlan, ...], ...]
    sinks: tuple[SinkTable, ...]
    in_flight: int
    data: bytes = b""
    named: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def pipelines(self) -> tuple[PipelinePlan, ...]:
        """The pipelines of all levels."""
        return tuple(pipeline for level in self.levels for pipeline in level)


def pipeline_from_toml(data: bytes, where: str, read_file: ReadFile, make_step: MakeStep | None = None) -> PipelineFile:
    """Returns the pipeline that a file holds; `where` is its name, `read_file` reads files that it names.

    Raises:
        DataError: it is no TOML, or a key is unknown, missing, of the wrong type or out of its range.
        MissingInputError: a file that it names does not exist.
        UnavailableError: a processor cannot be loaded here.
    """
    top, named = TomlTable(toml_from_bytes(data, where), where), dict[str, bytes]()

    def read(name: str) -> bytes:
        named[name] = read_file(name)
        return named[name]

    reader = _Reader(read, make_step or _own_make_step())
    levels = tuple(reader.level(table) for table in top.tables("level", "level"))
    if not levels:
        raise DataError("has no level", where=where, hint="[[level]] with [[level.pipeline]] in it")
    made = PipelineFile(
        where,
        _source(top.table("source")),
        levels,
        tuple(_sink(table) for table in top.tables("sink", "sink")),
        top.whole("in-flight", 0, 1, MAX_IN_FLIGHT),
        data,
        named,
    )
    top.done()
    _check_unique([one.name for one in made.pipelines], "pipelines", where)
    _check_unique([sink.name for sink in made.sinks], "sinks", where)
    return made


def _own_make_step() -> MakeStep:
    from nndeploy.processors.registry import processor_from_table

    return processor_from_table


def _check_unique(names: Sequence[str], what: str, where: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"two {what} are called {name!r}", where=where, hint='give each a name = "..."')


def _source(table: TomlTable | None) -> SourceTable:
    if table is None:
        return SourceTable()
    made = SourceTable(table.text("kind"), table.texts("fields"), table.rest())
    table.done()
    return made


def _sink(table: TomlTable) -> SinkTable:
    kind = table.text("kind")
    if not kind:
        raise DataError('needs kind = "..."', where=table.where)
    name = table.text("name", kind)
    if "/" in name or name.startswith(".") or not name.isprintable() or not name:
        raise DataError(f"name must be a plain file name, is {name!r:.60}", where=table.where)
    made = SinkTable(kind, name, table.texts("fields"), table.rest())
    table.done()
    return made


class _Reader:
    """Makes plans of tables."""

    def __init__(self, read_file: ReadFile, make_step: MakeStep) -> None:
        self._read_file = read_file
        self._make_step = make_step
        self._num_pipelines = 0

    def level(self, table: TomlTable) -> tuple[PipelinePlan, ...]:
        pipelines = tuple(self._pipeline(one) for one in table.tables("pipeline", "pipeline"))
        if not pipelines:
            raise DataError("has no pipeline", where=table.where, hint="[[level.pipeline]] below it")
        table.done()
        return pipelines

    def _pipeline(self, table: TomlTable) -> PipelinePlan:
        self._num_pipelines += 1
        name = table.text("name", f"pipeline {self._num_pipelines}")
        table.where += f" {name!r}" if "name" in table else ""
        copies = table.whole("copies", 1, 1, MAX_WORKERS)
        loaders = tuple(self._stage(one, copies) for one in table.tables("loader", "loader"))
        runner = _runner(table, copies)
        posts = tuple(self._stage(one, copies) for one in table.tables("post", "post"))
        each, part = table.text("each"), table.text("part")
        if bool(each) != bool(part):
            raise DataError('each and part go together: each = "crops", part = "crop"', where=table.where)
        table.done()
        if not loaders and not posts and runner is None:
            raise DataError("does nothing: it has no loader, no model and no post-processor", where=table.where)
        return PipelinePlan(name, loaders, runner, posts, each, part)

    def _stage(self, table: TomlTable, copies: int) -> StagePlan:
        workers = table.whole("workers", 1, 1, MAX_WORKERS)
        steps = tuple(self._make_step(one.rest(), one.where, self._read_file) for one in table.tables("steps", "step"))
        table.done()
        if not steps:
            raise DataError("has no steps", where=table.where, hint='steps = [{ use = "decode" }]')
        return StagePlan(steps, workers * copies)


def _runner(table: TomlTable, copies: int) -> RunnerPlan | None:
    num_runners = table.whole("runners", 1, 0, MAX_WORKERS)
    devices = table.texts("devices")
    made = RunnerPlan(
        table.names("inputs"),
        table.names("outputs"),
        table.text("model"),
        (devices or ("",)) * num_runners * copies,
        table.whole("batch", 1, 1, MAX_BATCH),
        round(1e6 * table.number("batch-delay-ms", 0, 0, MAX_DELAY_MS)),
        table.names("carry"),
    )
    if num_runners:
        return made
    for key in ("model", "devices", "batch", "batch-delay-ms", "inputs", "outputs", "carry"):
        if key in table:
            raise DataError(f"{key} needs a runner, and runners is 0", where=table.where)
    return None


def plan_of_file(file: PipelineFile, manifests: Mapping[str, Manifest], source_fields: Iterable[str]) -> StreamPlan:
    """Returns the plan of a pipeline; `manifests` has one for each pipeline that has a runner, by its name.

    Raises:
        DataError: a field is taken that nothing gives, or given twice; or a model does not fit.
    """
    levels = levels_with_models(file, manifests)
    fields = _FieldsInOrder(file.where, source_fields)
    for number, level in enumerate(levels, 1):
        fields.follow_level(number, level)
    wanted = _wanted(file, levels, fields)
    return StreamPlan(_kept(file, levels, wanted), wanted, file.in_flight)


def levels_with_models(file: PipelineFile, manifests: Mapping[str, Manifest]) -> tuple[tuple[PipelinePlan, ...], ...]:
    """Returns the levels; pipelines whose manifest is there have all inputs and outputs of their model.

    Raises:
        DataError: one does not fit its model.
    """
    return tuple(
        tuple(_with_model(file.where, number, one, manifests) if one.name in manifests else one for one in level)
        for number, level in enumerate(file.levels, 1)
    )


def _with_model(where: str, number: int, plan: PipelinePlan, manifests: Mapping[str, Manifest]) -> PipelinePlan:
    """Returns a pipeline with all inputs and outputs of its model, those that are not renamed under their own names."""
    if plan.runner is None:
        return plan
    manifest, runner = manifests[plan.name], plan.runner
    carried = set(runner.carry.values())
    needed = [item.name for item in manifest.inputs if not isinstance(item.type, OptionalType)]
    inputs = {name: name for name in needed if name not in carried} | dict(runner.inputs or {})
    outputs = {item.name: item.name for item in manifest.outputs} | dict(runner.outputs)
    made = replace(plan, runner=replace(runner, inputs=inputs, outputs=outputs))
    try:
        check_fits(made, manifest, f"{where}: {_place(number, plan)}")
    except NndeployError as err:  # the same words, but it is the file that is wrong
        raise DataError(err.what, where=err.where, hint=err.hint) from err
    return made


def _place(number: int, plan: PipelinePlan) -> str:
    return f"level {number}, pipeline {plan.name!r}"


class _FieldsInOrder:
    """Follows the fields of a record from stage to stage."""

    def __init__(self, where: str, fields: Iterable[str]) -> None:
        self.known = set(fields)
        self._where = where

    def follow_level(self, number: int, level: Sequence[PipelinePlan]) -> None:
        """Checks the pipelines of a level; what they give is known behind it."""
        given: set[str] = set()
        for plan in level:
            given |= self._follow(f"{self._where}: {_place(number, plan)}", plan)
        self.known |= given

    def _follow(self, where: str, plan: PipelinePlan) -> set[str]:
        known = set(self.known)
        if plan.each:
            self._check(plan.each, known, f"{where}, each")
            known.add(plan.part)
        given = self._follow_stages(f"{where}, loader", plan.loaders, known)
        if plan.runner is not None:
            for name, source in (plan.runner.inputs or {}).items():
                self._check(source, known, f"{where}, input {name!r}")
            given |= set(plan.runner.outputs.values())
            known |= given
        return given | self._follow_stages(f"{where}, post", plan.posts, known)

    def _follow_stages(self, where: str, stages: Sequence[StagePlan], known: set[str]) -> set[str]:
        """Returns what different workers give together; it is known behind them."""
        givers: dict[str, int] = {}
        for number, stage in enumerate(stages, 1):
            own, place = set(known), f"{where} {number}" if len(stages) > 1 else where
            for step in stage.steps:
                for name in step.takes:
                    self._check(name, own, f"{place}, step {_name(step)!r}")
                own |= set(step.gives)
            for name in stage.gives:
                if name in givers:
                    raise DataError(
                        f"the field {name!r} is given by {givers[name]} and by {number}, which work beside each other",
                        where=where, hint=f'rename one: out = ["{name}-{number}"]',
                    )  # fmt: skip
                givers[name] = number
        known.update(givers)
        return set(givers)

    def _check(self, name: str, known: set[str], where: str) -> None:
        if name not in known:
            raise DataError(f"nothing before it gives the field {name!r}", where=where, hint=did_you_mean(name, known))


def _name(step: StageStep) -> str:
    return str(getattr(getattr(step, "processor", step), "name", ""))


def _wanted(file: PipelineFile, levels: Sequence[Sequence[PipelinePlan]], fields: _FieldsInOrder) -> tuple[str, ...]:
    """Returns the fields that the sinks want; where they do not say, what the last stages give."""
    last = last_fields(levels)
    wanted: dict[str, None] = {}
    for sink in file.sinks:
        for name in sink.fields:
            if name not in fields.known:
                hint = did_you_mean(name, fields.known)
                raise DataError(
                    f"nothing gives the field {name!r}", where=f"{file.where}: sink {sink.name!r}", hint=hint
                )
        wanted.update(dict.fromkeys(sink.fields or last))
    return tuple(wanted or dict.fromkeys(last))


def last_fields(levels: Sequence[Sequence[PipelinePlan]]) -> tuple[str, ...]:
    """Returns the fields that the last stages give: what a sink takes that does not say."""
    return tuple(dict.fromkeys(name for plan in levels[-1] for name in _gives_last(plan)))


def _gives_last(plan: PipelinePlan) -> list[str]:
    if plan.posts:
        return [name for stage in plan.posts for name in stage.gives]
    if plan.runner is not None:
        return list(plan.runner.outputs.values())
    return [name for stage in plan.loaders for name in stage.gives]


def _kept(
    file: PipelineFile, levels: Sequence[tuple[PipelinePlan, ...]], wanted: Iterable[str]
) -> tuple[tuple[PipelinePlan, ...], ...]:
    """Returns the levels with the fields that must go on from each pipeline; all others end there."""
    needed, made = set(wanted), []
    for number, level in reversed(list(enumerate(levels, 1))):
        _check_beside(file.where, number, level, needed)
        made.append(tuple(replace(plan, keep=tuple(sorted(needed))) for plan in level))
        for plan in level:
            needed |= _takes(plan)
    return tuple(reversed(made))


def _check_beside(where: str, number: int, level: Sequence[PipelinePlan], needed: set[str]) -> None:
    """Refuses two pipelines beside each other that give the same field, where somebody needs it."""
    giver: dict[str, str] = {}
    for plan in level:
        for name in sorted(needed.intersection(plan.gives)):
            if name in giver:
                raise DataError(
                    f"the field {name!r} is given by {giver[name]!r} and {plan.name!r}, which work beside each other",
                    where=f"{where}: level {number}", hint="rename one, with out = [...] or outputs = {...}",
                )  # fmt: skip
            giver[name] = plan.name


def _takes(plan: PipelinePlan) -> set[str]:
    """Returns the fields that a pipeline needs from before it."""
    given = {plan.part}
    taken = {plan.each} - {""} | _taken_by(plan.loaders, given)
    if plan.runner is not None:
        taken |= set((plan.runner.inputs or {}).values()) - given
        given |= set(plan.runner.outputs.values())
    return taken | _taken_by(plan.posts, given)


def _taken_by(stages: Sequence[StagePlan], given: set[str]) -> set[str]:
    """Returns what stages take that is not among `given`, to which what they give is added."""
    taken: set[str] = set()
    for stage in stages:
        own = set(given)
        for step in stage.steps:
            taken |= set(step.takes) - own
            own |= set(step.gives)
    given |= {name for stage in stages for name in stage.gives}
    return taken
