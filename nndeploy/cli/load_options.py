# SPDX-License-Identifier: Apache-2.0
"""The options that every command which loads a bundle shares, and the loading itself."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from nndeploy.bundle.pace_plan_file import PacePlanFile
from nndeploy.cli.console import warn
from nndeploy.cli.progress import Heartbeat
from nndeploy.errors import MissingInputError
from nndeploy.pacing.goal import PaceGoal
from nndeploy.runtime.program import Program, load_bundle

_Command = TypeVar("_Command", bound=Callable[..., Any])

BUNDLE = click.argument("bundle", type=click.Path(path_type=Path))

_OPTIONS = (
    click.option(
        "--threads", type=click.IntRange(min=1), help="How many threads each submodel may use. Default: its library's."
    ),
    click.option(
        "--device",
        default="auto",
        show_default=True,
        help="Where to run: auto (a GPU where a chain is for it), cpu, or cuda:N (that GPU or an error).",
    ),
    click.option("--strict", is_flag=True, help="Fail where this machine cannot take the best chain or variant."),
    click.option(
        "--cache",
        metavar="FOLDER",
        help="The folder for what is compiled for this GPU; '' for none. Default: BUNDLE.cache.",
    ),
    click.option(
        "--custom-ops",
        multiple=True,
        type=click.Path(path_type=Path),
        help="Shared library with operators that the bundle needs (repeatable). It is code: name only what you trust.",
    ),
    click.option("--no-native-code", is_flag=True, help="Take no variant that holds executable code."),
)


def load_options(command: _Command) -> _Command:
    """Adds the shared options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def load(bundle: Path, options: dict[str, Any], pace: PaceGoal | PacePlanFile | None = None) -> Program:
    """Returns the program of a bundle, paced where that is asked; tells which submodels did not get their best variant.

    Raises:
        MissingInputError: the bundle or a library of operators is missing.
        UnavailableError: a submodel has no variant that can run here.
    """
    for library in options["custom_ops"]:
        if not library.is_file():
            raise MissingInputError("no such library of operators", where=str(library))
    with Heartbeat(f"loading {bundle}"):
        program = load_bundle(
            bundle,
            threads=options["threads"],
            device=options["device"],
            strict=options["strict"],
            custom_op_libraries=[library.absolute() for library in options["custom_ops"]],
            allow_native_code=not options["no_native_code"],
            cache_dir=options["cache"],
            pace=pace,
        )
    for line in program.warnings:
        warn(line)
    return program
