# SPDX-License-Identifier: Apache-2.0
"""`nndeploy pace`: the plan by which a bundle would be paced on this machine, and what it achieves on its sample."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nndeploy.cli.console import print_json, print_line, print_table
from nndeploy.cli.help_sections import SectionedCommand
from nndeploy.cli.loading import BUNDLE, load
from nndeploy.cli.option_fields import options_given, options_of, sections_of
from nndeploy.cli.output_file import OUTPUT_FILE
from nndeploy.cli.pace_edges import edge, write_plan
from nndeploy.cli.pace_options import GRANTS, goal_of
from nndeploy.cli.value_types import BOX
from nndeploy.pacing.goal import PaceGoal
from nndeploy.pacing.planned import PlannedPair, PlannedPoint
from nndeploy.runtime.load_options import LoadOptions
from nndeploy.runtime.pace_checks import check_pace, check_policy_of_row
from nndeploy.values.amounts import ms_text

if TYPE_CHECKING:
    from nndeploy.pacing.achieved import Achieved
    from nndeploy.pacing.load_curve import Loads

EXAMPLES = """\b
Examples:
  nndeploy pace model.nnd --max-latency 80ms
  nndeploy pace model.nnd --cpu-limit 50% --all
  nndeploy pace model.nnd --pace-total 60ms
  nndeploy pace model.nnd --pace-pair 'Conv a->Relu b=2ms'        sleep only there
  nndeploy pace model.nnd --max-latency 80ms --html pace.html     the load before and after, as a chart
  nndeploy pace model.nnd --max-latency 80ms -o plan.json         for run --pace --pace-plan plan.json
  nndeploy pace model.nnd --estimate --target box.toml            nothing is run
"""
SHOWN = 12
SHOWN_READERS = 2


SECTIONS = sections_of(
    PaceGoal,
    {
        "Measurement": ("runs", "estimate", "target"),
        "Output": ("output", "shows_all", "page", "as_json"),
    },
    LoadOptions,
)


@click.command("pace", cls=SectionedCommand, sections=SECTIONS, epilog=EXAMPLES)
@BUNDLE
@options_of(PaceGoal)
@click.option(
    "--runs", type=click.IntRange(1, 10_000), default=30, show_default=True, help="Number of paced runs to measure."
)
@click.option(
    "-o",
    "--output",
    type=OUTPUT_FILE,
    metavar="FILE.json",
    help="Write the plan to a file, for `nndeploy run --pace-plan`.",
)
@click.option("--estimate", is_flag=True, help="Predict the plan from operators and shapes without running the bundle.")
@click.option(
    "--target", type=BOX, metavar="TARGET", help="Target of --estimate, by name or target file. Default: this machine."
)
@click.option("--all", "shows_all", is_flag=True, help=f"Show every operator, not just the {SHOWN} slowest.")
@options_of(LoadOptions)
@click.option("--html", "page", type=OUTPUT_FILE, help="Also write an HTML page with charts to this file.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON on standard output.")
def pace(
    bundle: Path,
    runs: int,
    output: Path | None,
    estimate: bool,
    target: str | None,
    shows_all: bool,
    page: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Show how a BUNDLE would be paced on this machine.

    Reports how long each operator takes, how long a run sleeps after it, the load before and after, and the resulting
    latency. The bundle must have been compiled with --pace and contain a sample input, which is run. With --estimate
    nothing is run; delays are relative if the target file does not say how fast the target is.
    """
    from nndeploy.cli.pace_page import pace_page
    from nndeploy.errors import UsageError
    from nndeploy.files.page import write_page

    goal, num_shown = goal_of(options), None if shows_all else SHOWN
    if estimate:
        if output is not None or page is not None:
            raise UsageError(
                "--estimate measures nothing, so there is no plan to write or chart", hint="omit one of them"
            )
        _estimate(bundle, goal, target, num_shown, as_json=as_json)
        return
    if target is not None:
        raise UsageError("--target is for --estimate", hint="without it the plan is for this machine")
    if goal is None:
        raise UsageError(f"a plan needs one of {GRANTS}", hint="for example --cpu-limit 50%")
    found = _measured(bundle, goal, options_given(LoadOptions, options), runs, output)
    if page is not None:
        drawn = pace_page(found.model, found.plan, found.pairs, found.loads, found.achieved, has_slice=found.has_slice)
        write_page(page, drawn)
    if as_json:
        _print_json(bundle, found)
    else:
        _print(found, num_shown)


@dataclasses.dataclass(frozen=True)
class _Measured:
    """A plan, and what runs by it achieved: as figures and as text."""

    model: str
    plan: list[PlannedPoint]
    pairs: list[PlannedPair]
    loads: "Loads"
    achieved: "Achieved"
    figures: dict[str, Any]
    text: str
    notes: Sequence[str]
    has_slice: bool


def _measured(bundle: Path, goal: PaceGoal, how: LoadOptions, runs: int, output: Path | None) -> _Measured:
    """Runs a bundle's sample by a plan, which is also written to `output` where that is asked for."""
    from nndeploy.bundle.reader import open_bundle
    from nndeploy.cli.run_view import pace_text, pace_to_json
    from nndeploy.errors import UsageError
    from nndeploy.pacing.achieved import achieved

    with open_bundle(bundle) as opened:
        goldens, model = opened.manifest.goldens, opened.manifest.model_name
        inputs = opened.values(goldens[0].inputs) if goldens else None
    if inputs is None:
        raise UsageError(
            "the bundle contains no sample input to run", where=str(bundle), hint="compile it with --goldens 1"
        )
    with load(bundle, how, pace=goal) as program:
        check_pace(program, bundle)
        pacer = program.pacer
        assert pacer is not None
        for _ in range(runs):
            program.run(inputs)
        loads, found = pacer.loads(), achieved(pacer.records)
        assert loads is not None  # a sample was run without delays before
        assert found is not None
        if output is not None:
            write_plan(program, output)
        return _Measured(
            model, pacer.plan(), pacer.planned_pairs(), loads, found, pace_to_json(pacer), pace_text(pacer),
            list(pacer.notes), pacer.has_slice,
        )  # fmt: skip


def _print_json(bundle: Path, found: _Measured) -> None:
    from nndeploy.cli.load_view import loads_to_json

    points = [{"pair": edge(one.name, one.followed_by), **dataclasses.asdict(one)} for one in found.plan]
    listed = {"points": points, "pairs": [dataclasses.asdict(pair) for pair in found.pairs]}
    print_json({"bundle": str(bundle), **found.figures, "load_curves": loads_to_json(found.loads), **listed})


def _print(found: _Measured, num_shown: int | None) -> None:
    from nndeploy.cli.load_view import print_loads

    named = [(edge(point.name, point.followed_by, SHOWN_READERS), point) for point in found.plan]
    _print_plan(named, found.achieved.cap_ms, num_shown)
    for pair in found.pairs:
        if pair.is_preset:
            print_line(f"set: {pair.pair} sleeps {ms_text(pair.delay_us / 1e3)}")
    for note in found.notes:
        print_line(note)
    print_loads(found.loads)
    for line in found.text.splitlines():
        print_line(line.removeprefix("nndeploy: "))


def _print_plan(named: Sequence[tuple[str, PlannedPoint]], budget_ms: float, num_shown: int | None) -> None:
    """Prints the longest operators, each with the one behind it; all of them, in order, where no number is said."""
    work_ms, sleep_ms = (
        sum(values) / 1e3 for values in zip(*((one.amount_us, one.delay_us) for _, one in named), strict=True)
    )
    work_and_sleep = f"{ms_text(work_ms)} of work and {ms_text(sleep_ms)} of sleep"
    print_line(f"{len(named)} points, {work_and_sleep} in {ms_text(budget_ms)}")
    longest = sorted(named, key=lambda one: -one[1].amount_us)[:num_shown] if num_shown else named
    print_table(
        f"the {len(longest)} longest operators" if num_shown else "operators",
        ("edge", "us", "share", "parts", "sleep after it, us"),
        (
            (
                edge,
                f"{one.amount_us:.0f}",
                f"{one.amount_us / 10 / work_ms:.1f}%",
                str(one.parts),
                f"{one.delay_us:.0f}",
            )
            for edge, one in longest
        ),
        right=("us", "share", "parts", "sleep after it, us"),
    )


def _estimate(bundle: Path, goal: PaceGoal | None, target: str | None, num_shown: int | None, *, as_json: bool) -> None:
    from nndeploy.cli.pace_estimate import pace_estimate
    from nndeploy.target.known_targets import target_of
    from nndeploy.target.target import host_target

    check_policy_of_row(goal)
    box = host_target() if target is None else target_of(target)
    pace_estimate(bundle, goal, box, num_shown, as_json=as_json)
