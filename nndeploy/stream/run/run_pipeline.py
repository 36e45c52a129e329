# SPDX-License-Identifier: Apache-2.0
"""Runs items through a bundle or a pipeline in one call, with the defaults of `nndeploy run`."""

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from nndeploy.runtime.program import load_bundle
from nndeploy.runtime.tuned_meanwhile import tuned_meanwhile
from nndeploy.stream.engine.engine import Summary
from nndeploy.stream.items import Outcome
from nndeploy.stream.run.open_run import Ends, open_run, opened_models
from nndeploy.stream.run.options import RunOptions
from nndeploy.stream.stopping import Stop


def run_pipeline(
    bundle: str | os.PathLike[str] | None,
    inputs: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str] | None = None,
    *,
    pipeline: str | os.PathLike[str] | None = None,
    options: RunOptions = RunOptions(),
    on_outcome: Callable[[Outcome], None] | None = None,
) -> Summary:
    """Runs the items of `inputs` through a bundle, or a pipeline of several, into `output`; returns what was done.

    `inputs` and `output` are what `nndeploy run` takes behind --input and --output: files, folders, globs, NAME=@FILE,
    or "-"; with no output `on_outcome` alone sees the outcomes, one for each item and in order. `pipeline` is a TOML
    file (default: the one that the bundle carries, if it does). Items that failed are counted in the summary and are
    error records in the output; where a single item was named, its error is raised.

    Raises:
        UsageError: an argument has no meaning.
        MissingInputError: a bundle or an input is missing.
        DataError: the pipeline does not fit its models, or the single item does not fit the bundle.
        UnavailableError: a submodel has no variant that can run here.
        CannotCreateError, InputOutputError: the output cannot be created or written.
    """
    errors: list[Exception] = []

    def seen(outcome: Outcome) -> None:
        if outcome.is_failed and outcome.error is not None and not errors:  # the first alone: a stream may be long
            errors.append(outcome.error)
        if on_outcome is not None:
            on_outcome(outcome)

    with ExitStack() as stack:
        file = None if pipeline is None else Path(pipeline)
        loaded = opened_models(stack, None if bundle is None else Path(bundle), file, options, load_bundle)
        if options.tune_seconds:
            stack.enter_context(tuned_meanwhile(loaded.every, options.tune_seconds, warnings.warn))
        stop = Stop()
        stack.callback(stop.close)
        ends = Ends(lambda: sys.stdin.buffer, sys.stdout, stop)
        texts = [os.fspath(text) for text in inputs]
        run = open_run(loaded, texts, None if output is None else os.fspath(output), options, ends)
        summary = run.run(seen)
    if run.source.is_one and errors:
        raise errors[0]
    return summary
