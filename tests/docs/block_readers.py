# SPDX-License-Identifier: Apache-2.0
"""What reads blocks that are not run: TOML is read by what takes such a file, calls of nndeploy by their command.

A TOML block may be a part of a file. Its keys tell which kind of file, and `PARTS` what stands around it there.
"""

import contextlib
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click

from nndeploy.cli.main import COMMANDS, cli
from nndeploy.compiler.option_texts import image_input
from nndeploy.errors import MissingInputError
from nndeploy.farm.fleet_file import fleet_from_toml
from nndeploy.processors.parameters import FilesBeside
from nndeploy.stream.pipeline.checked_plan import checked_plan
from nndeploy.stream.pipeline.pipeline_file import pipeline_from_toml
from nndeploy.target.target import target_from_toml

LEVEL = "[[level]]\n[[level.pipeline]]\n"
PARTS: Mapping[frozenset[str], str] = MappingProxyType(
    {
        frozenset({"steps"}): f"{LEVEL}[[level.pipeline.loader]]\n",
        frozenset({"carry"}): LEVEL,
        frozenset({"carry", "session", "sessions"}): LEVEL,
        frozenset({"report"}): '[[models]]\nfiles = ["digits.onnx"]\n',
        frozenset({"options"}): '[[models]]\nfiles = ["digits.onnx"]\n',
        frozenset({"matrix"}): '[[models]]\nfiles = ["digits.onnx"]\n',
    }
)
"""Keys of a part -> what stands before it in a whole file."""


def read_toml(text: str, path: Path) -> None:
    """Writes a block to a file and has it read.

    Raises:
        ValueError: it is not TOML, or nothing is known that reads it.
        NndeployError: what reads it refuses it.
    """
    keys = frozenset(tomllib.loads(text))
    before = PARTS.get(keys, "")
    if keys == {"level"} and text.startswith("[level."):
        before = LEVEL
    path.write_text(before + text)
    read = next((read for marks, read in READERS.items() if marks & set(tomllib.loads(before + text))), None)
    if read is None:
        raise ValueError(f"no command is known that reads a file with {', '.join(sorted(keys))}")
    read(path)


def _read_pipeline(path: Path) -> None:
    beside = FilesBeside(lambda name: (path.parent / name).read_bytes(), path.parent, is_here=False)
    file = pipeline_from_toml(path.read_bytes(), path.name, beside)
    if file.sources and all(one.runner is None for one in file.pipelines):
        assert checked_plan(file, {})[0].fields


def _read_config(path: Path) -> None:
    parse_call(["compile", "digits.onnx", "-o", "digits.nnd", "--config", str(path)])


def _read_by_pip(path: Path) -> None:
    """The page installs from it."""


READERS: Mapping[frozenset[str], Callable[[Path], Any]] = MappingProxyType(
    {
        frozenset({"models"}): fleet_from_toml,
        frozenset({"arch"}): target_from_toml,
        frozenset({"level"}): _read_pipeline,  # behind targets, which may have a level too
        frozenset({"channels"}): lambda path: image_input(str(path)),
        frozenset({"goldens"}): _read_config,
        frozenset({"build-system"}): _read_by_pip,
    }
)
"""Keys, of which one is in each such file -> what reads it."""


def calls(text: str) -> Iterator[list[str]]:
    """Yields the words behind `nndeploy` of each call of it in lines for a shell."""
    for line in text.replace("\\\n", " ").splitlines():
        words: list[str] = []
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        for word in [*lexer, ";"]:
            if word[0] not in ";&|<>":
                words.append(word)
            elif "nndeploy" in words:
                behind = words[words.index("nndeploy") + 1 :]
                if words[0] == "nndeploy" or behind[0] in COMMANDS:  # else it is the name of a container
                    yield behind
            if word[0] in ";&|<>":
                words = []


def parse_call(words: list[str]) -> None:
    """Has a call read by its command, which is not run.

    Raises:
        click.ClickException, NndeployError: there is no such command, or it does not take that.
    """
    command: click.Command | None = cli
    while isinstance(command, click.Group):
        name, *words = words
        command = command.get_command(click.Context(command), name)
    if command is None:
        raise click.UsageError(f"there is no command {name}")
    with contextlib.suppress(MissingInputError):  # of a name that is not installed here
        command.make_context(name, words)
