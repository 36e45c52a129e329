# SPDX-License-Identifier: Apache-2.0
"""What all reports of a batch tell: its outcomes in one order, their counts, and what gates found."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nndeploy.farm.outcome import STATUSES, Outcome
from nndeploy.values.amounts import counted

GATES = (
    "fails-now",
    "vanished",
    "slowdown",
    "error-growth",
    "size-growth",
    "min-share",
    "share-drop",
    "idle-gpu",
    "strict-gates",
)
"""What a finding may be of that fails a batch."""
NOT_JUDGED = "not-judged"
"""The gate of a finding that says what could not be compared, and why; "strict-gates" where that fails the batch."""

WARNING = "warning"
"""In the place of a gate: what a compile warned of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a gate found of one job, with the value before and now; `text` says it in a line.

    `before` is None where the gate needs none, `now` where the job is gone, `limit` where there is none; it is in
    the unit of its option in `Gates`. One of the gate `NOT_JUDGED` names the first of the jobs that it is of.
    """

    gate: str
    job: str
    model: str
    target: str
    variant: str
    text: str
    before: float | str | None = None
    now: float | str | None = None
    limit: float | None = None

    @property
    def is_failure(self) -> bool:
        """Whether it fails the batch."""
        return self.gate not in (NOT_JUDGED, WARNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A batch that ended; `plan` is the hash of its plan, `started` a time in UTC as ISO 8601 writes it.

    Outcomes come in any order and stand in that of their models, variants and targets.
    """

    plan: str
    started: str
    seconds: float
    outcomes: tuple[Outcome, ...]
    findings: tuple[Finding, ...] = ()

    def __post_init__(self) -> None:
        in_order = sorted(self.outcomes, key=lambda one: (one.model, one.variant, one.target, one.job))
        object.__setattr__(self, "outcomes", tuple(in_order))

    def with_kept(self, last: "Batch") -> "Batch":
        """Returns the batch with the rows of `last` in the place of skipped ones, and what gates found of those."""
        rows = {one.job: one for one in last.outcomes}
        kept = {one.job for one in self.outcomes if one.status == "skipped" and one.job in rows}
        findings = [one for one in last.findings if one.job in kept]
        return replace(
            self,
            outcomes=tuple(rows[one.job] if one.job in kept else one for one in self.outcomes),
            findings=(*self.findings, *findings),
        )

    @property
    def counts(self) -> dict[str, int]:
        """How many jobs have each status, in the order of `STATUSES`, and how many there are in all ("total")."""
        found = Counter(one.status for one in self.outcomes)
        return {**{status: found[status] for status in STATUSES}, "total": len(self.outcomes)}

    @property
    def failures(self) -> list[Outcome]:
        """The jobs that were tried and have no bundle."""
        return [one for one in self.outcomes if one.is_failure]

    @property
    def failed_gates(self) -> list[Finding]:
        """What gates found that fails the batch."""
        return [finding for finding in self.findings if finding.is_failure]

    @property
    def notes(self) -> list[Finding]:
        """What could not be judged, and what compiles warn of: a line for all jobs that say the same."""
        said: dict[str, list[Outcome]] = {}
        for one in self.outcomes:
            for line in one.warnings:
                said.setdefault(line, []).append(one)
        failing = {finding.text for finding in self.failed_gates}
        warned = [
            finding_of(jobs[0], WARNING, _with_others(text, jobs)) for text, jobs in said.items() if text not in failing
        ]
        return [*(finding for finding in self.findings if not finding.is_failure), *warned]

    @property
    def told(self) -> list[Finding]:
        """All that reports tell beside what failed: gates, then notes."""
        return [*self.failed_gates, *self.notes]

    @property
    def targets(self) -> list[str]:
        """The names of the targets, sorted."""
        return sorted({one.target for one in self.outcomes})


def finding_of(one: Outcome, gate: str, text: str, **values: Any) -> Finding:
    """Returns what a gate found of the job of an outcome."""
    return Finding(gate=gate, job=one.job, model=one.model, target=one.target, variant=one.variant, text=text, **values)


def _with_others(text: str, jobs: Sequence[Outcome]) -> str:
    return text if len(jobs) == 1 else f"{text} (and {counted(len(jobs) - 1, 'other job')})"


Grid = dict[tuple[str, str], dict[str, Outcome]]


def grid_of(outcomes: Iterable[Outcome]) -> Grid:
    """Returns (model, variant) -> target -> its outcome, in the order of the outcomes."""
    grid: Grid = {}
    for one in outcomes:
        grid.setdefault((one.model, one.variant), {})[one.target] = one
    return grid
