# SPDX-License-Identifier: Apache-2.0
"""Every security promise has a row for readers and a row of its tests, each of which is one that pytest collects."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
PROMISES = ROOT / "docs" / "reference" / "security.md"
HELD_BY = ROOT / "docs" / "internals" / "security-tests.md"
COUNTS = {"C": 20, "B": 14, "R": 28, "F": 11, "K": 3, "N": 7, "S": 4}
ROW = re.compile(r"^\| ([CBRFKNS]\d+) \| ([^|]+) \|$", re.MULTILINE)
NAME = re.compile(r"`([^`]+\.py)::([^`]+)`")


def rows(page: Path) -> list[tuple[str, str]]:
    return ROW.findall(page.read_text(encoding="utf-8"))


def collected(path: Path) -> set[str]:
    """Returns the names of the tests of a file as pytest calls them, without parameters."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            found.add(node.name)
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            methods = (one.name for one in node.body if isinstance(one, ast.FunctionDef))
            found |= {f"{node.name}::{name}" for name in methods if name.startswith("test_")}
    return found


@pytest.mark.parametrize("page", [PROMISES, HELD_BY], ids=lambda page: page.stem)
def test_each_promise_has_one_row_in_order(page: Path) -> None:
    ids = [f"{part}{n}" for part, count in COUNTS.items() for n in range(1, count + 1)]
    assert [row[0] for row in rows(page)] == ids


@pytest.mark.parametrize(("check", "promise"), rows(PROMISES), ids=[row[0] for row in rows(PROMISES)])
def test_readers_get_a_sentence_without_names_of_tests(check: str, promise: str) -> None:
    assert len(promise) > 10, check
    assert not NAME.search(promise), check


@pytest.mark.parametrize(("check", "held"), rows(HELD_BY), ids=[row[0] for row in rows(HELD_BY)])
def test_a_promise_names_tests_that_are_collected_or_says_why_not(check: str, held: str) -> None:
    named = NAME.findall(held)
    assert held.count("`") == 2 * len(named), "a test is not written as `path::name`"
    assert named or re.match(r"not\b[^:]*: \w+", held), f"{check} names no test and no reason"
    for path, name in named:
        assert Path(path).name.startswith("test_"), path
        assert (TESTS / path).is_file(), path
        assert name in collected(TESTS / path), f"{path} has no test {name}"


def test_runs_never_ask_what_time_it_is() -> None:
    """Limits and latencies are of clocks that nobody sets; a calendar's time is written for people to read alone."""
    for folder in ("stream", "runtime", "jobs", "pacing", "loadgen"):
        for path in (ROOT / "nndeploy" / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            asked = re.findall(r"\btime\.time(?:_ns)?\(|datetime\.now\(|CLOCK_REALTIME", text)
            assert not asked or path.name == "metrics.py", path
