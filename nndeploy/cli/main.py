# SPDX-License-Identifier: Apache-2.0
"""The command `nndeploy`: finds the subcommand, runs it, and turns every outcome into an exit code.

This is the only place that prints an error: one line `nndeploy: error[CODE]: ...` on standard error. A subcommand's
module is imported when it is asked for, so `nndeploy --version` loads nothing heavy.
"""

import contextlib
import importlib
import json
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

import click

from nndeploy.cli import answer
from nndeploy.cli.console import annotate, be_quiet
from nndeploy.cli.help import other_words
from nndeploy.cli.signals import handle
from nndeploy.cli.standard_streams import give_up_output, take_over
from nndeploy.cli.supervised import ended_elsewhere, is_supervised
from nndeploy.errors import (
    InputOutputError,
    NndeployError,
    UsageError,
    nearest,
    one_line,
    shortage,
    shortage_of_files,
)
from nndeploy.files.whole_files import discard_unfinished
from nndeploy.sandbox import idle_threads
from nndeploy.version import __version__

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS = {
    "new": ("nndeploy.cli.commands.new:new", "Write a pipeline file for a model."),
    "compile": ("nndeploy.cli.commands.compile:compile_", "Compile an ONNX MODEL into a single offline bundle."),
    "batch": ("nndeploy.cli.commands.batch:batch", "Compile many models for many targets, as listed in a FLEET file."),
    "farm": ("nndeploy.cli.commands.farm:farm", "Run a build farm: scheduler, workers, certificates."),
    "run": ("nndeploy.cli.commands.run:run", "Run inputs through a BUNDLE."),
    "serve": ("nndeploy.cli.commands.serve:serve", "Serve bundles over the Open Inference Protocol."),
    "top": ("nndeploy.cli.commands.top:top", "Show live metrics of a running stream: rate, latency, load."),
    "inspect": (
        "nndeploy.cli.commands.inspect:inspect",
        "Show the contents of a BUNDLE, which backend runs what, and why.",
    ),
    "verify": ("nndeploy.cli.commands.verify:verify", "Verify a BUNDLE: its integrity, and its results here."),
    "sign": ("nndeploy.cli.commands.sign:sign", "Sign a BUNDLE: every member, its release and its provenance."),
    "key": ("nndeploy.cli.commands.key:key", "Create signing keys, and manage the keys trusted here."),
    "export": ("nndeploy.cli.commands.export:export", "Write a BUNDLE as one file that runs without Python."),
    "bench": ("nndeploy.cli.commands.bench:bench", "Benchmark a BUNDLE here: latency and throughput."),
    "tune": ("nndeploy.cli.commands.tune:tune_", "Tune a BUNDLE for this machine."),
    "pace": ("nndeploy.cli.commands.pace:pace", "Show how a BUNDLE would be paced on this machine."),
    "install": ("nndeploy.cli.commands.install:install", "Install a bundle under a NAME, for `run NAME@`."),
    "installed": ("nndeploy.cli.commands.install:installed", "List the installed bundles and their previous versions."),
    "rollback": ("nndeploy.cli.commands.install:rollback", "Roll NAME back to its previous version."),
    "uninstall": (
        "nndeploy.cli.commands.install:uninstall",
        "Remove NAME with its current and its previous bundle.",
    ),
    "doctor": ("nndeploy.cli.commands.doctor:doctor", "Diagnose this machine, and show how to fix what is wrong."),
    "push": ("nndeploy.cli.commands.push:push", "Push a BUNDLE to a container registry."),
    "pull": ("nndeploy.cli.commands.pull:pull", "Pull a bundle from a container registry."),
    "cache": ("nndeploy.cli.commands.cache:cache", "Manage the cache of compiled bundles."),
    "diff": ("nndeploy.cli.commands.diff:diff", "Show how bundle NEW differs from bundle OLD."),
    "backends": ("nndeploy.cli.commands.backends:backends", "List the backends, and what each builds for here."),
    "targets": ("nndeploy.cli.commands.targets:targets", "List the targets that --target knows by name."),
    "probe": ("nndeploy.cli.commands.probe:probe", "Describe this machine as a target file."),
    "wheelhouse": ("nndeploy.cli.commands.wheelhouse:wheelhouse", "Download all wheels that an offline machine needs."),
    "help": ("nndeploy.cli.commands.help:help_", "Show a page of the guide or the reference, or list the pages."),
    "completion": ("nndeploy.cli.commands.completion:completion", "Print the completion script for a SHELL."),
}
"""Subcommand -> where it is, and the first line of its help, so that `nndeploy --help` imports none."""

EXAMPLES = """\b
Examples:
  nndeploy compile model.onnx -o model.nnd
  nndeploy run model.nnd --input x.npz --output y.npz
  nndeploy run model.nnd --input photos/ --output results/
  nndeploy inspect model.nnd
"""

AT_WORK = (
    "verify", "bench", "tune", "pace", "diff", "inspect", "install", "doctor", "push", "pull", "cache", "wheelhouse",
)  # fmt: skip
"""Commands that may take long and tell nothing meanwhile."""

_NO_COMMAND, _TOO_MANY = re.compile("No such command '(.*?)'"), re.compile(r"Got unexpected extra arguments? \((.*)\)")
"""Click's texts of what it has no class for in every version."""
INTERRUPTED, TERMINATED, BROKEN_PIPE = 130, 143, 141


class LazyGroup(click.Group):
    """A group that imports a subcommand when it is run."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's interface
        """Returns the names of all subcommands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Returns a subcommand, or None where there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        writing = sys.modules.get("nndeploy.cli.options.output_file")  # not there for a command that writes no file
        if writing is not None:
            command.context_class = writing.CheckedContext
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Returns the subcommand that `args` name.

        Raises:
            UsageError: there is none of that name.
        """
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise UsageError(f"there is no command {args[0]!r}", hint=other_words.command_hint("", args[0], COMMANDS))
        if word := other_words.single_dashed(args):
            raise _no_option(f"nndeploy {args[0]}", word, other_words.OPTIONS[word.partition("=")[0]])
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem[str]]":
        """Returns the subcommands and options that go on from `incomplete`, without importing any."""
        from click.shell_completion import CompletionItem

        found = [
            CompletionItem(name, help=about) for name, (_, about) in COMMANDS.items() if name.startswith(incomplete)
        ]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Writes the list of subcommands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(
    cls=LazyGroup, epilog=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"], "show_default": True}
)
@click.version_option(__version__, message="nndeploy %(version)s")
def cli() -> None:
    """Compile a trained network into one offline bundle, and run it.

    Exit codes: 0 success; 1 a comparison, a gate or an item failed; 2 usage; 65 bad data; 66 input missing; 69
    unavailable here; 73 cannot create; 74 I/O error. Full list: nndeploy help exit-codes.
    """


def main() -> NoReturn:
    """Runs the command line of this process and ends it."""
    take_over()
    os.environ.setdefault(idle_threads.VARIABLE, idle_threads.SOON)  # before anything imports NumPy
    handlers = {signal.SIGTERM: _terminate, signal.SIGHUP: _terminate, signal.SIGINT: signal.default_int_handler}
    for number, handler in handlers.items():
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            handle(number, handler)
    try:
        code = _run_apart(sys.argv[1:])
    except SystemExit as err:  # SIGTERM, SIGHUP
        code = err.code if isinstance(err.code, int) else TERMINATED
    _leave(code)


def _run_apart(arguments: Sequence[str]) -> int:
    """Returns the exit code of a command, that of some from the process that does their work."""
    if is_supervised(arguments):
        try:
            code = ended_elsewhere()
        except NndeployError as err:
            return _failed(err, list(arguments))
        if code is not None:
            return code
    return run_command(arguments)


def _leave(code: int) -> NoReturn:
    """Ends the process; at once where a library that cannot be stopped still runs in a daemon thread of ours.

    Such a thread would call into an interpreter that is being taken down, and crash.
    """
    if any(thread.daemon for thread in threading.enumerate()):
        discard_unfinished()
        with contextlib.suppress(OSError, ValueError, NndeployError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def run_command(arguments: Sequence[str]) -> int:
    """Returns the exit code of one command; errors have been printed, and the answer where JSON was asked for."""
    answer.forget()
    be_quiet(is_quiet=False)
    given = list(arguments)
    try:
        code = _invoke(given)
        _answer(given, code, None)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader has enough
        give_up_output()
        return BROKEN_PIPE
    except NndeployError as err:
        return _failed(err if isinstance(err, InputOutputError) else shortage_of_files(err) or err, given)
    except KeyboardInterrupt:
        _say("nndeploy: interrupted")
        return _failed_quietly(given, INTERRUPTED)
    except SystemExit as err:
        _failed_quietly(given, err.code if isinstance(err.code, int) else TERMINATED)
        raise
    except Exception as err:
        if (short := shortage(err)) is not None:
            return _failed(short, given)
        traceback.print_exc()
        _say("nndeploy: error[internal]: this is a bug of nndeploy; please report the lines above")
        return _failed_quietly(given, NndeployError.exit_code, NndeployError(one_line(str(err)) or type(err).__name__))


def _invoke(arguments: list[str]) -> int:
    """Returns the exit code of a command that did not fail."""
    if asked := os.environ.get("_NNDEPLOY_COMPLETE"):
        from nndeploy.cli.help.shell_completion import answer_shell

        return answer_shell(cli, asked)
    try:
        with cli.make_context("nndeploy", arguments) as context, _heartbeat(arguments):
            cli.invoke(context)
            return 0
    except click.exceptions.NoArgsIsHelpError as err:
        _say(err.format_message())
        return UsageError.exit_code
    except click.exceptions.Exit as err:
        return err.exit_code
    except click.Abort as err:
        raise KeyboardInterrupt from err
    except click.ClickException as err:
        raise _usage_error(err, arguments) from err


def _heartbeat(arguments: Sequence[str]) -> AbstractContextManager[object]:
    """Says every few seconds that a command is at work which has no progress of its own."""
    if not arguments or arguments[0] not in AT_WORK:
        return nullcontext()
    from nndeploy.cli.views.progress import Heartbeat

    return Heartbeat(f"{arguments[0]} is still running")


def _usage_error(err: click.ClickException, arguments: Sequence[str]) -> UsageError:
    context: click.Context | None = getattr(err, "ctx", None)
    path = context.command_path if context is not None else "nndeploy"
    if context is not None and isinstance(err, click.NoSuchOption):
        return _no_option(path, err.option_name, _meant(err.option_name, context.command))
    text, hint = err.format_message().rstrip("."), ""
    if isinstance(err, click.BadParameter) and err.param is not None:
        hint = other_words.value_hint(err.param.opts, arguments)
    elif context is not None and (found := _NO_COMMAND.match(text)):
        known = context.command.list_commands(context) if isinstance(context.command, click.Group) else ()
        text = f"{path} has no command {found[1]!r:.80}"
        hint = other_words.command_hint(path.removeprefix("nndeploy "), found[1], known)
    elif found := _TOO_MANY.match(text):
        text, hint = f"unexpected argument: {found[1]}", other_words.BEHIND.get(path.removeprefix("nndeploy "), "")
    return UsageError(text, hint="; ".join(filter(None, (hint, f"see {path} --help"))))


def _no_option(path: str, name: str, hint: str) -> UsageError:
    return UsageError(f"{path} has no option {name!r:.80}", hint="; ".join(filter(None, (hint, f"see {path} --help"))))


def _meant(option: str, command: click.Command) -> str:
    """Says which option was meant: by who knows another tool, by a slip, or of another command."""
    if option in other_words.OPTIONS:
        return other_words.OPTIONS[option]
    if near := nearest(option, _options_of(command)):
        return f"did you mean {near!r}?"
    others = [name for name in COMMANDS if option in _options_of(cli.get_command(click.Context(cli), name))]
    return f"it is an option of {', '.join(others)}" if others else ""


def _options_of(command: click.Command | None) -> list[str]:
    parameters = command.params if command is not None else ()
    return [text for one in parameters for text in (*one.opts, *one.secondary_opts) if text.startswith("--")]


def _answer(arguments: list[str], code: int, error: NndeployError | None) -> None:
    """Prints the answer of a command that ended with `code`, where its line asks for JSON."""
    if answer.is_wanted(arguments):
        command = next((argument for argument in arguments if argument in COMMANDS), "")
        found = answer.document(command, code, error)
        if found is not None:
            print(json.dumps(found, indent=2, allow_nan=False))


def _failed_quietly(arguments: list[str], code: int, error: NndeployError | None = None) -> int:
    """Answers a failure that has been told; whether that can be written no longer matters."""
    try:
        _answer(arguments, code, error)
        sys.stdout.flush()
    except (OSError, NndeployError):
        give_up_output()  # the error that is being told came first
    return code


def _failed(err: NndeployError, arguments: list[str]) -> int:
    _failed_quietly(arguments, err.exit_code, err)
    _say(f"nndeploy: error[{err.code}]: {err}")
    annotate("error", str(err))
    return err.exit_code


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _terminate(number: int, frame: FrameType | None) -> Any:  # noqa: ARG001 - a signal handler's form
    raise SystemExit(128 + number)
