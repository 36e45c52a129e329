# SPDX-License-Identifier: Apache-2.0
"""`nndeploy run`: a source of items -> a bundle, or a pipeline of several -> sinks, with progress and figures.

This page says what happens in which order; what is opened and run is in `nndeploy.stream.run`, what a person sees of it
in `run_view`.
"""

import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nndeploy.cli.commands.loading import load
from nndeploy.cli.console import note, print_json, warn
from nndeploy.cli.options.help_sections import SectionedCommand
from nndeploy.cli.options.option_fields import options_given, options_of, sections_of
from nndeploy.cli.options.output_file import OUTPUT_FILE
from nndeploy.cli.options.pace_options import MORE, pace_goal, pace_options
from nndeploy.cli.options.quiet_option import QUIET
from nndeploy.cli.options.value_types import ANY_FILE, BUNDLE_FILE, TOML_FILE
from nndeploy.cli.standard_streams import binary_stdin
from nndeploy.errors import CheckError, UsageError
from nndeploy.files.named_outputs import STANDARD_OUTPUT
from nndeploy.pacing.plan.goal import PaceGoal
from nndeploy.stream.run.options import RunOptions

if TYPE_CHECKING:
    from nndeploy.stream.engine.engine import Stream
    from nndeploy.stream.engine.trace import Trace

EXAMPLES = """\b
Examples:
  nndeploy run model.nnd --input x.npz --output y.npz        one item, keys are tensor names
  nndeploy run model.nnd --input x=@x.npy --input n=3        one item, input by input
  nndeploy run model.nnd --input in/ --output out/           one result per file
  nndeploy run model.nnd --input 'photos/*.jpg'              images, if the bundle describes preprocessing
  cat lines.jsonl | nndeploy run model.nnd --input - --output -
  nndeploy run faces@ --input photos/ --output results/      the installed bundle of that name
  echo "Tell me a rhyme" | nndeploy run writer.nnd --input - --stream
  nndeploy run --pipeline faces.toml --input photos/ --output faces.jsonl --resume
"""


SECTIONS = sections_of(
    {"Inputs and outputs": ("inputs", "output", "streams"), "Pipelines and batches": ("pipeline", "no_pipeline")},
    RunOptions,
    {"Pacing": ("pace",)},
    PaceGoal,
    {"Pacing": ("pace_plan",), "Metrics and output": ("metrics", "metrics_port", "trace", "as_json", "verbose")},
)


@click.command("run", cls=SectionedCommand, sections=SECTIONS, epilog=EXAMPLES)
@click.argument("bundle", type=BUNDLE_FILE, required=False)
@click.option(
    "-i", "--input", "inputs", type=ANY_FILE, multiple=True, metavar="WHAT",
    help="File (npz, npy, image, jsonl), folder, glob, pipe, NAME=@FILE, NAME=JSON, or - for JSON lines (repeatable). "
    "For a pipeline: SOURCE=WHAT, where WHAT may also be tcp:HOST:PORT, unix:PATH, tail:FILE or rtsp://CAMERA.",
)  # fmt: skip
@click.option(
    "-o", "--output", type=ANY_FILE, metavar="WHERE",
    help="File (x.npz, x.jsonl), folder, pipe, or - for JSON lines. Default: print a summary.",
)  # fmt: skip
@click.option(
    "--stream", "streams", is_flag=True, help="Print texts on standard output as a loop of the pipeline writes them."
)
@click.option(
    "--pipeline", type=TOML_FILE, metavar="FILE.toml",
    help="Pipeline file: one or more models with their pre- and postprocessing. Default: the bundle's own pipeline, "
    "if any.",
)  # fmt: skip
@click.option("--no-pipeline", is_flag=True, help="Run only the model, even if the bundle contains a pipeline.")
@options_of(RunOptions)
@pace_options
@click.option(
    "--metrics",
    type=OUTPUT_FILE,
    metavar="FILE.json",
    help="Write metrics of the stream to a file, updated while it runs.",
)
@click.option(
    "--metrics-port", type=click.IntRange(0, 65535),
    help="Serve Prometheus metrics at http://127.0.0.1:PORT/metrics, to this machine only.",
)  # fmt: skip
@click.option(
    "--trace", type=OUTPUT_FILE, metavar="FILE.json",
    help="Write a Perfetto/Chrome trace.",
)  # fmt: skip
@QUIET
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON on standard output.")
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Show which variant was selected for each submodel and why, and details of each stage.",
)
def run(bundle: Path | None, inputs: tuple[str, ...], output: str | None, **options: Any) -> None:
    """Run inputs through a BUNDLE.

    Or through a pipeline of several bundles, described in a file or embedded in the bundle. Each item yields one result
    or one error record, in order. If a single item fails, so does the command; if one of several fails, the others
    still run and the exit code is 1. The first SIGINT or SIGTERM stops reading and finishes the items in flight; a
    second one exits at once.
    """
    from nndeploy.cli.commands.run_signals import StopSignals
    from nndeploy.cli.commands.service_manager import ServiceManager
    from nndeploy.cli.views.run_view import RunView
    from nndeploy.cli.views.written_text import WrittenText
    from nndeploy.runtime.tuned_meanwhile import tuned_meanwhile
    from nndeploy.stream.run.loaded import following, one_by_one
    from nndeploy.stream.run.open_run import Ends, open_run, opened_models

    wanted = {"--json": options["as_json"], "--output -": output in STANDARD_OUTPUT, "--stream": options["streams"]}
    if len(both := [name for name, is_wanted in wanted.items() if is_wanted]) > 1:
        raise UsageError(f"{both[0]} and {both[1]} both want standard output", hint="name a file or a folder")
    how = replace(options_given(RunOptions, options), pace=pace_goal(options))
    with ExitStack() as stack:
        loaded = opened_models(
            stack, bundle, options["pipeline"], how, load, takes_bundled_pipeline=not options["no_pipeline"]
        )
        tuning = None
        if how.tune_seconds:
            tuning = stack.enter_context(tuned_meanwhile(loaded.every, how.tune_seconds, warn))
        if how.follow:
            loaded = following(stack, loaded, how, load, warn)
        if options["streams"]:
            loaded = one_by_one(loaded, "--stream prints one text at a time")
        manager = ServiceManager()
        signals = stack.enter_context(StopSignals(manager.stopping))
        ends = Ends(binary_stdin, sys.stdout, signals.stop)
        run = open_run(loaded, inputs, output, how, ends, _trace(stack, options["trace"]))
        run.stream.tuning = tuning
        _serve_metrics(stack, run.stream, options)
        shows_items = output is None and not options["as_json"] and not options["streams"]
        if options["streams"]:
            run.stream.on_round = WrittenText(loaded.plan)
        with RunView(loaded, run.stream, run.source, shows_items=shows_items, verbose=options["verbose"]) as view:
            if run.before.num_records:
                warn(f"resuming after {run.before.num_records:,} items of an earlier run")
            with view.heartbeat, manager.watching(run.stream.standstill_ns):
                summary = run.run(view.outcome)
    if run.source.is_one and view.first_error is not None:
        raise view.first_error
    view.finish(summary)
    if options["as_json"]:
        print_json(view.to_json(summary))
    signals.raise_if_stopped()
    if num_failed := summary.num_failed + run.before.num_failed:
        raise CheckError(f"{num_failed} of {summary.num_items + run.before.num_records} items failed")
    if how.strict and how.pace is not None and (missed := view.missed_goal):
        raise CheckError(missed, where=str(bundle or options["pipeline"]), hint=MORE)


def _trace(stack: ExitStack, path: Path | None) -> "Trace | None":
    from nndeploy.stream.engine.trace import Trace

    if path is None:
        return None
    trace = Trace(path)
    stack.callback(trace.discard)
    return trace


def _serve_metrics(stack: ExitStack, stream: "Stream", options: dict[str, Any]) -> None:
    """Lets those who want to watch the stream do so until the stack ends."""
    if options["metrics"] is None and options["metrics_port"] is None:
        return
    from nndeploy.stream.engine.metrics import MetricsFile, MetricsServer, metrics_of

    if options["metrics"] is not None:
        stack.enter_context(MetricsFile(options["metrics"], stream))
    if options["metrics_port"] is not None:
        server = MetricsServer(options["metrics_port"], lambda: metrics_of(stream))
        stack.enter_context(server)
        if not options["metrics_port"]:
            note(f"metrics at http://127.0.0.1:{server.port}/metrics")
