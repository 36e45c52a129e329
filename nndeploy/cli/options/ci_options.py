# SPDX-License-Identifier: Apache-2.0
"""`--junit` and `--markdown`, and the block in which a command fills the report that they name.

    with ci_report("verify", bundle, options) as report:
        report.checks.append(...)

On GitHub the summary of the step is written too. What the block raises is raised after the reports are written; a
report that cannot be written is a warning then, else the error of the command.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click

from nndeploy.ci_reports.command_report import CommandReport
from nndeploy.ci_reports.step_summary import VARIABLE, append_summary
from nndeploy.cli.console import warn
from nndeploy.cli.options.option_fields import Command
from nndeploy.cli.options.output_file import OUTPUT_FILE
from nndeploy.errors import NndeployError
from nndeploy.files.named_outputs import write_output

CI_SECTION = {"Reports for CI": ("junit", "markdown")}
_JUNIT = click.option("--junit", type=OUTPUT_FILE, metavar="FILE.xml", help="Write the result as JUnit XML to a file.")
MARKDOWN = click.option(
    "--markdown", type=OUTPUT_FILE, metavar="FILE.md", help="Write the result as Markdown to a file."
)


def ci_options(command: Command) -> Command:
    """Adds the options that name reports."""
    return _JUNIT(MARKDOWN(command))


@contextmanager
def ci_report(command: str, subject: Path, options: Mapping[str, Any]) -> Iterator[CommandReport]:
    """Yields a report to be filled; writes it at the end, however the block ends, unless that was a signal.

    Raises:
        CannotCreateError, InputOutputError: the block went well, and a report cannot be written.
    """
    report = CommandReport(command=command, subject=str(subject), started=datetime.now(UTC))
    began = time.monotonic()
    try:
        yield report
    except NndeployError as err:
        report.error = err
        report.seconds = time.monotonic() - began
        for failure in _failures(report, options):
            warn(f"a report is not written: {failure}")
        raise
    report.seconds = time.monotonic() - began
    for failure in _failures(report, options):
        raise failure


def _failures(report: CommandReport, options: Mapping[str, Any]) -> list[NndeployError]:
    """Writes all reports; returns what kept any from being written."""
    writers: list[Callable[[], None]] = [
        partial(_write, path, text)
        for path, text in ((options["junit"], report.junit), (options["markdown"], report.markdown))
        if path is not None
    ]
    if summary := os.environ.get(VARIABLE):
        writers.append(partial(append_summary, Path(summary), report.markdown))
    failures = []
    for write in writers:
        try:
            write()
        except NndeployError as err:
            failures.append(err)
    return failures


def _write(path: Path, text: Callable[[], bytes]) -> None:
    write_output(path, lambda file: file.write(text()))
