# SPDX-License-Identifier: Apache-2.0
"""Help of commands with many options: every option under a heading that says what it is for."""

import click
import pytest

from nndeploy.cli.main import COMMANDS, cli
from nndeploy.cli.options.help_sections import SectionedCommand

MANY = 12
"""Options from which on a command needs headings."""


def command_of(name: str) -> click.Command:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return command


def options_of(command: click.Command) -> list[str]:
    return [one.name or "" for one in command.params if isinstance(one, click.Option)]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_with_many_has_its_heading(name: str) -> None:
    command = command_of(name)
    if not isinstance(command, SectionedCommand):
        assert len(options_of(command)) < MANY
        return
    placed = [option for options in command.sections.values() for option in options]
    assert len(placed) == len(set(placed))
    assert set(options_of(command)) - set(placed) <= {"as_json", "quiet"}
    assert set(placed) <= set(options_of(command))


def test_headings_stand_in_their_order_and_the_rest_comes_last() -> None:
    text = command_of("bench").get_help(click.Context(command_of("bench"), info_name="bench"))
    headings = [line for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert headings == ["Measurement:", "MLPerf's LoadGen:", "Gates:", "Machine:", "Reports for CI:", "Other options:"]
    text = text[text.index(headings[0]) :]
    assert "BUNDLE" not in text[text.index(headings[-1]) :].partition("Examples:")[0]  # is an argument
    assert text.index("--iterations") < text.index("--scenario") < text.index("--threads") < text.index("--json")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_says_what_it_does_in_a_sentence(name: str) -> None:
    texts = {one.name: one.help or "" for one in command_of(name).params if isinstance(one, click.Option)}
    assert {name: text for name, text in texts.items() if len(text.split()) < 3 or not text.endswith(".")} == {}
