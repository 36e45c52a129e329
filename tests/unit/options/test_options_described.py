# SPDX-License-Identifier: Apache-2.0
"""Options are spelled once: a described field is an option of the command, with the same default as in Python."""

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from nndeploy.cli.options.option_fields import given, options_of, sections_of
from nndeploy.compiler.options import CompileLimits, CompileOptions
from nndeploy.errors import UsageError
from nndeploy.loadgen.settings import Request
from nndeploy.options.described import described, described_fields, options_from
from nndeploy.options.texts import bytes_in, names_in
from nndeploy.pacing.plan.goal import PaceGoal
from nndeploy.runtime.load_options import LoadOptions
from nndeploy.stream.run.options import RunOptions


@dataclass(frozen=True, slots=True)
class Several:
    """One field of each kind."""

    size: int | None = described(None, "A size.", section="Numbers", metavar="SIZE", from_text=bytes_in("--size"))
    count: int = described(3, "A count.", section="Numbers", least=1, most=9)
    share: float | None = described(None, "A share.", section="Numbers", least=0, is_above=True)
    names: tuple[str, ...] = described((), "Names.", section="Texts", flags=("--name",), from_texts=names_in)
    kind: str = described("red", "A kind.", section="Texts", choices=("red", "blue"))
    file: Path | None = described(None, "A file.", section="Texts", is_path=True, from_text=Path)
    table: dict[str, str] = described(dict, "A table.", section="Texts", from_texts=lambda texts: dict.fromkeys(texts))
    loud: bool = described(False, "Be loud.", section="Switches")
    checks: bool = described(True, "Check nothing.", section="Switches", flags=("--no-checks",))
    both: bool = described(True, "Both ways.", section="Switches", flags=("--both/--no-both",))
    unspoken: int = 7


def parsed(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = {}

    @click.command()
    @options_of(Several)
    def command(**parameters: Any) -> None:
        found.update(given(Several, parameters))

    result = CliRunner().invoke(command, arguments, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return found


def test_a_command_told_nothing_has_the_defaults_of_python() -> None:
    assert options_from(Several, parsed()) == Several()


def test_what_a_command_is_told_is_plain_data_and_becomes_the_values(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["--size", "2KiB", "--count", "4", "--share", "0.5", "--name", "a,b", "--name", "c", "--kind", "blue"]
    arguments += ["--file", "x.txt", "--table", "k", "--loud", "--no-checks", "--no-both"]
    plain = json.loads(json.dumps(parsed(*arguments)))
    assert options_from(Several, plain) == Several(
        2048, 4, 0.5, ("a", "b", "c"), "blue", tmp_path / "x.txt", {"k": None}, True, False, False
    )


@pytest.mark.parametrize("arguments", [["--count", "10"], ["--share", "0"], ["--kind", "green"], ["--unspoken", "1"]])
def test_what_a_field_does_not_allow_is_refused_by_the_command(arguments: list[str]) -> None:
    with pytest.raises(click.UsageError):
        parsed(*arguments)


def test_a_text_without_meaning_is_refused_when_the_value_is_made() -> None:
    with pytest.raises(UsageError, match="--size: 'much' is not a size"):
        options_from(Several, parsed("--size", "much"))


def test_sections_list_the_parameters_by_heading() -> None:
    assert sections_of(Several) == {
        "Numbers": ("size", "count", "share"),
        "Texts": ("name", "kind", "file", "table"),
        "Switches": ("loud", "no_checks", "both"),
    }


@pytest.mark.parametrize("options", [CompileOptions, CompileLimits, LoadOptions, RunOptions, PaceGoal, Request])
def test_every_field_of_the_real_ones_is_an_option_or_python_s_alone(options: type[Any]) -> None:
    of_python_alone = {"pace", "is_of_item", "only_times", "scenario", "seconds"}
    names = {field.name for field in fields(options)}
    assert names - described_fields(options).keys() <= of_python_alone
    assert all(one.help.endswith(".") for _, one in described_fields(options).values())
