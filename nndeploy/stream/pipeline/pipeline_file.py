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
from functools import partial
from typing import TYPE_CHECKING, Any

from nndeploy.bundle.manifest import Manifest
from nndeploy.errors import DataError, NndeployError, did_you_mean
from nndeploy.files.toml_file import toml_from_bytes
from nndeploy.files.toml_table import TomlTable
from nndeploy.processors.parameters import FilesBeside
from nndeploy.stream.description import (
    MAX_SESSIONS,
    LevelPlan,
    LoopPlan,
    PipelinePlan,
    RunnerPlan,
    StagePlan,
    StageStep,
    StreamPlan,
    optional_fields,
)
from nndeploy.stream.model_fit import check_fits, expanded_carry, expanded_inputs
from nndeploy.stream.pipeline.field_flow import FieldFlow, Levels, kept, place_of
from nndeploy.stream.pipeline.routes import check_routes, level_from_toml, route_from_toml
from nndeploy.stream.pipeline.source_tables import SourceTable, sources_from_toml
from nndeploy.stream.sources.source_rules import JoinRules

if TYPE_CHECKING:
    from nndeploy.stream.processes.step_process import Tables

MAX_WORKERS = 256
MAX_BATCH = 4096
MAX_DELAY_MS = 60_000
MOST_SESSIONS = 1_000_000
MAX_IN_FLIGHT = 65_536

ReadFile = Callable[[str], bytes]
"""Returns the content of a file that the pipeline names, relative to it."""
MakeStep = Callable[[Mapping[str, object], str, ReadFile], StageStep]
"""Returns the step of a table; the place in the file, for messages; reads files that it names."""


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
    sources: tuple[SourceTable, ...]
    levels: tuple[tuple[PipelinePlan, ...], ...]
    sinks: tuple[SinkTable, ...]
    in_flight: int
    data: bytes = b""
    named: Mapping[str, bytes] = field(default_factory=dict)
    join: JoinRules | None = None
    hows: tuple[LevelPlan, ...] = ()
    """How each level shares its records out."""

    @property
    def pipelines(self) -> tuple[PipelinePlan, ...]:
        """The pipelines of all levels."""
        return tuple(pipeline for level in self.levels for pipeline in level)

    @property
    def optional_fields(self) -> frozenset[str]:
        """The fields that a step takes where a record has them."""
        stages = (stage for one in self.pipelines for stage in (*one.loaders, *one.looped, *one.posts))
        return frozenset(name for stage in stages for step in stage.steps for name in optional_fields(step))


def pipeline_from_toml(data: bytes, where: str, read_file: ReadFile, make_step: MakeStep | None = None) -> PipelineFile:
    """Returns the pipeline that a file holds; `where` is its name, `read_file` reads files that it names.

    Raises:
        DataError: it is not TOML, or a key is unknown, missing, of the wrong type or out of its range.
        MissingInputError: a file that it names does not exist.
        UnavailableError: a processor cannot be loaded here.
    """
    top, named = TomlTable(toml_from_bytes(data, where), where), dict[str, bytes]()
    reader = _Reader(_noting(read_file, named), make_step or _own_make_step())
    levels = tuple(reader.level(table) for table in top.tables("level", "level"))
    sources, join = sources_from_toml(top)
    if not levels:
        raise DataError("has no level", where=where, hint="[[level]] with [[level.pipeline]] in it")
    made = PipelineFile(
        where,
        sources,
        levels,
        tuple(_sink(table) for table in top.tables("sink", "sink")),
        top.whole("in-flight", 0, 1, MAX_IN_FLIGHT),
        data,
        named,
        join,
        tuple(reader.hows),
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
        self._numbers = dict[str, int]()
        self.hows: list[LevelPlan] = []

    def level(self, table: TomlTable) -> tuple[PipelinePlan, ...]:
        pipelines = tuple(self._pipeline(one) for one in table.tables("pipeline", "pipeline"))
        if not pipelines:
            raise DataError("has no pipeline", where=table.where, hint="[[level.pipeline]] below it")
        self._numbers |= {one.name: len(self.hows) + 1 for one in pipelines}
        self.hows.append(level_from_toml(table, self._numbers))
        table.done()
        check_routes(table.where, pipelines, self.hows[-1])
        return pipelines

    def _pipeline(self, table: TomlTable) -> PipelinePlan:
        self._num_pipelines += 1
        name = table.text("name", f"pipeline {self._num_pipelines}")
        table.where += f" {name!r}" if "name" in table else ""
        copies = table.whole("copies", 1, 1, MAX_WORKERS)
        loaders = tuple(self._stage(one, copies) for one in table.tables("loader", "loader"))
        runner, loop = _runner(table, copies), self._loop(table)
        posts = tuple(self._stage(one, copies) for one in table.tables("post", "post"))
        each, part, route = table.text("each"), table.text("part"), route_from_toml(table)
        if bool(each) != bool(part):
            raise DataError('each and part go together: each = "crops", part = "crop"', where=table.where)
        table.done()
        if not loaders and not posts and runner is None:
            raise DataError("does nothing: it has no loader, no model and no post-processor", where=table.where)
        if loop is not None and runner is None:
            raise DataError("loop needs a runner, and runners is 0", where=table.where)
        return PipelinePlan(name, loaders, runner, posts, each, part, route=route, loop=loop)

    def _loop(self, pipeline: TomlTable) -> LoopPlan | None:
        table = pipeline.table("loop")
        if table is None:
            return None
        until = table.text("until", "end")
        return LoopPlan(self._steps(table), until)

    def _stage(self, table: TomlTable, copies: int) -> StagePlan:
        if "workers" in table and "processes" in table:
            raise DataError("workers and processes exclude each other", where=table.where)
        workers, take = table.whole("workers", 1, 1, MAX_WORKERS), table.whole("take", 1, 1, MAX_BATCH)
        processes = table.whole("processes", 0, 1, MAX_WORKERS)
        if not processes:
            return StagePlan(self._steps(table), workers * copies, take)
        from nndeploy.stream.processes.step_process import StepProcess, StepTables  # which few pipelines need

        contents = dict[str, bytes]()
        steps, tables = self._made(table, _noting(self._read_file, contents))
        files = self._read_file if isinstance(self._read_file, FilesBeside) else None
        apart = partial(StepProcess, steps, StepTables(tables, contents, files))
        return StagePlan(steps, processes * copies, take, apart)

    def _steps(self, table: TomlTable) -> tuple[StageStep, ...]:
        steps, _ = self._made(table, self._read_file)
        return steps

    def _made(self, table: TomlTable, read_file: ReadFile) -> "tuple[tuple[StageStep, ...], Tables]":
        """Returns the steps of a table, and what they were made of."""
        tables = tuple((one.rest(), one.where) for one in table.tables("steps", "step"))
        steps = tuple(self._make_step(own, where, read_file) for own, where in tables)
        table.done()
        if not steps:
            raise DataError("has no steps", where=table.where, hint='steps = [{ use = "decode" }]')
        return steps, tables


def _noting(read_file: ReadFile, contents: dict[str, bytes]) -> ReadFile:
    """Returns what reads files, and keeps their contents."""

    def noted(name: str) -> bytes:
        contents[name] = read_file(name)
        return contents[name]

    return replace(read_file, read=noted) if isinstance(read_file, FilesBeside) else noted


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
        table.text("session"),
        table.whole("sessions", MAX_SESSIONS, 1, MOST_SESSIONS),
    )
    if "sessions" in table and not made.session:
        raise DataError("sessions needs session: the field that names them", where=table.where)
    if num_runners:
        return made
    for key in ("model", "devices", "batch", "batch-delay-ms", "inputs", "outputs", "carry", "session", "sessions"):
        if key in table:
            raise DataError(f"{key} needs a runner, and runners is 0", where=table.where)
    return None


def plan_of_file(
    file: PipelineFile, manifests: Mapping[str, Manifest], source_fields: Mapping[str, Iterable[str]]
) -> StreamPlan:
    """Returns the plan of a pipeline; `manifests` has one for each pipeline that has a runner, by its name.

    `source_fields` are the fields that each source gives, by its name.

    Raises:
        DataError: a field is taken that nothing gives, or given twice; or a model does not fit.
    """
    levels = levels_with_models(file, manifests)
    flow = FieldFlow(file.where, source_fields, is_joined=file.join is not None)
    for number, (level, how) in enumerate(zip(levels, file.hows, strict=True), 1):
        flow.follow_level(number, level, how)
    wanted = _wanted(file, levels, flow)
    made = kept(file.where, Levels(levels, file.hows), wanted)
    if file.join is not None:  # whose records are of all sources
        made = tuple(tuple(replace(plan, route=replace(plan.route, source="")) for plan in level) for level in made)
    return StreamPlan(made, wanted, file.in_flight, may_lack=frozenset(wanted) - flow.certain, hows=file.hows)


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
    manifest, place = manifests[plan.name], f"{where}: {place_of(number, plan)}"
    runner = replace(plan.runner, carry=expanded_carry(plan.runner.carry, manifest, place))
    if runner.session and number > 1:
        told = "a session needs records in their order, which levels behind the first do not keep"
        raise DataError(told, where=place)
    carried = set(runner.carry.values())
    needed = [item.name for item in manifest.inputs if not manifest.may_lack(item)]
    renamed = expanded_inputs(runner.inputs or {}, [item.name for item in manifest.inputs], place)
    inputs = {name: name for name in needed if name not in carried} | renamed
    outputs = {item.name: item.name for item in manifest.outputs} | dict(runner.outputs)
    made = replace(plan, runner=replace(runner, inputs=inputs, outputs=outputs))
    try:
        check_fits(made, manifest, place)
    except NndeployError as err:  # the same words, but it is the file that is wrong
        raise DataError(err.what, where=err.where, hint=err.hint) from err
    return made


def _wanted(file: PipelineFile, levels: Sequence[Sequence[PipelinePlan]], fields: FieldFlow) -> tuple[str, ...]:
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
    if plan.posts or plan.loop is not None:
        return [name for stage in plan.posts or plan.looped for name in stage.gives]
    if plan.runner is not None:
        return list(plan.runner.outputs.values())
    return [name for stage in plan.loaders for name in stage.gives]
