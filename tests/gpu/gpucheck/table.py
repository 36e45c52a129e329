# SPDX-License-Identifier: Apache-2.0
"""Rows -> the printed table, as plain text: it is read in logs of machines that are gone.

Where many rows of one stage and backend say the same (the same refusal, "ok"), one line stands for
all; the JSON has each.
"""

from collections.abc import Sequence
from dataclasses import replace

from gpucheck.rows import NOT_RUN, OK, REFUSED, Row

HEAD = ("stage", "model or operator", "backend", "result", "max abs err", "ms", "x best peer", "notes")
MAX_REASON = 150
SHOWN_OF_GROUP = 6
COUNTED = ("conformance", "operators")
"""Stages whose models that are merely right are counted, not listed."""


def lines_of(rows: Sequence[Row]) -> list[str]:
    """Returns the lines of the table, with columns as wide as what stands in them; the last one is free."""
    cells = [HEAD, *(_cells(row) for row in merged(rows))]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEAD) - 1)]
    texts = [_line(line, widths) for line in cells]
    return [texts[0], "-" * min(160, max(len(text) for text in texts)), *texts[1:]]


def merged(rows: Sequence[Row]) -> list[Row]:
    """Returns the rows, stage by stage: first those that have a line of their own, then what is said once for many."""
    found: list[Row] = []
    for stage in dict.fromkeys(row.stage for row in rows):
        groups: dict[object, list[Row]] = {}
        for number, row in enumerate(row for row in rows if row.stage == stage):
            groups.setdefault(_merge_key(row) or number, []).append(row)
        alone = [group[0] for group in groups.values() if len(group) == 1]
        found += [*alone, *(_one_for(group) for group in groups.values() if len(group) > 1)]
    return found


def _merge_key(row: Row) -> tuple[str, str, str] | None:
    """Returns what makes rows equal but for their item: the same refusal, or nothing but "ok" to say."""
    if row.status in (REFUSED, NOT_RUN) or (row.status == OK and row.stage in COUNTED and row.ms is None):
        return row.backend, row.status, row.reason
    return None


def _one_for(members: Sequence[Row]) -> Row:
    first = members[0]
    names = ", ".join(row.item for row in members[:SHOWN_OF_GROUP])
    more = f" and {len(members) - SHOWN_OF_GROUP} more" if len(members) > SHOWN_OF_GROUP else ""
    worst = max((row.max_abs for row in members if row.max_abs is not None), default=None)
    return replace(first, item=f"{len(members)} of them", max_abs=worst, facts={"": names + more})


def _cells(row: Row) -> tuple[str, ...]:
    ratio = "" if row.ratio is None else f"{row.ratio:.2f} {row.peer}"
    return (row.stage, row.item, row.backend, row.status, _figure(row.max_abs, ".2g"), _ms(row.ms), ratio, _notes(row))


def _notes(row: Row) -> str:
    facts = "; ".join(f"{name} {_fact(value)}".strip() for name, value in row.facts.items())
    reason = row.reason if len(row.reason) <= MAX_REASON else row.reason[: MAX_REASON - 3] + "..."
    return "; ".join(part for part in (reason, facts) if part)


def _fact(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _figure(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def _ms(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}" if value < 1 else f"{value:.2f}"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join([*(cell.ljust(width) for cell, width in zip(cells, widths, strict=False)), cells[-1]]).rstrip()
