# SPDX-License-Identifier: Apache-2.0
"""`nndeploy pace`: the plan by which a bundle would be paced on this machine, and what it achieves on its sample."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nndeploy.cli.commands.loading import BUNDLE, load
from nndeploy.cli.console import columns_of_terminal, print_json, print_line, print_table, warn
from nndeploy.cli.options.help_sections import SectionedCommand
from nndeploy.cli.options.option_fields import options_given, options_of, sections_of
from nndeploy.cli.options.output_file import OUTPUT_FILE
from nndeploy.cli.options.pace_options import GRANTS, MORE, goal_of
from nndeploy.cli.options.quiet_option import QUIET
from nndeploy.cli.options.value_types import BOX
from nndeploy.pacing.plan.goal import PaceGoal, check_policy_of_row
from nndeploy.runtime.load_options import LoadOptions
from nndeploy.values.amounts import ms_text
from nndeploy.values.types import Value

if TYPE_CHECKING:
    from nndeploy.bundle.reader import Bundle
    from nndeploy.pacing.plan.load_curve import Loads
    from nndeploy.pacing.run.achieved import Achieved
    from nndeploy.pacing.run.paced_program import PacedProgram
    from nndeploy.pacing.run.pacer import Pacer
    from nndeploy.runtime.program import Program

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
@QUIET
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
    from nndeploy.errors import CheckError, UsageError
    from nndeploy.pacing.show.missed_goal import missed_by_runs

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
    inputs = _sample(bundle)
    with load(bundle, options_given(LoadOptions, options), pace=goal) as program:
        pacing = _run(program, inputs, runs)
        for line in pacing.warnings:
            warn(line)
        if output is not None:
            _write_plan(output, pacing, program.bundle)
        if page is not None:
            _write_page(page, program.manifest.model_name, pacing.pacer)
        if as_json:
            _print_json(bundle, pacing.pacer)
        else:
            _print(pacing.pacer, num_shown)
        if options["strict"] and (missed := missed_by_runs(pacing.pacer)):
            raise CheckError(missed, where=str(bundle), hint=MORE)


def _sample(bundle: Path) -> Mapping[str, Value]:
    from nndeploy.bundle.reader import open_bundle
    from nndeploy.errors import UsageError

    with open_bundle(bundle) as opened:
        if goldens := opened.manifest.goldens:
            return opened.values(goldens[0].inputs)
    raise UsageError(
        "the bundle contains no sample input to run", where=str(bundle), hint="compile it with --goldens 1"
    )


def _run(program: "Program", inputs: Mapping[str, Value], runs: int) -> "PacedProgram":
    from nndeploy.pacing.run.paced_program import PacedProgram

    program.pacing.check(program.path)
    for _ in range(runs):
        program.run(inputs)
    assert isinstance(program.pacing, PacedProgram)
    return program.pacing


def _write_plan(path: Path, pacing: "PacedProgram", bundle: "Bundle") -> None:
    from nndeploy.files.named_outputs import write_output
    from nndeploy.pacing.plan.plan_file import plan_file_to_json

    text = plan_file_to_json(pacing.plan_file(bundle))
    write_output(path, lambda file: file.write(text))


def _write_page(path: Path, model: str, pacer: "Pacer") -> None:
    from nndeploy.files.page import write_page
    from nndeploy.pacing.show.page import pace_page

    loads, found = _achieved(pacer)
    write_page(path, pace_page(model, pacer.plan(), pacer.planned_pairs(), loads, found, has_slice=pacer.has_slice))


def _achieved(pacer: "Pacer") -> "tuple[Loads, Achieved]":
    from nndeploy.pacing.run.achieved import achieved

    loads, found = pacer.loads(), achieved(pacer.records)
    assert loads is not None  # a sample was run without delays before
    assert found is not None
    return loads, found


def _print_json(bundle: Path, pacer: "Pacer") -> None:
    from nndeploy.pacing.show.achieved_text import run_to_json
    from nndeploy.pacing.show.load_text import loads_to_json
    from nndeploy.pacing.show.plan_text import edge

    points = [{"pair": edge(one.name, one.followed_by), **dataclasses.asdict(one)} for one in pacer.plan()]
    listed = {"points": points, "pairs": [dataclasses.asdict(pair) for pair in pacer.planned_pairs()]}
    loads, _ = _achieved(pacer)
    print_json({"bundle": str(bundle), **run_to_json(pacer), "load_curves": loads_to_json(loads), **listed})


def _print(pacer: "Pacer", num_shown: int | None) -> None:
    from nndeploy.pacing.show.achieved_text import run_lines
    from nndeploy.pacing.show.load_text import loads_table
    from nndeploy.pacing.show.plan_text import plan_line, plan_table

    plan, (loads, found) = pacer.plan(), _achieved(pacer)
    print_line(plan_line(plan, found.cap_ms))
    print_table(*plan_table(plan, num_shown))
    for pair in pacer.planned_pairs():
        if pair.is_preset:
            print_line(f"set: {pair.pair} sleeps {ms_text(pair.delay_us / 1e3)}")
    for note in pacer.notes:
        print_line(note)
    print_table(*loads_table(loads, columns_of_terminal()))
    for line in run_lines(pacer):
        print_line(line.removeprefix("nndeploy: "))


def _estimate(bundle: Path, goal: PaceGoal | None, target: str | None, num_shown: int | None, *, as_json: bool) -> None:
    from nndeploy.pacing.show.estimate import estimate_lines, estimate_table, estimated_plan
    from nndeploy.target.known_targets import target_of
    from nndeploy.target.target import host_target

    check_policy_of_row(goal)
    found = estimated_plan(bundle, goal, host_target() if target is None else target_of(target))
    if as_json:
        print_json(found.report)
        return
    for line in estimate_lines(found):
        print_line(line)
    print_table(*estimate_table(found, num_shown))
