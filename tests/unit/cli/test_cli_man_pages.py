# SPDX-License-Identifier: Apache-2.0
"""Man pages say what --help says, in roff that every formatter takes."""

import shutil
import subprocess
from pathlib import Path

import click
import pytest

from nndeploy.cli.help.exit_codes import EXIT_CODES
from nndeploy.cli.help.man_pages import man_pages
from nndeploy.cli.main import COMMANDS, cli, run_command
from nndeploy.errors import ERRORS_BY_CODE

GROUPS = {
    "key": ("new", "list", "trust", "revoke", "floor", "need"),
    "cache": ("stats", "gc", "verify"),
    "farm": ("ca", "scheduler", "worker"),
}
PAGES = [
    "nndeploy",
    *(f"nndeploy-{name}" for name in COMMANDS),
    *(f"nndeploy-{group}-{name}" for group, names in GROUPS.items() for name in names),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages") / "man1"
    assert run_command(["help", "--man", str(folder)]) == 0
    return folder


def formatted(folder: Path, name: str) -> str:
    """Returns a page as a terminal shows it, its blanks as one."""
    command = ["groff", "-man", "-Tascii", "-P-cbou", "-rLL=2000n", "-ww", str(folder / f"{name}.1")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return " ".join(done.stdout.split())


def test_every_command_has_a_page(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == sorted(f"{name}.1" for name in PAGES)


def test_the_same_tree_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    assert run_command(["help", "--man", str(tmp_path)]) == 0
    for path in folder.iterdir():
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
@pytest.mark.parametrize("name", PAGES)
def test_a_page_says_all_that_help_says(folder: Path, name: str) -> None:
    text = formatted(folder, name)
    context = cli.make_context("nndeploy", [], resilient_parsing=True)
    for word in name.split("-")[1:]:
        assert isinstance(context.command, click.Group)
        command = context.command.get_command(context, word)
        assert command is not None
        context = click.Context(command, info_name=word, parent=context)
    options = [one for one in context.command.get_params(context) if isinstance(one, click.Option)]
    for record in filter(None, (option.get_help_record(context) for option in options)):
        assert " ".join(" ".join(record).split()) in text
    for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES", "EXIT STATUS", "SEE ALSO"):
        assert f" {section} " in text
    for line in (context.command.epilog or "").split("Examples:\n")[1].splitlines():
        assert " ".join(line.split()) in text


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_options_stand_under_the_headings_of_help(folder: Path) -> None:
    text = formatted(folder, "nndeploy-compile")
    places = [text.index(heading) for heading in ("Model and inputs", "Backends and placement", "Targets", "Output")]
    assert places == sorted(places)


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="mandoc is not installed")
@pytest.mark.parametrize("name", PAGES)
def test_mandoc_takes_a_page(folder: Path, name: str) -> None:
    command = ["mandoc", "-Tlint", "-Wwarning", str(folder / f"{name}.1")]
    lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    assert [line for line in lines if "missing date" not in line] == []  # a date would change with every build


def test_every_exit_code_is_told() -> None:
    assert {error.exit_code for error in ERRORS_BY_CODE.values()} < set(EXIT_CODES)


def test_a_folder_that_cannot_be_made_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run_command(["help", "--man", str(tmp_path / "no" / "such")]) == 73
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_nothing_in_a_help_text_is_a_request_of_roff(tmp_path: Path) -> None:
    text = r".SH is no heading here, 'nor \fBbold\fR, `--x` ~ ^ \n"
    command = click.Command("odd", help=f"Odd.\n\n{text}", params=[click.Option(["--x"], help=text)])
    (tmp_path / "odd.1").write_text(man_pages(click.Context(command, info_name="odd"))["odd.1"])
    assert formatted(tmp_path, "odd").count(text) == 2
