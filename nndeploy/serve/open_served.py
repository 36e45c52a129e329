# SPDX-License-Identifier: Apache-2.0
"""Opens what is served under a name: a bundle, the pipeline that it carries, or a pipeline in a file of its own."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import fields, replace
from pathlib import Path

from nndeploy.bundle.reader import open_bundle
from nndeploy.errors import NndeployError, UsageError
from nndeploy.runtime.load_options import LoadOptions
from nndeploy.runtime.program import Program
from nndeploy.runtime.tuned_meanwhile import TUNING_FIGURES, TuningFigures, tuned_meanwhile
from nndeploy.serve.call_queue import Numbers
from nndeploy.serve.infer_request import Say
from nndeploy.serve.options import ServeOptions
from nndeploy.serve.served_bundle import ServedBundle, check_goldens
from nndeploy.serve.served_model import Served
from nndeploy.serve.served_pipeline import ServedPipeline
from nndeploy.stream.pipeline.bundled_pipeline import pipeline_of_bundle, pipeline_of_path
from nndeploy.stream.pipeline.pipeline_file import PipelineFile
from nndeploy.stream.run.loaded import Loaded, load_pipeline
from nndeploy.stream.run.options import Load, RunOptions
from nndeploy.target.target import num_cores

PIPELINE_SUFFIX = ".toml"


def check_served(path: Path, options: ServeOptions) -> None:
    """Looks at what a path names as far as it takes no time: whether it is a bundle or a pipeline.

    Raises:
        MissingInputError: nothing is there.
        BundleError, DataError: it is neither.
        UsageError: it keeps state from request to request, which several processes cannot.
    """
    if path.suffix != PIPELINE_SUFFIX:
        open_bundle(path).close()
    file = _pipeline_at(path, options) if path.suffix == PIPELINE_SUFFIX or options.processes > 1 else None
    if file is None or options.processes == 1:
        return
    stateful = [one.name for one in file.pipelines if one.runner is not None and one.runner.session]
    if stateful:
        what = f"the pipeline {stateful[0]!r} keeps state of sessions, which is in one process"
        raise UsageError(what, where=str(path), hint="--processes 1")


def open_models(stack: ExitStack, path: Path, options: ServeOptions, load: Load) -> Program | Loaded:
    """Returns the program of a bundle, or those of a pipeline in a file or in a bundle; `stack` closes them.

    Raises:
        UsageError: an option has no meaning with it.
        NndeployError: as `load_bundle`, or a pipeline does not fit its models.
    """
    file = _pipeline_at(path, options)
    if file is None:
        how = replace(options, threads=_threads(options, 1))
        return stack.enter_context(closing(load(path, how, pace=None)))
    if options.batch > 1:
        raise UsageError("--batch is for a bundle alone", hint="write batch = N into the pipeline")
    asked = {one.name: getattr(options, one.name) for one in fields(LoadOptions)}
    asked["threads"] = _threads(options, sum(len(one.runner.devices) for one in file.pipelines if one.runner))
    bundle = None if path.suffix == PIPELINE_SUFFIX else path
    return load_pipeline(stack, file, bundle, RunOptions(**asked, models=options.models), load)


def open_served(
    name: str, path: Path, options: ServeOptions, load: Load, say: Say, numbers: Numbers | None = None
) -> Served:
    """Returns what answers under a name, its goldens run; `numbers` get those of its tuning.

    Raises:
        CheckError: a golden is wrong on this machine, or there is none.
        UsageError: the protocol has no form for its inputs or outputs, or an option has no meaning with it.
        NndeployError: as `load_bundle`, or a pipeline does not fit its models.
    """
    try:
        with ExitStack() as stack:
            found = open_models(stack, path, options, load)
            if isinstance(found, Loaded):
                if options.checks_goldens:
                    for program in found.every:
                        check_goldens(program)
                stack.enter_context(_tuned(found.every, options, say, numbers))
                return ServedPipeline(found, stack.pop_all())
            stack.pop_all()  # what answers closes it
            served = ServedBundle(found, name, options, say)
            served.meanwhile.enter_context(_tuned([found], options, say, numbers))
            return served
    except NndeployError as err:
        err.about(str(path))
        raise


@contextmanager
def _tuned(programs: Sequence[Program], options: ServeOptions, say: Say, numbers: Numbers | None) -> Iterator[None]:
    """Tunes programs meanwhile where that is asked for, and writes its figures down."""
    if not options.tune_seconds:
        yield
        return
    before = {name: numbers[name] for name in TUNING_FIGURES if numbers is not None}

    def changed(figures: TuningFigures) -> None:
        if numbers is not None:
            for name, number in figures.to_json().items():
                numbers[name] = before[name] + number  # those of what was open before go on

    with tuned_meanwhile(programs, options.tune_seconds, say, changed):
        yield


def _pipeline_at(path: Path, options: ServeOptions) -> PipelineFile | None:
    if path.suffix == PIPELINE_SUFFIX:
        return pipeline_of_path(path)
    return pipeline_of_bundle(path) if options.takes_bundled_pipeline else None


def _threads(options: ServeOptions, models: int) -> int | None:
    """Returns how many threads each of so many models has: where nobody says, a share of the cores for each process."""
    if options.threads is not None or options.processes == 1:
        return options.threads
    return max(1, num_cores() // (options.processes * max(1, models)))
