# SPDX-License-Identifier: Apache-2.0
"""No silence that looks like a hang: a line every few seconds; and no escapes where none may be."""

import io
import re
import sys
import time
from typing import Any

import pytest

from nndeploy.cli.console import may_escape, print_table
from nndeploy.cli.views import progress
from nndeploy.cli.views.compile_view import CompileProgress
from nndeploy.cli.views.progress import Heartbeat


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "TOLD_SECONDS", 0.05)


@pytest.mark.usefixtures("fast")
def test_a_long_stage_is_told_while_it_lasts(capsys: pytest.CaptureFixture[str]) -> None:
    with CompileProgress() as shown:
        shown.event("build", "")
        shown.event("build", "s0 for native, 3 nodes")
        time.sleep(0.3)
        before = capsys.readouterr().err.splitlines()
    assert len(before) >= 2
    assert set(before) == {"nndeploy: build: s0 for native, 3 nodes (0 s)"}
    assert capsys.readouterr().err.splitlines()[-1].split()[0] == "build"


def test_a_stage_is_numbered_and_its_time_goes_on() -> None:
    shown = CompileProgress(("load", "build", "check and write"))
    shown.event("build", "")
    shown.event("build", "s0")
    assert re.fullmatch(r".*2 of 3.*build: s0 \(\d+ s, \d+ s in all\)", shown.now())
    shown.event("another", "")
    assert " of 3" not in shown.now()


@pytest.mark.usefixtures("fast")
def test_of_several_the_last_one_tells(capsys: pytest.CaptureFixture[str]) -> None:
    with Heartbeat("outside"), Heartbeat("inside"):
        time.sleep(0.1)
        capsys.readouterr()  # on a busy machine the outer one may have told before the inner one was there
        time.sleep(0.2)
        said = capsys.readouterr().err.splitlines()
    assert set(said) == {"nndeploy: inside (0 s)"}


@pytest.mark.usefixtures("fast")
def test_nothing_is_told_where_nothing_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    with Heartbeat():
        time.sleep(0.2)
    assert capsys.readouterr().err == ""


def table_on(stream: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(sys, "stdout", stream)
    print_table("title", ("name", "n"), [("a", "1"), ("longer", "22")], right=("n",))
    return str(stream.getvalue())


def test_a_table_off_a_terminal_is_plain_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # which some libraries take for a terminal
    text = table_on(io.StringIO(), monkeypatch)
    assert text.splitlines() == ["title", "name     n", "a        1", "longer  22", ""]


def test_a_long_cell_stays_on_its_line_off_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    print_table("t", ("a", "b"), [("x" * 500, "y")])
    assert "x" * 500 + "  y" in sys.stdout.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_no_escape_is_written_where_none_is_wanted(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert may_escape(Terminal())
    assert "\x1b[1m" in table_on(Terminal(), monkeypatch)  # bold
    monkeypatch.setenv(name, value)
    assert not may_escape(Terminal())
    assert "\x1b" not in table_on(Terminal(), monkeypatch)
