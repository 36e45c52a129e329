# SPDX-License-Identifier: Apache-2.0
"""`nndeploy tune`: times other ways of doing the steps of a bundle on this machine, and keeps those that are faster."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from nndeploy.cli.commands.bench_inputs import MAX_INPUTS, bench_inputs
from nndeploy.cli.commands.loading import BUNDLE, load
from nndeploy.cli.console import print_json
from nndeploy.cli.options.help_sections import SectionedCommand
from nndeploy.cli.options.option_fields import options_given, options_of, sections_of
from nndeploy.cli.options.quiet_option import QUIET
from nndeploy.cli.options.value_types import ANY_FILE, JSON_FILE, SHAPE_OF_INPUT, Number
from nndeploy.cli.views.progress import Heartbeat
from nndeploy.cli.views.tuned_view import print_tuned, print_variants
from nndeploy.errors import DataError, UsageError
from nndeploy.files.decisions_file import TUNED_FORMAT, read_tuned_choices, write_decisions_file
from nndeploy.runtime.load_options import LoadOptions
from nndeploy.runtime.program import Program
from nndeploy.runtime.tune_program import is_tunable, replay, tune
from nndeploy.runtime.value_shapes import shapes_of_inputs
from nndeploy.values.types import Value

EXAMPLES = """\b
Examples:
  nndeploy tune model.nnd
  nndeploy tune model.nnd --seconds 30 --threads 1
  nndeploy tune model.nnd --shape x=1,3,640,640 --shape n=1
  nndeploy tune model.nnd --decisions tuned.json      measures once; the next machine of that kind only takes it over
"""
DEFAULT_SECONDS = 10.0

SECTIONS = sections_of({"Measurement": ("inputs", "shapes", "seconds", "is_fast", "decisions")}, LoadOptions)


@click.command("tune", cls=SectionedCommand, sections=SECTIONS, epilog=EXAMPLES)
@BUNDLE
@click.option(
    "-i", "--input", "inputs", type=ANY_FILE, multiple=True, metavar="WHAT",
    help="Inputs to run, as for `nndeploy run`; one of each set of shapes is taken. Default: the bundle's stored "
    "sample inputs, or generated ones.",
)  # fmt: skip
@click.option(
    "--shape", "shapes", type=SHAPE_OF_INPUT, multiple=True, metavar="INPUT=SIZES",
    help="Sizes of an input to generate, such as x=1,3,640,640 (repeatable).",
)  # fmt: skip
@click.option(
    "--seconds", type=Number(min=0, min_open=True), default=DEFAULT_SECONDS, show_default=True, metavar="SECONDS",
    help="How long to measure, in all.",
)  # fmt: skip
@click.option(
    "--fast", "is_fast", is_flag=True,
    help="Try what changes last bits too: convolutions by Winograd's products or by direct sums, and the other "
    "variants of submodels, such as those of ONNX Runtime.",
)  # fmt: skip
@click.option(
    "--decisions", type=JSON_FILE, metavar="FILE",
    help="Reuse what was found in FILE, without measuring; create it if it does not exist.",
)  # fmt: skip
@options_of(LoadOptions)
@QUIET
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON on standard output.")
def tune_(
    bundle: Path,
    inputs: tuple[str, ...],
    shapes: tuple[tuple[str, tuple[int, ...]], ...],
    seconds: float,
    is_fast: bool,
    decisions: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Tune a BUNDLE for this machine.

    A bundle runs at once, by fixed rules for how its steps are done. This command times other windows, blocks and
    divisions among threads, whose results are the same to the bit (but for --fast), and keeps the faster ones in the
    cache of the bundle (--cache). Later runs on this machine use them.
    """
    if inputs and shapes:
        raise UsageError("--input and --shape exclude each other", hint="--shape generates inputs")
    how = options_given(LoadOptions, options)
    with load(bundle, how) as program:
        before = read_tuned_choices(decisions) if decisions is not None and decisions.exists() else None
        if before is not None:
            try:
                found = _replayed(program, how, before)
            except DataError as err:
                raise err.within(str(decisions)) from err
        else:
            samples = [_generated(program, dict(shapes))] if shapes else _given(program, inputs)
            found = _measured_fast(program, how, samples, seconds) if is_fast else _measured(program, samples, seconds)
            if decisions is not None:
                write_decisions_file(decisions, {"format": TUNED_FORMAT, **found})
    if as_json:
        print_json({"bundle": str(bundle), "replayed": before is not None, **found})
    else:
        print_tuned(found["tuned"], is_measured=before is None)
        print_variants(found.get("variants", ()))


def tuned_bundle(bundle: Path, options: LoadOptions, seconds: float) -> list[Any]:
    """Returns what was found for the stored samples of a bundle, or generated ones, and is kept.

    Raises:
        UnavailableError: this machine does not run the bundle, or nothing of it can be tuned.
        InputOutputError: what is found cannot be kept.
    """
    with load(bundle, options) as program:
        return _measured(program, _given(program, ()), seconds)["tuned"]


def _measured(program: Program, samples: Sequence[Mapping[str, Value]], seconds: float) -> dict[str, list[Any]]:
    with Heartbeat(f"measuring {program.path}"):
        return {"tuned": tune(program, samples, seconds)}


def _measured_fast(
    program: Program, how: LoadOptions, samples: Sequence[Mapping[str, Value]], seconds: float
) -> dict[str, list[Any]]:
    """Measures steps, then whole variants of submodels against those that are tuned."""
    from nndeploy.runtime.kept_variants import check_folder, keep_variants
    from nndeploy.runtime.tuned_variants import fastest_variants, other_variants

    folder, others = how.cache_of(program.path), other_variants(program, how)
    if others:
        check_folder(folder)  # before anything is measured
    part = seconds / 2 if others else seconds
    with Heartbeat(f"measuring {program.path}"):
        tuned = tune(program, samples, part, is_fast=True) if is_tunable(program) or not others else []
        variants = fastest_variants(program, how, others, samples, part)
    keep_variants(folder, variants)
    return {"tuned": tuned, "variants": variants}


def _replayed(program: Program, how: LoadOptions, data: Mapping[str, Any]) -> dict[str, list[Any]]:
    from nndeploy.runtime.kept_variants import keep_variants, replayed_variants

    tuned = replay(program, data["tuned"]) if data["tuned"] or "variants" not in data else []
    if "variants" not in data:
        return {"tuned": tuned}
    variants = replayed_variants(data["variants"], program.manifest, how)
    keep_variants(how.cache_of(program.path), variants)
    return {"tuned": tuned, "variants": variants}


def _given(program: Program, texts: Sequence[str]) -> list[Mapping[str, Value]]:
    samples, _ = bench_inputs(program, texts, most=MAX_INPUTS)
    return [one.values for one in samples]


def _generated(program: Program, asked: Mapping[str, Sequence[int]]) -> Mapping[str, Value]:
    from nndeploy.runtime.sample_inputs import sample_of_shapes  # which loads NumPy's dice

    return sample_of_shapes(program.manifest, shapes_of_inputs(program.bundle, asked))
