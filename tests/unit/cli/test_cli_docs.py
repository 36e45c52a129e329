# SPDX-License-Identifier: Apache-2.0
"""docs/reference/command-line.md names every command, option and exit code, and nothing that does not exist."""

import json
import re
from pathlib import Path

import click
import pytest

from nndeploy.cli.main import COMMANDS, cli
from nndeploy.errors import ERRORS_BY_CODE

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "reference" / "command-line.md").read_text(encoding="utf-8")


def options_of(name: str) -> set[str]:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    commands = [command, *(command.commands.values() if isinstance(command, click.Group) else ())]
    return {
        text
        for one in commands
        for parameter in one.params
        if isinstance(parameter, click.Option)
        for text in (*parameter.opts, *parameter.secondary_opts)
        if text.startswith("--")
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_on_the_page(name) -> None:
    assert f"`{name}" in PAGE
    missing = sorted(option for option in options_of(name) if not re.search(rf"{option}\b(?!-)", PAGE))
    assert missing == []


def test_the_page_names_no_option_that_does_not_exist() -> None:
    known = {"--help", "--version"}.union(*map(options_of, COMMANDS))
    assert sorted(set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", PAGE)) - known) == []


@pytest.mark.parametrize("kind", ERRORS_BY_CODE.values(), ids=ERRORS_BY_CODE)
def test_every_exit_code_is_in_the_table(kind) -> None:
    assert re.search(rf"^\| {kind.exit_code} \|.*`{kind.code}`", PAGE, re.MULTILINE)


def test_the_lines_shown_are_json() -> None:
    blocks = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    assert len(lines) == 3
    for line in lines:
        json.loads(line)
