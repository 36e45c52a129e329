# SPDX-License-Identifier: Apache-2.0
"""A summary in Markdown, in parts that are cut to fit; names in it are those of `nndeploy.files.markdown_code`.

GitHub refuses a summary of more than 1 MiB whole, so whole rows are left out, and a line says how many.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from nndeploy.values.amounts import counted

MAX_BYTES = 1 << 20
"""What GitHub takes of one step."""
LINE_BYTES = 200
"""Room for each line that says what was left out."""
Item = TypeVar("Item")


class Part(Generic[Item]):
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
        left = max_bytes - size_of(self._above) - 1
        rows: list[str] = []
        for item in self._items:
            row = self._row(item)
            left -= size_of([row])
            if left < 0:
                break
            rows.append(row)
        missing = len(self._items) - len(rows)
        told = ["", f"There was no room for {counted(missing, f'more {self._what}')}."] if missing else []
        return [*(self._above if rows else self._above[:2]), *rows, *told, ""]


def size_of(lines: Iterable[str]) -> int:
    """Returns how many bytes lines take with their ends."""
    return sum(len(line.encode()) + 1 for line in lines)


def table_row(cells: Iterable[str]) -> str:
    """Returns a row of a table, of cells that are Markdown."""
    return f"| {' | '.join(cells)} |"


def fenced(command: str) -> Iterator[str]:
    """Yields a block of code with a command in one line, in a fence that it does not hold."""
    line = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in command)
    longest = max(map(len, re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from (f"{fence}sh", line, fence)
