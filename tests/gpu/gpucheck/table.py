# SPDX-License-Identifier: Apache-2.0
"""Rows -> the printed table, as plain text: it is read in logs of machines that are gone.

Where many rows of one stage and backend say the same (the same refusal), one line stands for all.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby

from gpucheck.rows import NOT_RUN, REFUSED, Row

HEAD = ("stage", "model or operator", "backend", "result", "max abs err", "ms", "x best peer", "notes")
MAX_REASON = 150
SHOWN_OF_GROUP = 4


def lines_of(rows: Sequence[Row]) -> list[str]:
    """Returns the lines of the table, with columns as wide as what stands in them; the last one is free."""
    cells = [HEAD, *(_cells(row) for row in merged(rows))]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEAD) - 1)]
    texts = [_line(line, widths) for line in cells]
    return [texts[0], "-" * min(160, max(len(text) for text in texts)), *texts[1:]]


def merged(rows: Iterable[Row]) -> list[Row]:
    """Returns the rows with equal refusals of one stage and backend as one, which names the first few items."""
    found: list[Row] = []
    for key, group in groupby(rows, key=_merge_key):
        members = list(group)
        if key is None or len(members) == 1:
            found += members
        else:
            found.append(_one_for(members))
    return found


def _merge_key(row: Row) -> tuple[str, str, str, str] | None:
    return (row.stage, row.backend, row.status, row.reason) if row.status in (REFUSED, NOT_RUN) else None


def _one_for(members: Sequence[Row]) -> Row:
    names = ", ".join(row.item for row in members[:SHOWN_OF_GROUP])
    more = f" and {len(members) - SHOWN_OF_GROUP} more" if len(members) > SHOWN_OF_GROUP else ""
    first = members[0]
    return Row(first.stage, names + more, first.backend, first.status, first.reason)


def _cells(row: Row) -> tuple[str, ...]:
    ratio = "" if row.ratio is None else f"{row.ratio:.2f} {row.peer}"
    return (row.stage, row.item, row.backend, row.status, _figure(row.max_abs, ".2g"), _ms(row.ms), ratio, _notes(row))


def _notes(row: Row) -> str:
    facts = "; ".join(f"{name} {_fact(value)}" for name, value in row.facts.items())
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
