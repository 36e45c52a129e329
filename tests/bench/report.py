# SPDX-License-Identifier: Apache-2.0
"""What every bench shares: its command line, tables in Markdown, raw samples, and the page section that it writes."""

import argparse
import fnmatch
import json
import math
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import figures

MODELS = figures.ROOT.parent / "shared" / "models"
ZOO = figures.ROOT / "build" / "zoo"


class _Formatter(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Help with the defaults, and the description as it is."""


def bench_parser(description: str | None, parts: Collection[str] = (), default: Collection[str] = ()) -> Any:
    """Returns a parser whose description is a module's docstring, with the options of every bench, and its parts."""
    parser = argparse.ArgumentParser(description=description, formatter_class=_Formatter)
    parser.add_argument("--json", type=Path, help="file for the raw samples")
    parser.add_argument("--write", action="store_true", help="write the section of docs/figures")
    if parts:
        parser.add_argument("parts", nargs="*", default=list(default or parts), help=f"of: {' '.join(parts)}")
    return parser


def add_race(parser: argparse.ArgumentParser, seconds: float = 0.3, rounds: int = 7, threads: str = "1") -> None:
    parser.add_argument("--threads", type=numbers, default=threads, help="comma-separated")
    parser.add_argument("--seconds", type=float, default=seconds, help="of an engine and round")
    parser.add_argument("--rounds", type=int, default=rounds)


def add_models(parser: argparse.ArgumentParser, *, zoo: bool = False) -> None:
    parser.add_argument("--models", type=Path, default=MODELS, help="real models: index.json, samples/")
    if zoo:
        parser.add_argument("--zoo", type=Path, default=ZOO, help="folder that `make zoo` wrote")


def words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def numbers(text: str) -> list[int]:
    return [int(word) for word in words(text)]


def matching(names: Iterable[str], patterns: Sequence[str]) -> list[str]:
    """Returns the names that match a pattern with * and ?; all where there are no patterns."""
    return [name for name in names if not patterns or any(fnmatch.fnmatch(name, one) for one in patterns)]


def geometric_mean(values: Sequence[float]) -> float:
    """Returns the geometric mean; NaN of nothing."""
    return math.exp(math.fsum(map(math.log, values)) / len(values)) if values else math.nan


class Table:
    """A table that is printed row by row; columns whose name ends with ":" are aligned to the right."""

    def __init__(self, report: "Report", columns: Sequence[str]) -> None:
        self._report = report
        self.row(*(column.rstrip(":") for column in columns))
        self.row(*("---:" if column.endswith(":") else "---" for column in columns))

    def row(self, *cells: object) -> None:
        self._report.line(f"| {' | '.join(str(cell) for cell in cells)} |")


class Report:
    """Prints what a bench finds; `--write` makes it the section of a page, `--json` keeps samples in a file."""

    def __init__(self, options: argparse.Namespace, page: str, section: str) -> None:
        self._options, self._page, self._section = options, page, section
        self._lines: list[str] = []
        self._samples: list[Any] = []

    def __enter__(self) -> "Report":
        self.line(figures.stamp(Path(sys.argv[0]).stem, sys.argv[1:]))
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None and self._options.write:
            figures.put_section(self._page, self._section, "\n".join(self._lines))

    def line(self, text: str = "") -> None:
        """Prints a line; of empty ones in a row only one."""
        if not text and self._lines and not self._lines[-1]:
            return
        self._lines.append(text)
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    def text(self, paragraph: str) -> None:
        for line in ("", paragraph.strip(), ""):
            self.line(line)

    def table(self, *columns: str) -> Table:
        self.line()
        return Table(self, columns)

    def sample(self, **fields: Any) -> None:
        """Keeps raw samples; the file is written each time, so that a bench may be stopped."""
        self._samples.append(fields)
        if self._options.json:
            self._options.json.write_text(json.dumps(self._samples, indent=1), encoding="utf-8")


def run_parts(options: argparse.Namespace, page: str, section: str, parts: Mapping[str, "Part"]) -> int:
    """Runs the parts that are asked for, each with a folder of its own as `options.folder`; returns the exit code."""
    codes = []
    with Report(options, page, section) as report:
        for part in options.parts:
            with tempfile.TemporaryDirectory(prefix="nndeploy-bench-") as name:
                options.folder = Path(name)
                codes.append(parts[part](report, options) or 0)
    return max(codes, default=0)


Part = Callable[[Report, argparse.Namespace], int | None]
