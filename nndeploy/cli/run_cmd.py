# SPDX-License-Identifier: Apache-2.0
"""`nndeploy run`: inputs -> program -> outputs, with progress on standard error and the figures at the end."""

import sys
from pathlib import Path
from typing import Any

import click

from nndeploy.cli.console import print_json
from nndeploy.cli.load_options import BUNDLE, load, load_options
from nndeploy.cli.standard_streams import binary_stdin
from nndeploy.errors import CheckError, UsageError

EXAMPLES = """\b
Examples:
  nndeploy run model.nnd --input x.npz --output y.npz        one item, keys are tensor names
  nndeploy run model.nnd --input x=@x.npy --input n=3        one item, input by input
  nndeploy run model.nnd --input in/ --output out/           one result a file
  nndeploy run model.nnd --input 'photos/*.jpg'              images, where the bundle says how
  cat lines.jsonl | nndeploy run model.nnd --input - --output -
"""


@click.command("run", epilog=EXAMPLES)
@BUNDLE
@click.option(
    "-i", "--input", "inputs", multiple=True, metavar="WHAT",
    help="File (npz, npy, png, jpg, jsonl), folder, glob, NAME=@FILE, NAME=JSON, or - for JSON lines (repeatable).",
)  # fmt: skip
@click.option(
    "-o", "--output", metavar="WHERE", help="x.npz, x.jsonl, a folder, or - for JSON lines. Default: a summary."
)
@click.option(
    "--on-error", type=click.Choice(["continue", "stop"]), default="continue", show_default=True,
    help="What to do after an item that failed.",
)  # fmt: skip
@click.option(
    "--nan", type=click.Choice(["pass", "flag", "reject"]), default="flag", show_default=True,
    help="What to do with NaN and infinity in inputs.",
)  # fmt: skip
@load_options
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON on standard output.")
@click.option("-v", "--verbose", is_flag=True, help="Say which variant each submodel got, and why.")
def run(bundle: Path, inputs: tuple[str, ...], output: str | None, **options: Any) -> None:
    """Run inputs through a BUNDLE.

    Each item gives one result or one error record, in order. A single item that fails is the command's error; of
    many, the others go on and the exit code is 1.
    """
    from nndeploy.cli.run_view import RunView
    from nndeploy.stream.description import only_the_model
    from nndeploy.stream.engine import Stream, StreamOptions
    from nndeploy.stream.sinks import sink_from_text
    from nndeploy.stream.sources import source_from_texts

    if options["as_json"] and output == "-":
        raise UsageError("--json and --output - both want standard output", hint="name a file or a folder")
    with load(bundle, options) as program:
        if not inputs:
            name = program.inputs[0].name if program.inputs else "x"
            raise UsageError("no input was named", hint=f"for example --input {name}=@{name}.npy")
        source = source_from_texts(inputs, program.manifest, binary_stdin, allow_nan=options["nan"] == "pass")
        sink = sink_from_text(output, program.manifest, sys.stdout)
        shows_items = output is None and not options["as_json"]
        with RunView(program, source, shows_items=shows_items, verbose=options["verbose"]) as view:
            how = StreamOptions(options["nan"], stop_on_error=options["on_error"] == "stop" or source.is_one)
            stream = Stream(only_the_model(program.manifest), {"model": [program]}, how)
            summary = stream.run(source.items, sink, view.outcome)
    if source.is_one and view.first_error is not None:
        raise view.first_error
    view.finish(summary)
    if options["as_json"]:
        print_json(view.to_json(summary))
    if summary.num_failed:
        raise CheckError(f"{summary.num_failed} of {summary.num_items} items failed")
