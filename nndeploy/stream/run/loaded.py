# SPDX-License-Identifier: Apache-2.0
"""What a run runs: the pipeline, if there is one, and the programs that its runners need."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from nndeploy.bundle.manifest_json import manifest_to_json
from nndeploy.errors import MissingInputError, UsageError, did_you_mean
from nndeploy.installed.followed import FollowedProgram
from nndeploy.pacing.stream.paced_stream import item_goal, stream_pacing
from nndeploy.pacing.stream.protocol import STREAM_NOT_PACED, StreamPacing
from nndeploy.runtime.program import Program
from nndeploy.stream.description import PipelinePlan, RunnerPlan, StreamPlan, only_the_model
from nndeploy.stream.engine.assembly import Programs
from nndeploy.stream.pipeline.checked_plan import checked_plan
from nndeploy.stream.pipeline.pipeline_file import PipelineFile, last_fields
from nndeploy.stream.run.options import Load, RunOptions
from nndeploy.stream.sinks.resume import digest, digest_of_files
from nndeploy.stream.sources.sources import Source
from nndeploy.target.place_limits import places_text
from nndeploy.target.target import host_target
from nndeploy.values.types import ValueType
from nndeploy.version import __version__


@dataclass(frozen=True, slots=True)
class Loaded:
    """A plan with its programs, by pipeline; `file` is None where a bundle runs alone."""

    plan: StreamPlan
    programs: Mapping[str, Sequence[Program]]
    file: PipelineFile | None
    types: Mapping[str, Mapping[str, ValueType]]
    """For each source, by name, the types of the fields that its first models take."""
    pacing: StreamPacing = STREAM_NOT_PACED
    """The pacing of a pipeline; a bundle that runs alone is paced run by run."""
    followed: Mapping[str, Sequence[FollowedProgram]] = field(default_factory=dict)
    """Those that calls go to in place of `programs`, where these follow their names."""

    @property
    def runs(self) -> Programs:
        """What calls go to."""
        return self.followed or self.programs

    @property
    def last_fields(self) -> tuple[str, ...]:
        """The fields of a sink that does not say which."""
        return last_fields(self.plan.levels)

    @property
    def has_sessions(self) -> bool:
        """Whether a runner keeps state from record to record."""
        return any(one.runner is not None and one.runner.session for one in self.plan.pipelines)

    @property
    def first(self) -> Program | None:
        """The first program, None where nothing is run."""
        return next(iter(self.every), None)

    @property
    def every(self) -> list[Program]:
        """All programs, each once."""
        return list({id(one): one for programs in self.programs.values() for one in programs}.values())


def load_alone(stack: ExitStack, bundle: Path, options: RunOptions, load: Load) -> Loaded:
    """Returns a bundle that runs by itself."""
    program = stack.enter_context(load(bundle, options, pace=options.pace))
    program.pacing.check(bundle)
    plan = only_the_model(program.manifest)
    if options.batch > 1:
        (one,) = plan.pipelines
        assert one.runner is not None
        runner = replace(one.runner, batch=options.batch, batch_delay_ns=round(options.batch_delay_ms * 1e6))
        plan = replace(plan, levels=((replace(one, runner=runner),),))
    programs = {one.name: [program] for one in plan.pipelines}
    return Loaded(_with_stages(plan, programs), programs, None, {})


def load_pipeline(stack: ExitStack, file: PipelineFile, bundle: Path | None, options: RunOptions, load: Load) -> Loaded:
    """Returns a pipeline with its programs open, one for each runner; `options.models` overrides bundles by pipeline.

    Raises:
        UsageError: a pipeline has no bundle, `options.models` names no pipeline, or it cannot be paced as is asked.
        DataError: the pipeline does not fit its models.
        MissingInputError, UnavailableError, BundleError: a bundle cannot be loaded.
    """
    with_runner = {one.name: one.runner for one in file.pipelines if one.runner is not None}
    for name in options.models:
        if name not in with_runner:
            raise UsageError(f"no pipeline with a model is called {name!r}", hint=did_you_mean(name, with_runner))
    goal = item_goal(
        options.pace, [name for name, one in with_runner.items() if one.batch > 1],
        is_one_route=_all_go_the_same_way(file), where=file.where,
    )  # fmt: skip
    options = replace(options, threads=options.threads or _threads_of_each(list(with_runner.values())))
    paths = {
        name: Path(options.models.get(name) or _path_of(file, name, runner, bundle))
        for name, runner in with_runner.items()
    }
    programs = {
        name: [
            stack.enter_context(load(paths[name], replace(options, device=device or options.device), pace=goal))
            for device in runner.devices
        ]
        for name, runner in with_runner.items()
    }
    manifests = {name: opened[0].manifest for name, opened in programs.items()}
    plan, types = checked_plan(file, manifests)
    plan = _with_stages(plan, programs)
    pacings = {name: [one.pacing for one in opened] for name, opened in programs.items()}
    return Loaded(plan, programs, file, types, stream_pacing(plan, pacings, goal))


def _with_stages(plan: StreamPlan, programs: Mapping[str, Sequence[Program]]) -> StreamPlan:
    """Returns the plan with the places of the programs whose chains span several."""

    def with_stages(name: str, runner: RunnerPlan) -> RunnerPlan:
        program, *others = programs[name]
        if not program.stages or any(other.stages != program.stages for other in others):
            return runner
        if program.pacing.is_paced:
            return replace(runner, serial="runs are paced")
        serial = "a record of a session needs the state that the one before it left" if runner.session else ""
        return replace(runner, stages=program.stages, serial=serial)

    return _with_runners(plan, with_stages)


def one_by_one(loaded: Loaded, why: str) -> Loaded:
    """Returns what is loaded so that calls of chains over several places do not follow each other."""

    def serial(_: str, runner: RunnerPlan) -> RunnerPlan:
        return replace(runner, stages=(), serial=runner.serial or why) if runner.stages else runner

    return replace(loaded, plan=_with_runners(loaded.plan, serial))


def _with_runners(plan: StreamPlan, changed: Callable[[str, RunnerPlan], RunnerPlan]) -> StreamPlan:
    def with_runner(one: PipelinePlan) -> PipelinePlan:
        return one if one.runner is None else replace(one, runner=changed(one.name, one.runner))

    return replace(plan, levels=tuple(tuple(map(with_runner, level)) for level in plan.levels))


def following(stack: ExitStack, loaded: Loaded, options: RunOptions, load: Load, say: Callable[[str], None]) -> Loaded:
    """Returns what was loaded, following the names under which its bundles are installed.

    Raises:
        UsageError: one is not installed, or another option has no meaning with that.
    """
    if options.pace is not None:
        raise UsageError("--follow cannot be combined with pacing: a plan is for one bundle")
    if options.resume:
        raise UsageError("--follow and --resume exclude each other: a resumed run must use the same bundle")

    def followed(program: Program, device: str) -> FollowedProgram:
        how = replace(options, device=device)
        return stack.enter_context(closing(FollowedProgram(program, lambda path: load(path, how, pace=None), say)))

    devices = {one.name: one.runner.devices for one in loaded.plan.pipelines if one.runner is not None}
    programs = {
        name: [followed(one, device or options.device) for one, device in zip(opened, devices[name], strict=True)]
        for name, opened in loaded.programs.items()
    }
    return replace(one_by_one(loaded, "the next version may have other places"), followed=programs)


def _all_go_the_same_way(file: PipelineFile) -> bool:
    """Returns whether the plan of an item's time, which has all stages in it, is that of every record."""
    return all(one.route.is_any for one in file.pipelines) and all(how.queue == "copy" for how in file.hows)


def _threads_of_each(runners: Sequence[RunnerPlan]) -> int | None:
    """Returns how many threads each runner has where the user does not say: together the cores, None for a single one.

    Runners that each have all cores take them from each other: the two models of read-text.toml on 2 cores then took
    45 to 54 ms an image instead of 35 (AMD EPYC, 2026-11-20).
    """
    count = sum(len(runner.devices) for runner in runners)
    return max(1, host_target().num_cores // count) if count > 1 else None


def _path_of(file: PipelineFile, name: str, runner: RunnerPlan, bundle: Path | None) -> Path:
    if runner.model:
        path = Path(file.where).parent / runner.model
        if not path.exists():
            hint = f"compile it, or name another with --model {name}=FILE.nnd"
            raise MissingInputError(f"no such bundle, which the pipeline {name!r} needs", where=str(path), hint=hint)
        return path
    if bundle is None:
        raise UsageError(
            f"the pipeline {name!r} names no model", where=file.where, hint=f"name a BUNDLE, or --model {name}=FILE.nnd"
        )
    return bundle


def fingerprint(
    loaded: Loaded, source: Source, inputs: Sequence[str], output: str, options: RunOptions
) -> dict[str, str]:
    """Returns what must be the same for a run to go on where another one ended."""
    manifests = {name: manifest_to_json(opened[0].manifest) for name, opened in loaded.programs.items()}
    pipeline: list[str] = []
    if loaded.file is not None:
        named = sorted(loaded.file.named.items())
        pipeline = [hashlib.sha256(data).hexdigest() for data in (loaded.file.data, *(data for _, data in named))]
    settings = {name: getattr(options, name) for name in ("nan", "on_error", "batch", "device", "threads")}
    settings["places"] = places_text(options.places)
    return {
        "inputs": digest([list(inputs), digest_of_files(source.paths or ())]),
        "bundles": digest(manifests),
        "pipeline": digest(pipeline),
        "settings": digest([__version__, output, settings]),
    }
