# SPDX-License-Identifier: Apache-2.0
"""What subcommands print with: tables for people, JSON for programs, one warning a line.

A table on a terminal has its lines drawn and its long cells folded; anywhere else it is plain columns, a row a line, as
`grep` and `awk` want it. No escape is written where the stream is no terminal, or where `NO_COLOR` is set.
Names from models and bundles are shown with their control characters escaped and never as markup, so they cannot
drive a terminal.
"""

import os
import sys
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from nndeploy.ci_reports.annotations import annotation
from nndeploy.cli.answer import give
from nndeploy.errors import one_line

if TYPE_CHECKING:
    from rich.console import Console, Group

Cell = str | Sequence[str]
"""What stands in a cell of a table: a line, or several."""
_is_quiet = False
GAP = "  "
"""What stands between the columns of a plain table."""
DRAWN_GAP = 3
"""How many characters stand between the columns of a drawn one."""


def may_escape(stream: Any) -> bool:
    """Returns whether escapes may be written to a stream: colours, bold, lines that are drawn again."""
    return bool(stream.isatty()) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def columns_of_terminal() -> int:
    """Returns how wide standard output is, 0 where it is no terminal."""
    return console_for(sys.stdout).width if sys.stdout.isatty() else 0


def err() -> "Console":
    """Returns a console over standard error, for what is drawn again; only where `may_escape` says so."""
    return console_for(sys.stderr)


def console_for(stream: Any) -> "Console":
    """Returns a console that writes on a stream, with escapes only where `may_escape` says so."""
    from rich.console import Console

    colours: Any = "auto" if may_escape(stream) else None  # without a colour system there is no bold either
    return Console(file=stream, highlight=False, markup=False, emoji=False, soft_wrap=False, color_system=colours)


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]], right: Sequence[str] = ()) -> None:
    """Prints a table on standard output; the columns named in `right` are aligned to the right."""
    if sys.stdout.isatty():
        _print_drawn(title, columns, rows, right)
    else:
        _print_plain(title, columns, [[_cell(one) for one in row] for row in rows], right)


def _print_plain(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str]) -> None:
    """Prints columns; a cell of several lines becomes several lines of the table."""
    lines: list[tuple[str, ...]] = [tuple(columns)]
    for row in rows:
        lines += zip_longest(*(cell.split("\n") for cell in row), fillvalue="")
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    print(one_line(title))
    for line in lines:
        cells = [
            cell.rjust(width) if name in right else cell.ljust(width)
            for name, cell, width in zip(columns, line, widths, strict=True)
        ]
        print(GAP.join(cells).rstrip())
    print()


def _print_drawn(title: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]], right: Sequence[str]) -> None:
    console = console_for(sys.stdout)
    with console.capture() as capture:
        console.print(drawn_table(title, columns, rows, console.width, right))
    print("\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n")


def drawn_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]], width: int, right: Sequence[str] = ()
) -> "Group":
    """Returns a table with its title, as `console_for` prints it on a terminal of `width` columns."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    made = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    cells = [[_cell(one) for one in row] for row in rows]
    for column, chars in zip(columns, _widths([columns, *cells], width), strict=True):
        made.add_column(column, justify="right" if column in right else "left", overflow="fold", width=chars)
    for row in cells:
        made.add_row(*map(Text, row))
    return Group(Text(one_line(title), style="bold"), made)


def that_fit(columns: list[str], rows: list[list[str]], width: int) -> tuple[list[str], list[list[str]]]:
    """Returns a table of one line a row without its last columns, so that it fits `width`; the first one stays."""
    from rich.cells import cell_len

    widths = [max(map(cell_len, column)) + DRAWN_GAP for column in zip(columns, *rows, strict=True)]
    count = max([n for n in range(1, len(widths) + 1) if sum(widths[:n]) - DRAWN_GAP <= width], default=1)
    return columns[:count], [row[:count] for row in rows]


def _widths(rows: Sequence[Sequence[str]], width: int) -> list[int | None]:
    """Returns how wide columns are that fit side by side with no word broken; None each where no widths do that."""
    from rich.cells import cell_len

    columns = list(zip(*rows, strict=True))
    words = [max(cell_len(word) for cell in column for word in cell.split() or [""]) for column in columns]
    widths = [max(cell_len(line) for cell in column for line in cell.split("\n")) for column in columns]
    room = width - DRAWN_GAP * (len(columns) - 1)
    if sum(words) > room:
        return [None] * len(columns)
    while sum(widths) > room:
        widest = max(range(len(columns)), key=lambda at: (widths[at] > words[at], widths[at]))
        widths[widest] -= 1
    return list(widths)


def _cell(cell: Cell) -> str:
    return one_line(cell) if isinstance(cell, str) else "\n".join(map(one_line, cell))


def visible(text: str) -> str:
    """Returns a text on one line whose spaces stay, and whose control characters are escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def print_line(text: str) -> None:
    """Prints one line on standard output; spaces stay, control characters are escaped."""
    print(visible(text))


def print_json(data: Any) -> None:
    """Makes plain data the command's answer, which is printed as JSON on standard output when the command has ended."""
    give(data)


def be_quiet(*, is_quiet: bool) -> None:
    """Says whether what asks for nothing stays untold until this is called again."""
    global _is_quiet
    _is_quiet = is_quiet


def draws_progress() -> bool:
    """Returns whether standard error shows what is drawn again: it is a terminal, and nobody wants quiet."""
    return may_escape(sys.stderr) and not _is_quiet


def tell(line: str) -> None:
    """Prints a line on standard error that is neither an error nor a warning, unless quiet is wanted."""
    if not _is_quiet:
        print(visible(line), file=sys.stderr, flush=True)


def note(text: str) -> None:
    """Prints one line on standard error that asks for nothing, unless quiet is wanted."""
    tell(f"nndeploy: {one_line(text)}")


def warn(text: str) -> None:
    """Prints one warning on standard error."""
    print(f"nndeploy: warning: {one_line(text)}", file=sys.stderr)
    annotate("warning", text)


def annotate(level: str, text: str) -> None:
    """Makes an error or a warning an annotation, where a step of GitHub's reads standard error."""
    if line := annotation(level, one_line(text), os.environ):
        print(line, file=sys.stderr, flush=True)
