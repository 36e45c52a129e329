# SPDX-License-Identifier: Apache-2.0
"""From a command line to an exit code: what is printed where, for every way a command can end."""

import io
import os
import re
import subprocess
import sys

import click
import pytest

from nndeploy.cli import main
from nndeploy.cli.main import COMMANDS, cli, run_command
from nndeploy.errors import ERRORS_BY_CODE, InputOutputError, NndeployError


@pytest.fixture
def ending(monkeypatch):
    """Returns a function that makes every subcommand end with the given exception."""

    def ending(error: BaseException) -> None:
        @click.command()
        def command() -> None:
            raise error

        monkeypatch.setattr(main.LazyGroup, "get_command", lambda *_: command)

    return ending


def test_the_version_is_printed(capsys) -> None:
    assert run_command(["--version"]) == 0
    assert capsys.readouterr().out.startswith("nndeploy 0.")


def test_help_lists_the_commands_and_examples(capsys) -> None:
    assert run_command(["--help"]) == 0
    out = capsys.readouterr().out
    for name, (_, text) in COMMANDS.items():
        assert name in out
        assert text in out
    assert "Examples:" in out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(capsys, name) -> None:
    assert run_command([name, "--help"]) == 0
    out = capsys.readouterr().out
    assert "Examples:" in out
    assert f"nndeploy {name}" in out


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_says_what_the_command_says(name) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.name == name
    assert (command.help or "").split("\n\n")[0].replace("\n", " ").strip() == COMMANDS[name][1]


def test_no_command_is_help_and_a_usage_error(capsys) -> None:
    assert run_command([]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Commands:" in captured.err


@pytest.mark.parametrize(("arguments", "message"), [
    (["rn"], r"there is no command 'rn' \(hint: did you mean 'run'\?\)"),
    (["quux"], r"there is no command 'quux' \(hint: nndeploy --help lists the commands\)"),
    (["run"], r"Missing argument 'BUNDLE' \(hint: see nndeploy run --help\)"),
    (["run", "m.nnd", "--threads", "many"], ".*'many' is not a valid integer.*"),
    (["run", "m.nnd", "--nan", "maybe"], ".*'maybe' is not one of.*"), (["bench", "m.nnd", "--duration", "0"], ".*"),
    (["--jsn"], r"nndeploy has no option '--jsn' \(hint: see nndeploy --help\)"),
    (["run", "m.nnd", "--inptu", "x"], r"nndeploy run has no option '--inptu' \(hint: did you mean '--input'\?; .*\)"),
])  # fmt: skip
def test_a_wrong_command_line_is_one_line(capsys, arguments, message) -> None:
    assert run_command(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert re.fullmatch(rf"nndeploy: error\[usage\]: {message}\n", captured.err)


@pytest.mark.parametrize("kind", ERRORS_BY_CODE.values(), ids=ERRORS_BY_CODE)
def test_every_error_is_one_line_with_its_code(capsys, ending, kind) -> None:
    ending(kind("it\nis\x1b[31m broken", where="a/b", hint="mend it"))
    assert run_command(["run"]) == kind.exit_code
    captured = capsys.readouterr()
    assert captured.err == f"nndeploy: error[{kind.code}]: a/b: it is\\x1b[31m broken (hint: mend it)\n"


@pytest.mark.parametrize(("error", "code"), [
    (KeyboardInterrupt(), 130), (click.Abort(), 130), (BrokenPipeError(), 141), (click.exceptions.Exit(3), 3)
])  # fmt: skip
def test_other_ends_have_codes_of_their_own(ending, error, code, monkeypatch) -> None:
    monkeypatch.setattr(main, "give_up_output", lambda: None)
    ending(error)
    assert run_command(["run"]) == code


def test_a_bug_shows_a_traceback(capsys, ending) -> None:
    ending(ZeroDivisionError("oops"))
    assert run_command(["run"]) == 70
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.splitlines()[-1].startswith("nndeploy: error[internal]: this is a bug")


def test_a_stop_by_signal_passes_through(ending) -> None:
    ending(SystemExit(143))
    with pytest.raises(SystemExit, match="143"):
        run_command(["run"])


class Full(io.StringIO):
    def flush(self) -> None:
        raise InputOutputError("standard output cannot be written: No space left on device")


@pytest.mark.parametrize(("first", "code", "said"), [
    (click.exceptions.Exit(0), 74, ": standard output cannot be written: No space left on device\n"),
    (NndeployError("first"), 70, "nndeploy: error[internal]: first\n"),
])  # fmt: skip
def test_output_that_cannot_be_flushed_is_an_error_behind_the_first(
    capsys, ending, monkeypatch, first, code, said
) -> None:
    monkeypatch.setattr(main, "give_up_output", lambda: None)
    monkeypatch.setattr(sys, "stdout", Full())
    ending(first)
    assert run_command(["run"]) == code
    err = capsys.readouterr().err
    assert err.endswith(said)
    assert err.count("\n") == 1


def test_the_shell_can_complete() -> None:
    environment = {**os.environ, "_NNDEPLOY_COMPLETE": "bash_complete", "COMP_LINE": "nndeploy insp"}
    done = subprocess.run(
        [sys.executable, "-m", "nndeploy"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == "plain,inspect\n"
