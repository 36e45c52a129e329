# SPDX-License-Identifier: Apache-2.0
"""A table of a report, for whoever prints it."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Table(NamedTuple):
    """A title, the names of the columns, rows of cells, and the columns whose cells are aligned to the right."""

    title: str
    columns: Sequence[str]
    rows: Iterable[Sequence[str]]
    right: Sequence[str]
