# SPDX-License-Identifier: Apache-2.0
"""`nndeploy help`: every page of the guide and the reference, and the help of every command, without the network."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from nndeploy.cli.help.help_pages import SECTIONS, page_called, pages, title, topics, with_topics_for_links
from nndeploy.cli.main import COMMANDS, run_command

DOCS = Path(__file__).resolve().parents[3] / "docs"
FILES = [path for section in SECTIONS for path in sorted((DOCS / section).glob("*.md"))]


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run_command(["help", *arguments]) == 0
    return capsys.readouterr().out


def test_every_page_is_listed_with_its_title(capsys: pytest.CaptureFixture[str]) -> None:
    out = " ".join(shown(capsys).split())
    assert [page.path for page in pages()] == FILES
    for name, page in topics(COMMANDS).items():
        assert title(page.text), page.path
        assert f"{name} {title(page.text)}" in out


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_page_that_is_piped_is_the_page_as_it_was_written(capsys: pytest.CaptureFixture[str], path: Path) -> None:
    assert shown(capsys, f"{path.parent.name}/{path.stem}") == path.read_text(encoding="utf-8")


def test_each_topic_shows_its_own_page_and_no_two_pages_share_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    names = [page.name for page in pages()]
    assert len(names) == len(set(names))
    for name, page in topics(COMMANDS).items():
        assert page_called(name) == page
        assert name not in COMMANDS


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_s_name_shows_its_help(capsys: pytest.CaptureFixture[str], name: str) -> None:
    told = shown(capsys, name)
    assert run_command([name, "--help"]) == 0
    own = capsys.readouterr().out
    assert told.startswith(own.rstrip("\n"))


def test_a_command_that_has_a_page_says_how_to_see_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "targets").endswith("nndeploy help reference/targets\n")


@pytest.mark.parametrize(("arguments", "guess"), [
    (("pipelins",), "there is no help about 'pipelins' (hint: did you mean 'pipelines'?; "),
    (("compil",), "there is no help about 'compil' (hint: did you mean 'compile'?; "),
    (("compile", "bild"), "nndeploy compile has no command 'bild'"),
    (("../guide/pacing",), "there is no help about '../guide/pacing'"),
])  # fmt: skip
def test_an_unknown_topic_is_one_line(capsys, arguments, guess) -> None:
    assert run_command(["help", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"nndeploy: error[usage]: {guess}")
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize(("markdown", "expected"), [
    ("# A page\n\nOne thing.", "A page"),
    ("<!-- a note -->\n# A `file.py` of [a page](x.md)\n\n## More", "A file.py of a page"),
    ("No heading.\n\n## A section", ""),
])  # fmt: skip
def test_the_title_is_the_first_heading_as_plain_text(markdown: str, expected: str) -> None:
    assert title(markdown) == expected


def test_links_name_the_topic_that_shows_their_page() -> None:
    text = "[boxes](targets.md#a), [code](../../nndeploy/errors.py), [b](https://b.org) ![p](p.svg)"
    expected = "boxes (`nndeploy help reference/targets`), code, [b](https://b.org) ![p](p.svg)"
    assert with_topics_for_links(text, topics(COMMANDS)) == expected


def on_a_terminal(*arguments: str, **environment: str) -> str:
    """Returns what a command writes on a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    variables = {**os.environ, "TERM": "xterm", "COLUMNS": "80", **environment}
    command = [sys.executable, "-m", "nndeploy", *arguments]
    child = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=variables)
    os.close(theirs)
    told = b""
    try:
        while piece := os.read(ours, 65536):
            told += piece
    except OSError:  # the terminal's other end was closed
        pass
    finally:
        os.close(ours)
    assert child.wait() == 0
    return told.decode()


def test_on_a_terminal_a_page_is_drawn_and_goes_through_the_pager(tmp_path: Path) -> None:
    pager = tmp_path / "pager"
    pager.write_text('#!/bin/sh\necho "the pager begins"\nexec cat\n')
    pager.chmod(0o755)
    told = on_a_terminal("help", "reference/targets", PAGER=str(pager))
    assert told.startswith("the pager begins")
    assert "\x1b[" in told
    assert "```" not in told
    assert "| --- |" not in told


@pytest.mark.parametrize("pager", ["", "/no/such/pager"])
def test_a_page_is_shown_without_a_pager_too(pager: str) -> None:
    told = on_a_terminal("help", "reference/targets", PAGER=pager, NO_COLOR="1")
    assert "A build farm rarely has" in told
    assert "\x1b[" not in told


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys; from nndeploy.cli.main import run_command;"
        "run_command(['help']); run_command(['help', 'pipelines']);"
        "print(*{'numpy', 'onnx', 'rich', 'onnxruntime'} & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr.split() == []
