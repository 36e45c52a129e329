# SPDX-License-Identifier: Apache-2.0
"""A batch as Markdown, for the summary of a CI job: failures first, then what gates found, counts, models by targets.

A name is anybody's: each stands in an element of code, in which every character that Markdown, HTML or a table might
take for its own is a numeric entity. GitHub refuses a summary of more than 1 MiB whole, so whole rows are left out, and
a line says how many.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from nndeploy.farm.outcome import Outcome
from nndeploy.farm.reports.batch import Batch, Finding, grid_of
from nndeploy.files.markdown_code import markdown_code
from nndeploy.values.amounts import counted, ms_text

MAX_BYTES = 1 << 20
"""What GitHub takes of one step."""
LINE_BYTES = 200
"""Room for each line that says what was left out."""
Item = TypeVar("Item")


def markdown(batch: Batch, max_bytes: int = MAX_BYTES) -> bytes:
    """Returns the text of a batch, of at most `max_bytes` where there is room for its head."""
    head = [f"## {_title(batch)}", "", *_counts(batch), ""]
    left = max_bytes - _size(head) - 3 * LINE_BYTES
    broken = _Part("### What failed", (), "failure", batch.failures, _failure)
    findings = _Part("### Gates and warnings", (), "finding", batch.told, _finding)
    table = _table(batch)
    # What failed may take half, gates half of the rest, and the table what is left of all.
    parts = []
    for part, share in ((broken, 0.5), (findings, 0.5), (table, 1.0)):
        lines = part.lines(int(left * share))
        left -= _size(lines)
        parts.append(lines)
    failed, found, grid = parts
    return "\n".join([head[0], "", *failed, *found, *head[2:], *grid]).encode()


def _title(batch: Batch) -> str:
    failed, gates = len(batch.failures), len(batch.failed_gates)
    verdict = f"{failed:,} failed" if failed else "none failed"
    found = f", {counted(gates, 'failed gate')}" if gates else ""
    return f"Batch: {counted(len(batch.outcomes), 'job')}, {verdict}{found}"


def _counts(batch: Batch) -> list[str]:
    counts = {status: count for status, count in batch.counts.items() if count and status != "total"}
    told = ", ".join(f"{count:,} {status}" for status, count in counts.items()) or "no jobs"
    return [f"{told}; {batch.seconds:,.0f} s."]


class _Part(Generic[Item]):
    """A part of the summary: a heading, what stands above its rows, and a row, of one or more lines, for each item."""

    def __init__(
        self, title: str, above: Sequence[str], what: str, items: Sequence[Item], row: Callable[[Item], str]
    ) -> None:
        self._above = [title, "", *above]
        self._what = what
        self._items = items
        self._row = row

    def lines(self, max_bytes: int) -> list[str]:
        """Returns as many whole rows as there is room for, and a line that says how many are left out."""
        if not self._items:
            return []
        left = max_bytes - _size(self._above) - 1
        rows: list[str] = []
        for item in self._items:
            row = self._row(item)
            left -= _size([row])
            if left < 0:
                break
            rows.append(row)
        missing = len(self._items) - len(rows)
        told = ["", f"There was no room for {counted(missing, f'more {self._what}')}."] if missing else []
        return [*(self._above if rows else self._above[:2]), *rows, *told, ""]


def _size(lines: Iterable[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)


def _failure(one: Outcome) -> str:
    code = f"error[{one.error['code']}]: " if one.error is not None else ""
    hint = f" (hint: {one.error['hint']})" if one.error is not None and one.error["hint"] else ""
    lines = [f"- **{one.status}** {markdown_code(one.job)}: {markdown_code(code + one.reason + hint)}"]
    if one.repeat:
        lines += ["", *(f"  {line}" for line in _fenced(one.repeat)), ""]
    return "\n".join(lines)


def _finding(finding: Finding) -> str:
    return f"- **{finding.gate}** {markdown_code(finding.job)}: {markdown_code(finding.text)}"


def _table(batch: Batch) -> "_Part[tuple[tuple[str, str], dict[str, Outcome]]]":
    targets = batch.targets

    def row(item: tuple[tuple[str, str], dict[str, Outcome]]) -> str:
        (model, variant), found = item
        name = f"{model}/{variant}" if variant else model
        return _row([markdown_code(name), *(_cell(found.get(target)) for target in targets)])

    above = [_row(["model", *map(markdown_code, targets)]), _row(["---"] * (len(targets) + 1))]
    return _Part("### Models by targets", above, "model", list(grid_of(batch.outcomes).items()), row)


def _cell(one: Outcome | None) -> str:
    if one is None:
        return ""
    if not one.is_good:
        status = f"**{one.status}**" if one.is_failure else one.status
        return f"{status}, has a bundle" if one.has_other_bundle else status
    return one.status if one.latency_ms is None else f"{one.status} {ms_text(one.latency_ms)}"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _fenced(command: str) -> Iterator[str]:
    """Yields a block of code with a command in one line, in a fence that it does not hold."""
    line = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in command)
    longest = max(map(len, re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from (f"{fence}sh", line, fence)
