# SPDX-License-Identifier: Apache-2.0
"""What subcommands print with: tables for people, JSON for programs, one warning a line.

Names from models and bundles are shown with their control characters escaped and never as markup, so they cannot
drive a terminal.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from nndeploy.errors import one_line

PLAIN_WIDTH = 160
"""Columns of a table that does not go to a terminal."""


def out() -> Console:
    """Returns a console over standard output; no colour where that is no terminal or NO_COLOR is set."""
    return _console(sys.stdout)


def err() -> Console:
    """Returns a console over standard error."""
    return _console(sys.stderr)


def _console(stream: Any) -> Console:
    console = Console(file=stream, highlight=False, markup=False, emoji=False, soft_wrap=False)
    if not console.is_terminal:
        console.width = PLAIN_WIDTH
    return console


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[str] = ()) -> None:
    """Prints a table on standard output; the columns named in `right` are aligned to the right."""
    made = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        made.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        made.add_row(*(_cell(text) for text in row))
    console = out()
    with console.capture() as capture:
        console.print(Text(one_line(title), style="bold"))
        console.print(made)
    print("\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n")


def _cell(text: str) -> Text:
    return Text("\n".join(one_line(line) for line in text.split("\n")))


def print_line(text: str) -> None:
    """Prints one line on standard output; spaces stay, control characters are escaped."""
    print("".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text))


def print_json(data: Any) -> None:
    """Prints plain data as JSON on standard output."""
    print(json.dumps(data, indent=2, allow_nan=False))


def warn(text: str) -> None:
    """Prints one warning on standard error."""
    print(f"nndeploy: warning: {one_line(text)}", file=sys.stderr)


def size_text(num_bytes: int) -> str:
    """Returns a size as people write it."""
    size = float(num_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1000
    return f"{num_bytes} B" if unit == "B" else f"{size:.1f} {unit}"


def ms_text(milliseconds: float) -> str:
    """Returns a time as people write it, to three digits or the millisecond."""
    return f"{milliseconds:,.0f} ms" if milliseconds >= 100 else f"{milliseconds:.3g} ms"
