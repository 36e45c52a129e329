# SPDX-License-Identifier: Apache-2.0
"""What --help promises can be typed: every example parses, every option is a sentence, every default is shown."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from nndeploy.cli.main import cli


def contexts() -> Iterator[click.Context]:
    """Yields a context of each command, as the command line makes it."""
    waiting = [cli.make_context("nndeploy", [], resilient_parsing=True)]
    while waiting:
        context = waiting.pop()
        yield context
        if isinstance(group := context.command, click.Group):
            commands = ((name, group.get_command(context, name)) for name in group.list_commands(context))
            waiting += [click.Context(found, info_name=name, parent=context) for name, found in commands if found]


CONTEXTS = {context.command_path: context for context in contexts()}
OPTIONS = [
    pytest.param(context, option, id=f"{path} {max(option.opts, key=len)}") for path,
    context in CONTEXTS.items() for option in context.command.get_params(context) if isinstance(option, click.Option)
]  # fmt: skip


def examples(command: click.Command) -> list[str]:
    """Returns the lines below "Examples:", without what is told behind them."""
    _, found, text = (command.epilog or "").partition("Examples:\n")
    assert found
    return [re.split(r"\s{2,}", line.strip())[0] for line in text.splitlines()]


def calls(line: str) -> Iterator[list[str]]:
    """Yields the arguments of each call of nndeploy in a line of shell."""
    text = re.sub(r'^eval "\$\((.*)\)"$', r"\1", line)
    words = shlex.split(text)
    while "nndeploy" in words:
        call = words[words.index("nndeploy") + 1 :]
        end = next((i for i, word in enumerate(call) if word in ("|", ">", "<", "&&", ";")), len(call))
        yield call[:end]
        words = call[end:]


def parsed(arguments: list[str]) -> str:
    """Returns the path of the command that `arguments` call; parses them, and runs nothing."""
    context = cli.make_context("nndeploy", list(arguments))
    rest = [*context._protected_args, *context.args]
    while isinstance(group := context.command, click.Group) and rest:
        name, command, rest = group.resolve_command(context, rest)
        assert command is not None
        context = command.make_context(name, rest, parent=context)
        rest = [*context._protected_args, *context.args]
    return context.command_path.split(" [")[0]


@pytest.mark.parametrize("path", CONTEXTS)
def test_every_command_has_examples_of_itself_that_parse(path: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("nndeploy.installed.floors.installed_bundle", Path)
    lines = examples(CONTEXTS[path].command)
    assert len(lines) >= 2 or path == "nndeploy completion"
    called = [parsed(call) for line in lines for call in calls(line)]
    assert len(called) >= len(lines)
    assert any(name.startswith(path) for name in called)


@pytest.mark.parametrize("path", CONTEXTS)
def test_examples_are_shown_a_line_each(path: str) -> None:
    shown = CONTEXTS[path].get_help().splitlines()
    for line in (CONTEXTS[path].command.epilog or "").partition("Examples:\n")[2].splitlines():
        assert any(line.strip() == one.strip() for one in shown), line


@pytest.mark.parametrize(("context", "option"), OPTIONS)
def test_every_option_is_told_in_whole_sentences(context: click.Context, option: click.Option) -> None:
    text = option.help or ""
    assert len(text.split()) >= 3
    assert text[0].isupper()
    assert text.endswith(".")


@pytest.mark.parametrize(("context", "option"), OPTIONS)
def test_every_option_with_a_default_shows_it(context: click.Context, option: click.Option) -> None:
    record = option.get_help_record(context)
    assert record is not None
    default = option.get_default(context)
    if isinstance(default, (str, int, float)) and not (option.is_flag and not default):
        assert "[default: " in record[1]
        assert "Default:" not in record[1]  # once is enough
