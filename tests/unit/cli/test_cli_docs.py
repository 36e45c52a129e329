# SPDX-License-Identifier: Apache-2.0
"""The reference names every command and exit code; no page for readers names an option that does not exist."""

import json
import re
from pathlib import Path

import click
import pytest

from nndeploy.cli.main import COMMANDS, cli
from nndeploy.errors import ERRORS_BY_CODE

DOCS = Path(__file__).resolve().parents[3] / "docs"
REFERENCE = DOCS / "reference"
ARGUMENTS_OF_RUNNER = DOCS.parent / "backends" / "nndeploy_kernels" / "runtime" / "command" / "arguments.c"
PAGES = sorted([*REFERENCE.glob("*.md"), *(DOCS / "guide").glob("*.md")])
OTHER_PROGRAMS = re.compile(
    r"^.*(?:(?<!\S)\./\w|"
    r"\b(?:cargo|curl|make|openssl|optimum-cli|pip|pkg-config|podman|polygraphy|systemctl|tritonserver|trtexec|unzip)\b).*$",
    re.MULTILINE,
)
"""Lines that speak of options of other programs."""


def page(name: str) -> str:
    return (REFERENCE / f"{name}.md").read_text(encoding="utf-8")


def options_of(name: str) -> set[str]:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    commands = [command, *(command.commands.values() if isinstance(command, click.Group) else ())]
    return {
        text
        for parameter in (parameter for one in commands for parameter in one.params)
        if isinstance(parameter, click.Option)
        for text in (*parameter.opts, *parameter.secondary_opts)
        if text.startswith("--")
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_in_the_table(name) -> None:
    assert re.search(rf"^\| `{name}\b", page("command-line"), re.MULTILINE)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_page_names_no_option_that_does_not_exist(path) -> None:
    runner = re.findall(r'"(--[a-z-]+)"', ARGUMENTS_OF_RUNNER.read_text(encoding="utf-8"))
    known = {"--help", "--version", *runner}.union(*map(options_of, COMMANDS))
    text = OTHER_PROGRAMS.sub("", path.read_text(encoding="utf-8"))
    assert sorted(set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", text)) - known) == []


@pytest.mark.parametrize("kind", ERRORS_BY_CODE.values(), ids=ERRORS_BY_CODE)
def test_every_exit_code_is_in_the_table(kind) -> None:
    assert re.search(rf"^\| {kind.exit_code} \|.*`{kind.code}`", page("exit-codes"), re.MULTILINE)


def test_the_lines_shown_are_json() -> None:
    blocks = re.findall(r"```json\n(.*?)```", page("inputs"), re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    assert len(lines) == 3
    for line in lines:
        json.loads(line)
