# SPDX-License-Identifier: Apache-2.0
"""What a person sees of a compile: progress and warnings on standard error, tables at the end on standard output."""

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING

from rich.text import Text

from nndeploy.bundle.report import WHOLE_SCOPES, CheckReport, Report
from nndeploy.cli.console import draws_progress, err, print_line, print_table, tell, warn
from nndeploy.cli.views.bundle_contents import print_contents
from nndeploy.cli.views.candidate_lines import candidate_lines, shapes_line
from nndeploy.cli.views.places_view import print_places
from nndeploy.cli.views.progress import Heartbeat
from nndeploy.cli.views.quantisation_view import print_quantisation
from nndeploy.cli.views.refusal_tables import WHY_NOT, print_nodes, refusal_lines
from nndeploy.cli.views.targets_view import print_targets
from nndeploy.compiler.job import Onlooker
from nndeploy.errors import one_line
from nndeploy.values.amounts import counted

if TYPE_CHECKING:
    from nndeploy.compiler.cached_compile import CacheNews

MAX_REASON = 160
MAX_DIFFERENCES = 5
JUDGED = ("limits", "rows")
"""Rules whose notes hold figures of one output, which the report tells and the table does not."""
NOT_COMPARED = "not compared"
"""What the table says; the reasons stand below it, because many submodels have the same."""


class CompileProgress(Onlooker):
    """A line for each stage when it is done; what it is at: drawn again on a terminal, else told now and then.

    `stages` are the names of those that are to come, in their order.
    """

    def __init__(self, stages: Sequence[str] = ()) -> None:
        self._stages = stages
        self._stage = self._doing = ""
        self._began = self._began_all = time.perf_counter()
        self._status = err().status(_Now(self)) if draws_progress() else None
        self._heartbeat = Heartbeat("starting") if self._status is None else None
        self._stack = ExitStack()

    def __enter__(self) -> "CompileProgress":
        for one in (self._status, self._heartbeat):
            if one is not None:
                self._stack.enter_context(one)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()
        if kind is None:
            self._finish_stage()

    def event(self, stage: str, detail: str) -> None:
        """Shows that `stage` is at `detail`; an empty detail begins a stage."""
        if not detail:
            self._finish_stage()
            self._stage, self._began = stage, time.perf_counter()
        self._doing = self._number() + (f"{self._stage}: {detail}" if detail else stage)
        if self._heartbeat is not None:
            (self._heartbeat.more if detail else self._heartbeat.now)(self._doing)

    def _number(self) -> str:
        if self._stage not in self._stages:
            return ""
        return f"stage {self._stages.index(self._stage) + 1} of {len(self._stages)}, "

    def now(self) -> str:
        """Returns what the compile is at, with the seconds of this stage and of all until now."""
        now = time.perf_counter()
        if not self._stage:
            return f"starting ({now - self._began_all:.0f} s)"
        return f"{self._doing} ({now - self._began:.0f} s, {now - self._began_all:.0f} s in all)"

    def _finish_stage(self) -> None:
        if self._stage:
            tell(f"{self._stage:<16}{time.perf_counter() - self._began:7.2f} s")
            if self._heartbeat is not None:
                self._heartbeat.spoke()
        self._stage = ""


class _Now:
    """A text that is made anew whenever it is drawn, so that its seconds go on."""

    def __init__(self, progress: CompileProgress) -> None:
        self._progress = progress

    def __rich__(self) -> Text:
        return Text(one_line(self._progress.now()), no_wrap=True, overflow="ellipsis")


def print_report(report: Report, *, verbose: bool, dry_run: bool) -> None:
    """Prints the tables of a report for a person."""
    _print_chain(report, report.model, verbose)
    for chain in report.target_chains if verbose else report.used_chains:
        _print_chain(report.of_chain(chain), f"{report.model} for {chain.target}", verbose)
        if chain.ranges:
            print_line(sizes_of_chain(chain.ranges))
    print_quantisation(report, verbose=verbose)
    print_targets(report)
    print_places(report.places)
    for line in candidate_lines(report):
        print_line(line)
    if report.shapes_of_pipeline:
        shapes = "; ".join(f"{name}={shape}" for name, shape in report.shapes_of_pipeline.items())
        print_line(f"compiled for the sizes that the pipeline makes: {shapes} (--shape keeps others)")
    changed = ", ".join(f"{p.name} {p.count}" for p in report.passes if p.count)
    print_line(f"passes: {changed or 'nothing to change'}")
    if not dry_run:
        print_line(_error_line(report))
        print_line(f"wrote {report.bundle} ({report.bundle_bytes:,} bytes)")
        print_contents(report.contents, verbose=verbose)


def sizes_of_chain(ranges: Mapping[str, str]) -> str:
    """Returns which sizes a chain was built for that takes not all that the program takes."""
    sizes = ", ".join(f"{name} {limits}" for name, limits in ranges.items())
    return f"for the GPU: {sizes}; other sizes run on the portable chain (--shape gives other ranges)"


def cache_line(cache: "CacheNews") -> str:
    """Returns in a line how a bundle was come by, "" where no cache was asked."""
    if cache.status == "hit":
        place = f"cache {cache.origin}" if cache.origin else "cache"
        return f"reused from the {place} ({cache.key:.16})"
    if cache.status == "off" or cache.differs is None:
        return ""
    shown = ", ".join(cache.differs[:MAX_DIFFERENCES]) + (", .." if len(cache.differs) > MAX_DIFFERENCES else "")
    return f"rebuilt; changed since the last compile of this model: {shown or 'files of the cache'}"


def print_warnings(report: Report) -> None:
    """Prints what a compile warns of on standard error, a line each."""
    for line in report.all_warnings():
        warn(line)


def _print_chain(report: Report, title: str, verbose: bool) -> None:
    _print_submodels(report, f"{title}: {counted(len(report.submodels), 'submodel')}")
    if verbose:
        print_nodes(report, "nodes", MAX_REASON)
    for reason in dict.fromkeys(
        check.note
        for check in report.checks
        if check.note and check.scope not in WHOLE_SCOPES and check.rule not in JUDGED
    ):
        print_line(reason)


def _print_submodels(report: Report, title: str) -> None:
    rows = [
        (
            submodel.id,
            submodel.backend,
            str(submodel.num_nodes),
            f"{submodel.share:.1%}",
            _max_error([c for c in report.checks if c.scope == submodel.id and c.backend == submodel.backend]),
            refusal_lines(submodel.refusals, MAX_REASON),
        )
        for submodel in report.submodels
    ]
    columns = ("submodel", "backend", "nodes", "compute", "max error", WHY_NOT)
    print_table(title, columns, rows, right=("nodes", "compute"))


def _max_error(checks: list[CheckReport]) -> str:
    figures = [check.max_abs for check in checks if check.max_abs is not None]
    notes = [check.note for check in checks if check.note]
    return f"{max(figures):.2g}" if figures else NOT_COMPARED if notes else "exact" if checks else "-"


def _error_line(report: Report) -> str:
    whole = [check for check in report.checks if check.scope == "whole"]
    if not whole:
        return "error against the original: not compared (see the warnings)"
    cosines = [check.cosine for check in whole if check.cosine is not None]
    at = f" ({shapes_line(report.shapes)})" if len(set(report.shapes)) > 1 else ""
    original = "original" if report.quantisation is None else "quantised model"
    text = f"error against the {original} on {report.samples_text}{at}: max abs {_max_error(whole)}"
    return text + (f", cosine {min(cosines):.7f}" if cosines else "")
