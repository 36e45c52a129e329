# SPDX-License-Identifier: Apache-2.0
"""`nndeploy batch`: many models for many targets, from a fleet file; what was built is not built again."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from nndeploy.cli.options.help_sections import SectionedCommand
from nndeploy.cli.options.option_fields import options_given, options_of, sections_of
from nndeploy.cli.options.output_file import OUTPUT_FILE
from nndeploy.cli.options.quiet_option import QUIET
from nndeploy.cli.options.value_types import TOML_FILE
from nndeploy.cli.standard_streams import effect_is_made
from nndeploy.errors import UsageError
from nndeploy.farm.emit.forms import FORMS
from nndeploy.farm.options import BatchOptions
from nndeploy.farm.reports.gates import Gates

EXAMPLES = """\b
Examples:
  nndeploy batch fleet.toml --plan                       what would be built, and why
  nndeploy batch fleet.toml
  nndeploy batch fleet.toml -j 4 --filter 'model=yolo* target=rtx*'
  nndeploy batch fleet.toml --shard 3/8 --fail-fast
  nndeploy batch fleet.toml --against last-night/batch.json --max-slowdown 5%
  nndeploy batch fleet.toml --retry-failed
  nndeploy batch fleet.toml --cluster tls://farm.example:8786 --certificates certs
  nndeploy batch fleet.toml --emit slurm -o jobs.sh      for a job engine
  nndeploy batch fleet.toml --collect                    write the reports; builds nothing
"""
SECTIONS = sections_of(
    {"Plan": ("plan", "explain"), "Other job engines": ("emit", "output", "collect")},
    BatchOptions,
    Gates,
    {"Output": ("as_json",)},
)


@click.command("batch", cls=SectionedCommand, sections=SECTIONS, epilog=EXAMPLES)
@click.argument("fleet", type=TOML_FILE)
@click.option(
    "--plan",
    is_flag=True,
    help="Show every job with its cache key, whether it is already built and, if not, why; build nothing.",
)
@click.option(
    "--explain",
    metavar="JOB",
    help="Show what is known about one job and how it differs from earlier builds; build nothing.",
)
@click.option(
    "--emit",
    type=click.Choice(FORMS),
    help="Write the commands of the jobs to build, for another job engine; `jsonl` suits any engine.",
)
@click.option("-o", "--output", type=OUTPUT_FILE, help="Output file of --emit. Default: standard output.")
@click.option(
    "--collect",
    is_flag=True,
    help="Collect the bundles of jobs built elsewhere and write the reports; build nothing.",
)
@options_of(BatchOptions)
@options_of(Gates)
@QUIET
@click.option("--json", "as_json", is_flag=True, help="Print the batch or plan as JSON on standard output.")
def batch(
    fleet: Path,
    plan: bool,
    explain: str | None,
    emit: str | None,
    output: Path | None,
    collect: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Compile many models for many targets, as listed in a FLEET file.

    Jobs already built by an earlier batch or compile are not built again. An interrupted batch resumes where it
    stopped.
    """
    from nndeploy.cli.commands.batch_events import EventFile, heard_by
    from nndeploy.cli.console import print_json, warn
    from nndeploy.cli.views.batch_view import BatchView, print_plan, print_summary, print_why, write_commands
    from nndeploy.farm.batch_flow import opened_batch, planned_batch, why_of
    from nndeploy.farm.reports.batch_json import batch_to_data

    _check_together(plan=plan, explain=explain is not None, emit=emit is not None, collect=collect)
    if emit is None and output is not None:
        raise UsageError(
            "-o is the output file of --emit, which is missing", hint="the fleet file says where bundles go"
        )
    if emit is not None and as_json:
        raise UsageError("--emit and --json exclude each other", hint="--emit jsonl is for programs")
    asked = options_given(BatchOptions, options)
    gates = options_given(Gates, options)
    with opened_batch(fleet, asked, gates, warn) as opened:
        if explain is not None:
            print_why(why_of(opened, explain), as_json=as_json)
            return
        if plan:
            print_plan(opened, planned_batch(opened), as_json=as_json)
            return
        if emit is not None:
            write_commands(opened, emit, output)
            return
        if collect:
            ended = opened.collect(os.environ, datetime.now(UTC))
        else:
            with BatchView() as view, EventFile(asked.events) as events:
                ended = opened.run(heard_by(view, events), os.environ, datetime.now(UTC))
        effect_is_made()
    if as_json:
        print_json(batch_to_data(ended.batch))
    else:
        print_summary(ended)
    ended.raise_if_failed()


def _check_together(**asked: bool) -> None:
    given = [f"--{name}" for name, is_given in asked.items() if is_given]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} exclude each other")
