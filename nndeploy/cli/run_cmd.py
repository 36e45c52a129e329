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

from nndeploy.cli.console import print_json, warn
from nndeploy.cli.help_sections import SectionedCommand
from nndeploy.cli.loading import load
from nndeploy.cli.option_fields import options_given, options_of, sections_of
from nndeploy.cli.output_file import OUTPUT_FILE
from nndeploy.cli.pace_options import pace_goal, pace_options
from nndeploy.cli.standard_streams import binary_stdin
from nndeploy.cli.value_types import ANY_FILE, BUNDLE_FILE, TOML_FILE
from nndeploy.errors import CheckError, UsageError
from nndeploy.files.named_outputs import STANDARD_OUTPUT
from nndeploy.pacing.goal import PaceGoal
from nndeploy.stream.run.options import RunOptions

if TYPE_CHECKING:
    from nndeploy.stream.engine.engine import Stream
    from nndeploy.stream.engine.trace import Trace

EXAMPLES = """\b
Examples:
  nndeploy run model.nnd --input x.npz --output y.npz        one item, keys are tensor names
  nndeploy run model.nnd --input x=@x.npy --input n=3        one item, input by input
  nndeploy run model.nnd --input in/ --output out/           one result a file
  nndeploy run model.nnd --input 'photos/*.jpg'              images, where the bundle says how
  cat lines.jsonl | nndeploy run model.nnd --input - --output -
  nndeploy run faces@ --input photos/ --output results/      the installed bundle of that name
  nndeploy run --pipeline faces.toml --input photos/ --output faces.jsonl --resume
"""


SECTIONS = sections_of(
    {"Inputs and outputs": ("inputs", "output"), "Pipelines and batches": ("pipeline", "no_pipeline")},
    RunOptions,
    {"Pacing": ("pace",)},
    PaceGoal,
    {"Pacing": ("pace_plan",), "Figures": ("metrics", "metrics_port", "trace", "as_json", "verbose")},
)


@click.command("run", cls=SectionedCommand, sections=SECTIONS, epilog=EXAMPLES)
@click.argument("bundle", type=BUNDLE_FILE, required=False)
@click.option(
    "-i", "--input", "inputs", type=ANY_FILE, multiple=True, metavar="WHAT",
    help="File (npz, npy, image, jsonl), folder, glob, pipe, NAME=@FILE, NAME=JSON, or - for JSON lines (repeatable); "
    "of a pipeline SOURCE=WHAT, also tcp:HOST:PORT, unix:PATH, tail:FILE, rtsp://CAMERA.",
)  # fmt: skip
@click.option(
    "-o", "--output", type=ANY_FILE, metavar="WHERE",
    help="File (x.npz, x.jsonl), folder, pipe, or - for JSON lines. Default: a summary.",
)  # fmt: skip
@click.option(
    "--pipeline", type=TOML_FILE, metavar="FILE.toml",
    help="Several models, and what stands before and behind them. Default: the bundle's own pipeline, if it has one.",
)  # fmt: skip
@click.option("--no-pipeline", is_flag=True, help="Run the bundle alone, even if it has a pipeline.")
@options_of(RunOptions)
@pace_options
@click.option("--metrics", type=OUTPUT_FILE, metavar="FILE.json", help="Keep figures of the stream in a file.")
@click.option(
    "--metrics-port", type=click.IntRange(0, 65535),
    help="Serve them for Prometheus at http://127.0.0.1:PORT/metrics, to this machine alone.",
)  # fmt: skip
@click.option(
    "--trace", type=OUTPUT_FILE, metavar="FILE.json",
    help="Write who worked on what when, for Perfetto or Chrome.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON on standard output.")
@click.option("-v", "--verbose", is_flag=True, help="Say which variant each submodel got, and why; and of each stage.")
def run(bundle: Path | None, inputs: tuple[str, ...], output: str | None, **options: Any) -> None:
    """Run inputs through a BUNDLE.

    Or through a pipeline of several, which a file describes or the bundle carries. Each item gives one result or one
    error record, in order. A single item that fails is the command's error; of many, the others go on and the exit
    code is 1. The first SIGINT or SIGTERM stops reading and finishes what is on its way; the second one ends at once.
    """
    from nndeploy.cli.run_signals import StopSignals
    from nndeploy.cli.run_view import RunView
    from nndeploy.cli.service_manager import ServiceManager
    from nndeploy.stream.run.loaded import following
    from nndeploy.stream.run.open_run import Ends, open_run, opened_models

    if options["as_json"] and output in STANDARD_OUTPUT:
        raise UsageError("--json and --output - both want standard output", hint="name a file or a folder")
    how = replace(options_given(RunOptions, options), pace=pace_goal(options))
    with ExitStack() as stack:
        loaded = opened_models(
            stack, bundle, options["pipeline"], how, load, takes_bundled_pipeline=not options["no_pipeline"]
        )
        if how.follow:
            loaded = following(stack, loaded, how, load, warn)
        manager = ServiceManager()
        signals = stack.enter_context(StopSignals(manager.stopping))
        ends = Ends(binary_stdin, sys.stdout, signals.stop)
        run = open_run(loaded, inputs, output, how, ends, _trace(stack, options["trace"]))
        _serve_metrics(stack, run.stream, options)
        shows_items = output is None and not options["as_json"]
        with RunView(loaded, run.stream, run.source, shows_items=shows_items, verbose=options["verbose"]) as view:
            if run.before.num_records:
                warn(f"goes on after {run.before.num_records:,} items of an earlier run")
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
            print(f"nndeploy: figures at http://127.0.0.1:{server.port}/metrics", file=sys.stderr)
