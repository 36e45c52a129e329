# SPDX-License-Identifier: Apache-2.0
"""What a person sees of a compile: progress by stage on standard error, the tables at the end on standard output."""

import time
from collections.abc import Sequence
from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from nndeploy.report import WHOLE_SCOPES, Candidate, CheckReport, Report

MAX_REASON = 160
NOT_COMPARED = "not compared"
"""In the table; the reasons stand below it, as many submodels have the same."""


class CompileProgress:
    """A line for each stage: live on a terminal, plain otherwise."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._status = self._console.status("starting") if self._console.is_terminal else None
        self._stage = ""
        self._began = time.perf_counter()

    def __enter__(self) -> "CompileProgress":
        if self._status:
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._status:
            self._status.stop()
        if kind is None:
            self._finish_stage()

    def event(self, stage: str, detail: str) -> None:
        """Shows that `stage` is at `detail`; an empty detail begins a stage."""
        if not detail:
            self._finish_stage()
            self._stage, self._began = stage, time.perf_counter()
        if self._status:
            self._status.update(escape(f"{self._stage}: {detail}" if detail else stage))

    def _finish_stage(self) -> None:
        if self._stage:
            seconds = time.perf_counter() - self._began
            self._console.print(f"{self._stage:<16}{seconds:7.2f} s", markup=False)
        self._stage = ""


def print_report(report: Report, *, verbose: bool, dry_run: bool) -> None:
    """Prints the tables of a report for a person."""
    console = Console(highlight=False)
    _print_chain(console, report, report.model, verbose)
    for chain in report.target_chains:
        _print_chain(console, report.of_chain(chain), f"{report.model} for {chain.target}", verbose)
    for line in _measured(report):
        console.print(line, markup=False)
    changed = ", ".join(f"{p.name} {p.count}" for p in report.passes if p.count)
    console.print(f"passes: {changed or 'nothing to change'}", markup=False)
    if not dry_run:
        console.print(_error_line(report), markup=False)
        console.print(f"wrote {report.bundle} ({report.bundle_bytes:,} bytes)", markup=False)


def _print_chain(console: Console, report: Report, title: str, verbose: bool) -> None:
    count = len(report.submodels)
    console.print(_submodel_table(report, f"{title}: {count} submodel{'s' * (count != 1)}"))
    if verbose:
        console.print(_node_table(report))
    for reason in dict.fromkeys(
        check.note for check in report.checks if check.note and check.scope not in WHOLE_SCOPES
    ):
        console.print(reason, markup=False)
    for line in (*report.dropped, *report.warnings):
        console.print(f"warning: {line}", markup=False, style="yellow")


def _submodel_table(report: Report, title: str) -> Table:
    table = Table(title=escape(title), title_justify="left")
    for name in ("submodel", "backend", "nodes", "compute", "why no tier above took it", "max error"):
        table.add_column(name, justify="right" if name in ("nodes", "compute") else "left", overflow="fold")
    for submodel in report.submodels:
        reasons = "\n".join(f"{backend}: {_short(reason)}" for backend, reason in submodel.refusals.items())
        table.add_row(
            submodel.id,
            submodel.backend,
            str(submodel.num_nodes),
            f"{submodel.share:.1%}",
            escape(reasons or "-"),
            _max_error([c for c in report.checks if c.scope == submodel.id and c.backend == submodel.backend]),
        )
    return table


def _node_table(report: Report) -> Table:
    table = Table(title="nodes", title_justify="left")
    for name in ("node", "operator", "submodel", "backend", "compute", "why no tier above took it"):
        table.add_column(name, overflow="fold")
    for node in report.nodes:
        reasons = "\n".join(f"{backend}: {_short(reason)}" for backend, reason in node.refusals.items())
        row = (node.name, node.op, node.submodel, node.backend, f"{node.share:.2%}", reasons or "-")
        table.add_row(*(escape(text) for text in row))
    return table


def _short(reason: str) -> str:
    return reason if len(reason) <= MAX_REASON else reason[: MAX_REASON - 3] + "..."


def _max_error(checks: list[CheckReport]) -> str:
    figures = [check.max_abs for check in checks if check.max_abs is not None]
    notes = [check.note for check in checks if check.note]
    return f"{max(figures):.2g}" if figures else NOT_COMPARED if notes else "exact" if checks else "-"


def _measured(report: Report) -> list[str]:
    several = len(report.measured_shapes) > 1
    head = [f"measured at {_shapes(report.measured_shapes)}; geometric mean, then each:"] if several else []
    return head + [
        f"{'*' if candidate.chosen else ' '} {candidate.name:<28}{_milliseconds(candidate)}"
        + "".join(f"{ms:10.3f}" for ms in candidate.shape_ms if several)
        for candidate in report.candidates
    ]


def _milliseconds(candidate: Candidate) -> str:
    measured = "not measured" if candidate.median_ms is None else f"{candidate.median_ms:9.3f} ms"
    return f"{measured:>12}, {candidate.predicted_ms:9.3f} ms predicted"


def _shapes(shapes: Sequence[str]) -> str:
    """Returns the different ones of several shapes in a line."""
    return ", ".join(dict.fromkeys(shapes))


def _error_line(report: Report) -> str:
    whole = [check for check in report.checks if check.scope == "whole"]
    if not whole:
        return "error against the original: not compared (see the warnings)"
    cosines = [check.cosine for check in whole if check.cosine is not None]
    samples = len({check.sample for check in whole})
    at = f" ({_shapes(report.shapes)})" if len(set(report.shapes)) > 1 else ""
    text = f"error against the original on {samples} inputs{at}: max abs {_max_error(whole)}"
    return text + (f", cosine {min(cosines):.7f}" if cosines else "")
