# SPDX-License-Identifier: Apache-2.0
"""Opens what is served under a name: a bundle, the pipeline that it carries, or a pipeline in a file of its own."""

from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path

from nndeploy.bundle.reader import open_bundle
from nndeploy.errors import NndeployError, UsageError
from nndeploy.runtime.load_options import LoadOptions
from nndeploy.serve.infer_request import Say
from nndeploy.serve.options import ServeOptions
from nndeploy.serve.served_bundle import ServedBundle, check_goldens
from nndeploy.serve.served_model import Served
from nndeploy.serve.served_pipeline import ServedPipeline
from nndeploy.stream.pipeline.bundled_pipeline import pipeline_of_bundle, pipeline_of_path
from nndeploy.stream.pipeline.pipeline_file import PipelineFile
from nndeploy.stream.run.loaded import load_pipeline
from nndeploy.stream.run.options import Load, RunOptions

PIPELINE_SUFFIX = ".toml"


def check_served(path: Path) -> None:
    """Looks at what a path names as far as it takes no time: whether it is a bundle or a pipeline.

    Raises:
        MissingInputError: nothing is there.
        BundleError, DataError: it is neither.
    """
    if path.suffix == PIPELINE_SUFFIX:
        pipeline_of_path(path)
    else:
        open_bundle(path).close()


def open_served(name: str, path: Path, options: ServeOptions, load: Load, say: Say) -> Served:
    """Returns what answers under a name, its goldens run.

    Raises:
        CheckError: a golden is wrong on this machine, or there is none.
        UsageError: the protocol has no form for its inputs or outputs, or an option has no meaning with it.
        NndeployError: as `load_bundle`, or a pipeline does not fit its models.
    """
    try:
        if path.suffix == PIPELINE_SUFFIX:
            return _pipeline(pipeline_of_path(path), None, options, load)
        carried = pipeline_of_bundle(path) if options.takes_bundled_pipeline else None
        if carried is not None:
            return _pipeline(carried, path, options, load)
        return ServedBundle(load(path, options, pace=None), name, options, say)
    except NndeployError as err:
        err.about(str(path))
        raise


def _pipeline(file: PipelineFile, bundle: Path | None, options: ServeOptions, load: Load) -> ServedPipeline:
    if options.batch > 1:
        raise UsageError("--batch is for a bundle alone", hint="write batch = N into the pipeline")
    with ExitStack() as stack:
        asked = {one.name: getattr(options, one.name) for one in fields(LoadOptions)}
        loaded = load_pipeline(stack, file, bundle, RunOptions(**asked, models=options.models), load)
        if options.checks_goldens:
            for program in {id(one): one for programs in loaded.programs.values() for one in programs}.values():
                check_goldens(program)
        return ServedPipeline(loaded, stack.pop_all())
