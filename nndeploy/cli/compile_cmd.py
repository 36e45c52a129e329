# SPDX-License-Identifier: Apache-2.0
"""`nndeploy compile`: options -> a compile in a child process -> progress by stage -> the table at the end."""

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nndeploy.cli.help_sections import SectionedCommand
from nndeploy.cli.output_file import OUTPUT_FILE
from nndeploy.compiler.options import OBJECTIVES
from nndeploy.errors import BundleError, CheckError, DataError, MissingInputError, UsageError, did_you_mean
from nndeploy.files.toml_file import toml_from_file
from nndeploy.plugin.interface import PRECISIONS

if TYPE_CHECKING:
    from nndeploy.bundle.report import Report

EXAMPLES = """\b
Examples:
  nndeploy compile model.onnx -o model.nnd
  nndeploy compile model.onnx -o model.nnd --shape x=1..8,3,224,224:4,3,224,224
  nndeploy compile model.onnx -o model.nnd --backends openvino,onnxruntime --require openvino=95%
  nndeploy compile model.onnx -o model.nnd --target rtx4090 --target t4 --target x86-64-v3
  nndeploy compile model.onnx -o model.nnd --target box.toml --cache-buffer 256KiB
  nndeploy compile model.onnx --dry-run
  nndeploy compile model.onnx -o model.nnd --samples inputs/ --objective latency --threads 2
"""
LEAST_MEMORY_BYTES = 512 << 20
UNITS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def _load_config(context: click.Context, _parameter: click.Parameter, path: Path | None) -> Path | None:
    """Makes a TOML file's keys the defaults of the other options; the command line wins."""
    if path is None:
        return None
    data = toml_from_file(path, "configuration file")
    known = {parameter.name: parameter for parameter in context.command.params if parameter.name != "config"}
    defaults: dict[str, Any] = {}
    for key, value in data.items():
        name = key.replace("-", "_")
        if name not in known:
            raise DataError(f"unknown key {key!r}", where=str(path), hint=did_you_mean(key, [n for n in known if n]))
        defaults[name] = _configured(known[name], key, value, path)
    context.default_map = defaults
    return path


def _configured(parameter: click.Parameter, key: str, value: object, path: Path) -> object:
    """Returns the value of a key as click takes it: a list where the option may be repeated."""
    if not getattr(parameter, "multiple", False):
        if isinstance(value, list | dict):
            raise DataError(f"{key} takes one value, not {value!r:.60}", where=str(path))
        return value
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(one, str) for one in values):
        raise DataError(f"{key} must be a text or a list of texts, is {value!r:.60}", where=str(path))
    return values


SECTIONS = {
    "Model and inputs": (
        "shape", "min_shapes", "opt_shapes", "max_shapes", "samples", "image", "pipeline", "custom_ops", "optimise",
    ),
    "Backends and placement": (
        "backends", "without", "pin", "objective", "precision", "threads", "cache_buffer", "pace", "decisions",
    ),
    "Targets": ("target", "fallback"),
    "Checks and gates": ("rtol", "atol", "require", "max_fallback", "goldens", "allow_uncompared"),
    "Output": ("output", "as_json", "dry_run", "verbose"),
    "Limits": ("jobs", "time_limit", "total_time_limit", "memory_limit"),
    "Configuration": ("config", "dump_config"),
}  # fmt: skip


@click.command("compile", cls=SectionedCommand, sections=SECTIONS, epilog=EXAMPLES)
@click.argument("model", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=OUTPUT_FILE, help="The bundle to write, *.nnd.")
@click.option(
    "--backends",
    help="The backends in order of priority, separated by commas. Default: all that are installed, by tier.",
)
@click.option("--without", multiple=True, metavar="BACKEND", help="Leave a backend out (repeatable).")
@click.option("--pin", multiple=True, metavar="GLOB=BACKEND", help="Give the nodes whose names match to a backend.")
@click.option(
    "--target",
    multiple=True,
    metavar="BOX",
    help="A box that the bundle is for, by name (nndeploy targets) or file (repeatable). Default: this machine.",
)
@click.option(
    "--objective",
    type=click.Choice(OBJECTIVES),
    default=OBJECTIVES[0],
    show_default=True,
    help="What placements are raced for; priority takes the order of backends as it is, without a race.",
)
@click.option(
    "--shape",
    multiple=True,
    metavar="INPUT=SIZES",
    help="Sizes or ranges, e.g. x=1..8,3,224,224:4,3,224,224 (range:best), x=1,3,224..1280:32,640 (in steps), N=1..8.",
)
@click.option("--min-shapes", metavar="IN:1x3x..", help="The least sizes of inputs, as trtexec writes them.")
@click.option("--opt-shapes", metavar="IN:4x3x..", help="The sizes to be fastest at.")
@click.option("--max-shapes", metavar="IN:8x3x..", help="The largest sizes.")
@click.option(
    "--samples", type=click.Path(path_type=Path), help="Folder of .npz files: inputs to check and measure with."
)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    help="How many threads each backend is built for and run with. Default: its library's.",
)
@click.option(
    "--precision",
    type=click.Choice(PRECISIONS),
    default="fp32",
    show_default=True,
    help="The least precision in which float32 may be computed.",
)
@click.option(
    "--cache-buffer",
    metavar="SIZE",
    help="Sliding-window buffer of fused convolutions, e.g. 256KiB; default: from each target's caches.",
)
@click.option(
    "--custom-ops",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A shared library with custom operators; it is code that will be run (repeatable).",
)
@click.option(
    "--pipeline", type=click.Path(path_type=Path), metavar="FILE.toml",
    help="Pipeline that the bundle carries, for `run`; files that it names (labels) travel too.",
)  # fmt: skip
@click.option("--image", type=click.Path(path_type=Path), help="TOML file that says how an image becomes the input.")
@click.option(
    "--rtol",
    type=float,
    help="Relative tolerance of every comparison of floats. Default: by type, and by how far right engines differ.",
)
@click.option("--atol", type=float, help="Absolute tolerance of every comparison of floats. Default: likewise.")
@click.option(
    "--require", multiple=True, metavar="BACKEND=95%", help="Fail unless a backend takes this share of compute."
)
@click.option(
    "--max-fallback",
    metavar="5%",
    help="Fail if fallback backends take more than this share of compute. Default: no limit.",
)
@click.option(
    "--goldens",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="How many samples the bundle keeps with their results, for nndeploy verify.",
)
@click.option(
    "--fallback/--no-fallback",
    default=True,
    help="Also build each submodel for the next backend below, for boxes that lack the first.",
)
@click.option("--optimise/--no-optimise", default=True, help="Run the passes that rewrite the graph for any backend.")
@click.option("--pace", is_flag=True, help="Let `nndeploy run --pace` sleep between the operators of this bundle.")
@click.option(
    "--allow-uncompared", is_flag=True, help="Write the bundle although no input could be made to compare it."
)
@click.option(
    "--decisions", type=click.Path(path_type=Path), metavar="FILE",
    help="Decide as this file says, without measuring; where there is none, write what was decided to it.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Show who would take which node and why; build nothing.")
@click.option("--jobs", type=click.IntRange(min=1), help="How many builds run at once. Default: the number of cores.")
@click.option(
    "--time-limit", type=float, default=600.0, show_default=True, help="How many seconds each build or check may take."
)
@click.option(
    "--total-time-limit", type=click.FloatRange(min=0, min_open=True), default=3600.0, show_default=True,
    help="How many seconds the whole compile may take.",
)  # fmt: skip
@click.option(
    "--memory-limit", metavar="SIZE",
    help="Memory for the whole compile, e.g. 8GiB; default: three quarters of this machine's.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON on standard output.")
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    is_eager=True,
    callback=_load_config,
    help="TOML file with options; the command line wins.",
)
@click.option("--dump-config", is_flag=True, help="Print the options as TOML and stop.")
@click.option("-v", "--verbose", is_flag=True, help="Show every node, not only the submodels.")
@click.pass_context
def compile_(context: click.Context, /, **options: Any) -> None:
    """Compile a trained ONNX MODEL into one offline bundle.

    Every node goes to the first backend that takes it; the outputs are compared with the original model; the bundle
    holds all that is needed to run without it.
    """
    from nndeploy.bundle.report import report_to_json
    from nndeploy.bundle.writer import check_can_create
    from nndeploy.cli.compile_view import CompileProgress, print_report, print_warnings
    from nndeploy.cli.console import print_json
    from nndeploy.compiler.job import compile_in_child

    if options["dump_config"]:
        click.echo(_dumped(context), nl=False)
        return
    if options["output"] is None and not options["dry_run"]:
        raise UsageError("no output was named", hint="-o model.nnd, or --dry-run")
    if options["output"] is not None and not options["dry_run"]:
        check_can_create(options["output"])
    if not options["model"].exists():
        raise MissingInputError("no such file", where=str(options["model"]))

    def show(report: "Report", *, is_written: bool) -> None:
        print_warnings(report)
        if options["as_json"]:
            print_json(report_to_json(report))
        else:
            print_report(report, verbose=options["verbose"], dry_run=not is_written)

    try:
        with CompileProgress() as progress:
            report = compile_in_child(_request(options), progress.event)
    except CheckError as err:
        if err.report is not None:
            show(err.report, is_written=False)  # what a gate is about comes before the gate
        raise
    report = replace(report, bundle=str(options["output"] or ""))  # as the user wrote it, not as the child saw it
    show(report, is_written=not options["dry_run"])


def _request(options: dict[str, Any]) -> dict[str, Any]:
    """Returns the options as the plain data that `nndeploy.compiler.job` takes."""
    from nndeploy.target.known_targets import absolute

    pipeline = options["pipeline"]
    return {
        "source": str(options["model"].absolute()),
        "out": None if options["output"] is None else str(options["output"].absolute()),
        "backends": options["backends"],
        "targets": [absolute(text) for text in options["target"]],
        "objective": options["objective"],
        "samples": None if options["samples"] is None else str(options["samples"].absolute()),
        "shape_texts": list(options["shape"]),
        "trtexec_shapes": [options[f"{end}_shapes"] or "" for end in ("min", "opt", "max")],
        "threads": options["threads"],
        "precision": options["precision"],
        "cache_buffer": None
        if options["cache_buffer"] is None
        else num_bytes(options["cache_buffer"], "--cache-buffer"),
        "without": [name for text in options["without"] for name in text.split(",")],
        "pins": [_pin(text) for text in options["pin"]],
        "custom_op_libraries": [_existing(path) for path in options["custom_ops"]],
        "image_input": None if options["image"] is None else _image_input(options["image"]),
        "pipeline": None if pipeline is None else [str(pipeline.absolute()), str(pipeline)],
        "rtol": options["rtol"],
        "atol": options["atol"],
        "require": dict(_requirement(text) for text in options["require"]),
        "max_fallback": None if options["max_fallback"] is None else _share(options["max_fallback"], "--max-fallback"),
        "num_goldens": options["goldens"],
        "keep_fallback": options["fallback"],
        "optimise": options["optimise"],
        "pace": options["pace"],
        "allow_uncompared": options["allow_uncompared"],
        "dry_run": options["dry_run"],
        "decisions": None if options["decisions"] is None else str(options["decisions"].absolute()),
        "jobs": options["jobs"] or os.cpu_count() or 1,
        "time_limit": options["time_limit"],
        "total_time_limit": options["total_time_limit"],
        "memory_limit": _memory_limit(options["memory_limit"]),
    }


def _pin(text: str) -> tuple[str, str]:
    glob, equals, backend = text.rpartition("=")
    if not equals or not glob or not backend:
        raise UsageError(f"--pin {text!r} is not GLOB=BACKEND", hint="for example 'Conv_*=onnxruntime'")
    return glob, backend


def _requirement(text: str) -> tuple[str, float]:
    name, equals, share = text.partition("=")
    if not equals or not name:
        raise UsageError(f"--require {text!r} is not BACKEND=SHARE", hint="for example openvino=95%")
    return name, _share(share, "--require")


def _share(text: str, option: str) -> float:
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(%?)\s*", text)
    if not found:
        raise UsageError(f"{option}: {text!r} is not a share", hint="for example 95% or 0.95")
    return float(found[1]) / (100 if found[2] else 1)


def _memory_limit(text: str | None) -> int:
    from nndeploy.jobs.memory import default_memory_limit

    if text is None:
        return default_memory_limit()
    limit = num_bytes(text, "--memory-limit")
    if limit < LEAST_MEMORY_BYTES:
        raise UsageError(f"--memory-limit: {text} is too little to compile anything", hint="at least 512MiB")
    return limit


def num_bytes(text: str, option: str) -> int:
    """Returns the bytes that a size of an option means.

    Raises:
        UsageError: it is no size.
    """
    found = re.fullmatch(rf"\s*([0-9]{{1,18}})\s*({'|'.join(UNITS)})\s*", text)
    if not found:
        raise UsageError(f"{option}: {text!r:.80} is not a size", hint="for example 256KiB, 1MiB or 65536")
    return int(found[1]) * UNITS[found[2]]


def _existing(path: Path) -> str:
    if not path.is_file():
        raise MissingInputError("no such library of operators", where=str(path))
    return str(path.absolute())


def _image_input(path: Path) -> dict[str, Any]:
    """Returns the fields of an `ImageInput` from a TOML file, as plain data."""
    import dataclasses

    from nndeploy.bundle.manifest_json import image_input_from_json

    data = {"labels": [], **toml_from_file(path, "image description")}
    try:
        return dataclasses.asdict(image_input_from_json(data))
    except BundleError as err:
        raise DataError(err.what, where=": ".join(filter(None, (str(path), err.where))), hint=err.hint) from err


def _dumped(context: click.Context) -> str:
    """Returns the options that differ from their defaults, as TOML that --config reads."""
    lines = []
    for parameter in context.command.params:
        name = parameter.name or ""
        value = context.params.get(name)
        if name in ("config", "dump_config", "model") or value in (None, (), False) or value == parameter.default:
            continue
        lines.append(f"{name.replace('_', '-')} = {_toml(value)}")
    return "".join(line + "\n" for line in lines)


def _toml(value: Any) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return json.dumps(str(value) if isinstance(value, Path) else value)
