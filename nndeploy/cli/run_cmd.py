# SPDX-License-Identifier: Apache-2.0
"""`nndeploy run`: a source of items -> a bundle, or a pipeline of several -> sinks, with progress and figures.

This page says what happens in which order; the stream itself is in `nndeploy.stream.engine`, what a person sees of it
in `run_view`, what is opened in `run_models`.
"""

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nndeploy.cli.console import print_json, warn
from nndeploy.cli.load_options import load_options
from nndeploy.cli.output_file import OUTPUT_FILE
from nndeploy.cli.pace_options import pace_options
from nndeploy.cli.standard_streams import binary_stdin
from nndeploy.errors import CheckError, UsageError

if TYPE_CHECKING:
    from nndeploy.cli.run_models import Loaded
    from nndeploy.stream.engine.engine import Stream, StreamOptions
    from nndeploy.stream.engine.stopping import Stop
    from nndeploy.stream.sinks.resume import Progress
    from nndeploy.stream.sinks.sinks import Sink
    from nndeploy.stream.sources.sources import Source

EXAMPLES = """\b
Examples:
  nndeploy run model.nnd --input x.npz --output y.npz        one item, keys are tensor names
  nndeploy run model.nnd --input x=@x.npy --input n=3        one item, input by input
  nndeploy run model.nnd --input in/ --output out/           one result a file
  nndeploy run model.nnd --input 'photos/*.jpg'              images, where the bundle says how
  cat lines.jsonl | nndeploy run model.nnd --input - --output -
  nndeploy run --pipeline faces.toml --input photos/ --output faces.jsonl --resume
"""


@click.command("run", epilog=EXAMPLES)
@click.argument("bundle", type=click.Path(path_type=Path), required=False)
@click.option(
    "-i", "--input", "inputs", multiple=True, metavar="WHAT",
    help="File (npz, npy, png, jpg, jsonl), folder, glob, NAME=@FILE, NAME=JSON, or - for JSON lines (repeatable).",
)  # fmt: skip
@click.option(
    "-o", "--output", metavar="WHERE", help="x.npz, x.jsonl, a folder, or - for JSON lines. Default: a summary."
)
@click.option(
    "--pipeline", type=click.Path(path_type=Path), metavar="FILE.toml",
    help="Several models, and what stands before and behind them. Default: the bundle's own pipeline, if it has one.",
)  # fmt: skip
@click.option("--no-pipeline", is_flag=True, help="Run the bundle alone, even if it has a pipeline.")
@click.option(
    "--model", "models", multiple=True, metavar="NAME=BUNDLE", help="Bundle of one of the pipelines (repeatable)."
)
@click.option("--batch", type=click.IntRange(1, 4096), default=1, show_default=True, help="Items to run at once.")
@click.option(
    "--batch-delay-ms", type=click.FloatRange(0, 60_000), default=0.0, show_default=True,
    help="How long an item waits for others of its batch.",
)  # fmt: skip
@click.option(
    "--resume", is_flag=True,
    help="Go on after the last durable output of the same call, if it was killed or stopped; so may this one be.",
)  # fmt: skip
@click.option("--unordered", is_flag=True, help="Write results as they come, not in the order of the items.")
@click.option(
    "--on-error", type=click.Choice(["continue", "stop"]), default="continue", show_default=True,
    help="What to do after an item that failed.",
)  # fmt: skip
@click.option(
    "--nan", type=click.Choice(["pass", "flag", "reject"]), default="flag", show_default=True,
    help="What to do with NaN and infinity in inputs.",
)  # fmt: skip
@load_options
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
    from nndeploy.stream.engine.engine import StreamOptions, after

    if options["as_json"] and output == "-":
        raise UsageError("--json and --output - both want standard output", hint="name a file or a folder")
    with ExitStack() as stack:
        loaded = _loaded(stack, bundle, options)
        signals = stack.enter_context(StopSignals())
        source = _source(loaded, inputs, options, signals.stop)
        sink, before = _sink(loaded, source, inputs, output, options)
        how = StreamOptions(
            options["nan"],
            stop_on_error=options["on_error"] == "stop" or source.is_one,
            is_ordered=not options["unordered"],
            first_index=before.num_records,
        )
        shows_items = output is None and not options["as_json"]
        stream = _stream(stack, loaded, how, options, signals.stop)
        with RunView(loaded, stream, source, shows_items=shows_items, verbose=options["verbose"]) as view:
            if before.num_records:
                warn(f"goes on after {before.num_records:,} items of an earlier run")
            with view.heartbeat:
                summary = stream.run(after(source.items, before.num_records), sink, view.outcome)
    if source.is_one and view.first_error is not None:
        raise view.first_error
    view.finish(summary)
    if options["as_json"]:
        print_json(view.to_json(summary))
    signals.raise_if_stopped()
    if num_failed := summary.num_failed + before.num_failed:
        raise CheckError(f"{num_failed} of {summary.num_items + before.num_records} items failed")


def _loaded(stack: ExitStack, bundle: Path | None, options: dict[str, Any]) -> "Loaded":
    """Returns what runs: a pipeline, or a bundle alone."""
    from nndeploy.cli.run_models import load_alone, load_pipeline
    from nndeploy.stream.pipeline.bundled_pipeline import pipeline_of_bundle, pipeline_of_path

    models, file = dict(map(_model, options["models"])), None
    if options["pipeline"] is not None:
        file = pipeline_of_path(options["pipeline"])
    elif bundle is not None and not options["no_pipeline"]:
        file = pipeline_of_bundle(bundle)
    if file is not None:
        if options["batch"] > 1:
            raise UsageError("--batch is for a bundle alone", hint="write batch = N into the pipeline")
        return load_pipeline(stack, file, bundle, models, options)
    if bundle is None:
        raise UsageError("Missing argument 'BUNDLE'", hint="see nndeploy run --help")
    if models:
        raise UsageError("--model names a bundle of a pipeline, and there is no pipeline")
    return load_alone(stack, bundle, options["batch"], options["batch_delay_ms"], options)


def _model(text: str) -> tuple[str, Path]:
    name, equals, path = text.partition("=")
    if not equals or not name or not path:
        raise UsageError(f"--model is NAME=BUNDLE, not {text!r}")
    return name, Path(path)


def _stream(
    stack: ExitStack, loaded: "Loaded", how: "StreamOptions", options: dict[str, Any], stop: "Stop"
) -> "Stream":
    """Returns the stream, which those who want to watch it do until the stack ends."""
    from nndeploy.stream.engine.engine import Stream
    from nndeploy.stream.engine.trace import Trace

    trace = Trace(options["trace"]) if options["trace"] is not None else None
    if trace is not None:
        stack.callback(trace.discard)
    stream = Stream(loaded.plan, loaded.programs, how, stop, trace, loaded.pacing)
    if options["metrics"] is None and options["metrics_port"] is None:
        return stream
    from nndeploy.stream.engine.metrics import MetricsFile, MetricsServer, metrics_of, prometheus_text

    if options["metrics"] is not None:
        stack.enter_context(MetricsFile(options["metrics"], stream))
    if options["metrics_port"] is not None:
        stack.enter_context(MetricsServer(options["metrics_port"], lambda: prometheus_text(metrics_of(stream))))
    return stream


def _source(loaded: "Loaded", inputs: tuple[str, ...], options: dict[str, Any], stop: "Stop") -> "Source":
    """Returns where the items come from."""
    from nndeploy.stream.engine.stopping import stoppable
    from nndeploy.stream.pipeline.pipeline_sources import pipeline_source
    from nndeploy.stream.sources.sources import source_from_texts

    def stdin() -> Any:
        return stoppable(binary_stdin(), stop)

    allow_nan = options["nan"] == "pass"
    if loaded.file is not None:
        if not inputs:
            raise UsageError("no input was named", hint="for example --input photos/")
        return pipeline_source(loaded.file.source, inputs, loaded.types, stdin, allow_nan=allow_nan)
    assert loaded.first is not None
    manifest = loaded.first.manifest
    if not inputs:
        name = manifest.inputs[0].name if manifest.inputs else "x"
        raise UsageError("no input was named", hint=f"for example --input {name}=@{name}.npy")
    return source_from_texts(inputs, manifest, stdin, allow_nan=allow_nan)


def _sink(
    loaded: "Loaded", source: "Source", inputs: tuple[str, ...], output: str | None, options: dict[str, Any]
) -> tuple["Sink", "Progress"]:
    """Returns where the outcomes go, and how far an earlier run had come."""
    from nndeploy.cli.run_models import fingerprint
    from nndeploy.stream.pipeline.pipeline_sinks import check_resumable, is_one_file, named_place, pipeline_sink
    from nndeploy.stream.sinks.resumable import Resumables
    from nndeploy.stream.sinks.resume import Journal, Progress, ResumedSink, journal_path
    from nndeploy.stream.sinks.sinks import sink_from_text

    if loaded.file is not None and output is not None:
        output = named_place(loaded.file.sinks, output)

    def made(resumables: Resumables | None) -> "Sink":
        if loaded.file is None:
            manifest = loaded.first.manifest if loaded.first is not None else None
            return sink_from_text(output, manifest, sys.stdout, resumables)
        file = loaded.file
        return pipeline_sink(file.sinks, loaded.last_fields, file.where, output, sys.stdout, resumables)

    if not options["resume"]:
        return made(None), Progress()
    if options["unordered"]:
        raise UsageError("--resume and --unordered exclude each other: what is done is the first so many items")
    if source.paths is None:
        raise UsageError("--resume needs inputs that can be read again, not standard input")
    tables, where = (loaded.file.sinks, loaded.file.where) if loaded.file is not None else ((), "")
    output = check_resumable(tables, where, output)
    path = journal_path(Path(output), is_file=is_one_file(tables, output))
    journal = Journal(path, fingerprint(loaded, source, inputs, output, options))
    resumables: Resumables = []
    try:
        sink = made(resumables)
        return ResumedSink(journal, resumables, sink), journal.progress
    except BaseException:
        journal.give_up()
        raise
