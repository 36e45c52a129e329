# SPDX-License-Identifier: Apache-2.0
"""The numbers of docs/internals/versions.md are those of the code."""

import re
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = REPOSITORY / "docs" / "internals" / "versions.md"
ROW = re.compile(r"\| ([^|]+) \| ([^|]+) \| (`[^|]+) \| [^|]+ \|")
WHERE = re.compile(r"`([\w/.]+)` `(\w+)`")


def number_in(path: Path, name: str) -> str:
    """Returns the number of a constant: the first of several, or where a line names several constants, its own."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if found := re.match(rf"(?:#define )?((?:\w+, )*{name}(?:, \w+)*)(?: = | )(.+?)(?: /\*.*)?$", line):
            names, values = found[1].split(", "), found[2].split(", ")
            return values[names.index(name)].strip("()")
    raise AssertionError(f"{path} has no {name}")


def test_the_numbers_are_those_of_the_code() -> None:
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))
    assert len(rows) > 15
    for what, number, where in rows:
        places = WHERE.findall(where)
        assert places, what
        assert {number_in(REPOSITORY / path, name) for path, name in places} == {number}, what
