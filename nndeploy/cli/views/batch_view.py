# SPDX-License-Identifier: Apache-2.0
"""What a person sees of a batch: on a terminal what runs, drawn again; else a line for each job that ended.

Progress is on standard error, tables of the plan and of failures on standard output.
"""

import shlex
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from nndeploy.cli.console import draws_progress, err, print_json, print_line, print_table, tell
from nndeploy.errors import one_line
from nndeploy.farm.job import Job
from nndeploy.farm.outcome import Outcome
from nndeploy.farm.planned import AFTER, BUILD, BUILT, FAILED, HIT, Planned
from nndeploy.farm.run_batch import Events
from nndeploy.files.named_outputs import write_output
from nndeploy.values.amounts import counted, size_text

if TYPE_CHECKING:
    from nndeploy.farm.batch_flow import Ended, OpenedBatch

STATES = {
    BUILD: "build", HIT: "in the cache", BUILT: "built", FAILED: "failed before", AFTER: "same as another job",
}  # fmt: skip
MAX_SHOWN, MAX_REASON, MAX_DIFFERENCES = 12, 160, 4
DRAWN_A_SECOND = 4
KEY_DIGITS = 12


class BatchView(Events):
    """Shows a batch while it runs, inside a `with` block."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._total = 0
        self._left_seconds: dict[str, float] = {}
        self._running: dict[str, tuple[float, str]] = {}
        self._counts: Counter[str] = Counter()
        self._begun = set[str]()
        self._num_not_begun = 0
        self._began = time.monotonic()
        self._live: Any = None

    def __enter__(self) -> Self:
        if draws_progress():
            from rich.live import Live

            self._live = Live(
                console=err(), refresh_per_second=DRAWN_A_SECOND, get_renderable=self._drawn, transient=True
            )
            self._live.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._num_not_begun:
            self._print(f"{self._num_not_begun:,} not begun")
        if self._live is not None:
            self._live.__exit__(*error)

    def planned(self, jobs: Sequence[Planned]) -> None:
        self._total = len(jobs)
        self._left_seconds = {one.job.id: one.job.estimate for one in jobs if one.state in (BUILD, HIT)}
        counts = Counter(one.state for one in jobs)
        shown = ", ".join(f"{counts[state]} {text}" for state, text in STATES.items() if counts[state])
        self._print(f"{counted(len(jobs), 'job')}: {shown}")

    def started(self, job: Job, number: int) -> None:
        with self._lock:
            self._begun.add(job.id)
            self._running[job.id] = (time.monotonic(), f"try {number}" if number > 1 else "")

    def stage(self, job: str, stage: str, detail: str) -> None:
        with self._lock:
            if job in self._running:
                self._running[job] = (self._running[job][0], f"{stage}: {detail}" if detail else stage)

    def finished(self, outcome: Outcome) -> None:
        with self._lock:
            self._running.pop(outcome.job, None)
            if outcome.final:
                self._left_seconds.pop(outcome.job, None)
                self._counts[outcome.status] += 1
            done = self._counts.total()
        if outcome.status == "cancelled" and outcome.job not in self._begun:
            self._num_not_begun += 1
            return
        if outcome.status == "hit" and self._live is None and not outcome.seconds:
            return  # a thousand lines of what is there already help nobody
        reason = f": {outcome.reason}" if outcome.is_failure else ""
        again = "" if outcome.final else " (retrying)"
        took = f" {outcome.seconds:.1f} s" if outcome.job in self._begun else ""
        text = f"[{done}/{self._total}] {outcome.status} {outcome.job}{took}{again}{reason}"
        self._print(text if len(text) <= 2 * MAX_REASON else text[: 2 * MAX_REASON] + "...")

    def _print(self, text: str) -> None:
        if self._live is not None:
            from rich.text import Text

            self._live.console.print(Text(one_line(text)))
        else:
            tell(one_line(text))

    def _drawn(self) -> Any:
        from rich.text import Text

        with self._lock:
            running = sorted(self._running.items(), key=lambda one: one[1][0])
            counts, now = dict(self._counts), time.monotonic()
            began_at = {job: began for job, (began, _) in running}
            left = sum(max(0.0, rest - (now - began_at.get(job, now))) for job, rest in self._left_seconds.items())
        lines = [
            f"  {one_line(job)}  {now - began:5.0f} s  {one_line(doing)}" for job, (began, doing) in running[:MAX_SHOWN]
        ]
        if len(running) > MAX_SHOWN:
            lines.append(f"  and {len(running) - MAX_SHOWN} more")
        done = sum(counts.values())
        shown = ", ".join(f"{number} {status}" for status, number in counts.items())
        ahead = f", about {_duration(left / len(running))} left" if running and left else ""
        head = f"{done} of {self._total} jobs in {_duration(now - self._began)}{ahead}: {shown or 'none finished yet'}"
        return Text("\n".join([head, *lines]))


def print_plan(opened: "OpenedBatch", jobs: Sequence[Planned], *, as_json: bool) -> None:
    """Prints what a batch would do, in the order in which it would."""
    built = {one.job.id for one in jobs if one.state in (BUILT, FAILED)}
    never = {job: reason for job, reason in opened.why_no_worker().items() if job not in built}
    if as_json:
        told = [_row(one, never.get(one.job.id, "")) for one in jobs]
        print_json({"plan": opened.jobs.digest, "slots": opened.slots.reason, "jobs": told})
        return
    rows = [
        (
            one.job.id,
            one.key[:KEY_DIGITS],
            "no worker" if one.job.id in never else STATES[one.state],
            never.get(one.job.id) or _why(one),
            f"{one.job.estimate:.0f} s" if one.job.estimate and one.job.id not in never else "",
        )
        for one in jobs
    ]
    print_table(counted(len(jobs), "job"), ("job", "key", "", "why", "estimate"), rows, right=("estimate",))
    to_build = sum(one.job.estimate for one in jobs if one.state == BUILD and one.job.id not in never)
    print_line(f"{opened.slots.reason}; about {_duration(to_build / opened.slots.num_jobs)}")


def print_why(one: Planned, *, as_json: bool) -> None:
    """Prints what is known of one job."""
    if as_json:
        print_json({"job": _row(one)})
        return
    print_line(f"{one.job.id}: {STATES[one.state]}")
    print_line(f"key {one.key or 'none: compile it to see why'}")
    if one.differs is None and one.state == BUILD:
        print_line("this model has not been compiled before")
    for name in one.differs or ():
        print_line(f"differs from the nearest compile of this model: {name}")
    if one.known is not None and one.known.is_failure:
        print_line(f"{one.known.status}: {one.known.reason}")
    print_line(f"writes {one.job.output}")


def write_commands(opened: "OpenedBatch", form: str, output: Path | None) -> None:
    """Writes the commands of the jobs that are to be built, and tells how they are run."""
    from nndeploy.farm.batch_flow import emitted
    from nndeploy.farm.emit.forms import FORMS

    text, number = emitted(opened, form)
    if output is None:
        print(text, end="")
    else:
        write_output(output, lambda file: file.write(text.encode()))
    told = f"{number} of {counted(len(opened.jobs.jobs), 'job')} to be built"
    if output is not None and number and (run_with := FORMS[form].run_with):
        told += f": {run_with.format(file=shlex.quote(str(output)))}"
    tell(one_line(told))


def print_summary(ended: "Ended") -> None:
    """Prints what failed, what gates found, and how many of each there are."""
    batch = ended.batch
    if batch.failures:
        rows = [(one.job, one.status, _cut(one.reason), one.repeat) for one in batch.failures]
        print_table("failed", ("job", "", "why", "again with"), rows)
    if found := [(one.job, one.gate, one.text) for one in batch.told]:
        print_table("gates and warnings", ("job", "gate", "finding"), found)
    counts = batch.counts
    shown = ", ".join(f"{number} {status}" for status, number in counts.items() if number and status != "total")
    size = sum(one.size for one in batch.outcomes if one.is_good)
    print_line(
        f"{counted(counts['total'], 'job')} in {_duration(batch.seconds)}: {shown}; bundles of {size_text(size)}"
    )


def _row(one: Planned, no_worker: str = "") -> dict[str, Any]:
    return {
        "id": one.job.id, "key": one.key, "state": one.state, "estimate": one.job.estimate, "output": one.job.output,
        "differs": None if one.differs is None else list(one.differs), "no_worker": no_worker,
    }  # fmt: skip


def _why(one: Planned) -> str:
    if one.state == FAILED and one.known is not None:
        return _cut(one.known.reason)
    if one.state != BUILD:
        return ""
    if not one.key:
        return "no key: compile it to see why"
    if one.differs is None:
        return "first compile of this model"
    names = ", ".join(one.differs[:MAX_DIFFERENCES]) + (", .." if len(one.differs) > MAX_DIFFERENCES else "")
    return f"differs: {names}" if names else "no longer in the cache"


def _cut(text: str) -> str:
    return text if len(text) <= MAX_REASON else text[: MAX_REASON - 3] + "..."


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}" if minutes else f"{seconds:.1f} s"
