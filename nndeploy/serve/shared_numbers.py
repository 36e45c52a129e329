# SPDX-License-Identifier: Apache-2.0
"""Numbers by name in memory that a process shares with those it forks: a row for each worker process.

Law: each number has one writer, the process of its row, so nothing is locked. Who reads it sees the one before or the
new one: both are a float of eight bytes.
"""

import mmap
from collections.abc import Hashable, Iterable, Mapping

Name = tuple[str, Hashable]
"""What a number is of, and which it is of that."""


class SharedNumbers:
    """Rows of the same numbers, all 0 at first."""

    def __init__(self, names: Iterable[Name], num_rows: int) -> None:
        self._columns: dict[Name, int] = {name: column for column, name in enumerate(names)}
        width = len(self._columns)
        memory: memoryview[float] = memoryview(mmap.mmap(-1, 8 * width * num_rows)).cast("d")
        self.rows: list[memoryview[float]] = [
            memory[number * width : (number + 1) * width] for number in range(num_rows)
        ]

    def part(self, number: int, of: str) -> "NumbersPart":
        """Returns the numbers of one thing in a row."""
        columns = {which: column for (one, which), column in self._columns.items() if one == of}
        return NumbersPart(columns, self.rows[number])

    def each(self, of: str, which: Hashable) -> list[float]:
        """Returns a number in every row."""
        column = self._columns[of, which]
        return [row[column] for row in self.rows]

    def total(self, of: str, which: Hashable) -> float:
        """Returns the sum of a number over the rows."""
        return sum(self.each(of, which))


class NumbersPart:
    """The numbers of one thing in one row, by name."""

    __slots__ = ("_columns", "_row")

    def __init__(self, columns: Mapping[Hashable, int], row: "memoryview[float]") -> None:
        self._columns, self._row = columns, row

    def __contains__(self, which: Hashable) -> bool:
        return which in self._columns

    def __getitem__(self, which: Hashable) -> float:
        return float(self._row[self._columns[which]])

    def __setitem__(self, which: Hashable, value: float) -> None:
        self._row[self._columns[which]] = value
