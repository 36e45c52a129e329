# SPDX-License-Identifier: Apache-2.0
"""Files by globs: `models/**/*.onnx`, `!**/*-int4.onnx`.

Within one part of a path `*`, `?` and `[..]` are as in a shell; `**` stands for any number of folders. What begins
with a dot is found only where the glob has the dot. `**` does not go into links to folders, which may lead in circles.
A glob that begins with `!` takes files away that others found. Law: the same files lie there, the same come out,
sorted, whatever the order of the globs.
"""

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from glob import escape
from itertools import pairwise, takewhile
from pathlib import Path

from nndeploy.errors import DataError, MissingInputError
from nndeploy.farm.rooted_path import rooted_path
from nndeploy.files.globs import brace_hint

_ESCAPED = re.compile(r"\[([*?\[])\]")
_ANY_DEPTH = "**"


def matching_files(folder: Path, globs: Sequence[str]) -> list[str]:
    """Returns the absolute paths of the files that globs, relative to `folder`, find.

    Raises:
        MissingInputError: a glob finds nothing, or the others take all of it away.
        DataError: a glob cannot be a path, or a folder cannot be read.
    """
    found, excluded = set[str](), [_parts(folder, glob[1:]) for glob in globs if glob.startswith("!")]
    for glob in globs:
        if glob.startswith("!"):
            continue
        files = {str(path) for path in _matching(Path("/"), _parts(folder, glob))}
        if not files:
            hint = brace_hint(glob) or f"searched from {folder}"
            raise MissingInputError(f"no file matches {glob!r:.120}", hint=hint)
        found |= files
    kept = [file for file in found if not any(_is_match(Path(file).parts[1:], parts) for parts in excluded)]
    if not kept:
        raise MissingInputError(f"what is excluded leaves no file: {', '.join(globs):.200}")
    return sorted(kept)


def _parts(folder: Path, glob: str) -> tuple[str, ...]:
    """Returns the parts below the root of what a glob means; `**` at its end means all files below."""
    parts = Path(rooted_path(Path(escape(str(folder))), glob)).parts[1:]
    once = tuple(part for before, part in pairwise(("", *parts)) if not before == part == _ANY_DEPTH)
    return (*once, "*") if once and once[-1] == _ANY_DEPTH else once


def _matching(folder: Path, parts: Sequence[str]) -> Iterator[Path]:
    """Yields the files below `folder` that match."""
    names = list(takewhile(lambda name: name is not None, map(_literal, parts)))
    plain, folder = len(names), folder.joinpath(*filter(None, names))
    if plain == len(parts):
        if _is_file(folder):
            yield folder
        return
    first, rest = parts[plain], parts[plain + 1 :]
    if first == _ANY_DEPTH:
        for below, folders, _ in os.walk(folder, onerror=_refuse):
            folders[:] = [name for name in folders if not name.startswith(".")]
            yield from _matching(Path(below), rest)
    else:
        for name in _names(folder):
            if _is_part(name, first):
                yield from _matching(folder / name, rest)


def _literal(part: str) -> str | None:
    """Returns the one name that a part of a glob means, None where it may mean several."""
    name = _ESCAPED.sub(r"\1", part)
    return name if escape(name) == part else None


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - names are what is compared
    except OSError as err:
        _refuse(err)
        return []


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError as err:
        _refuse(err)
        return False


def _refuse(err: OSError) -> None:
    """Raises for what cannot be read; what is not there, or is no folder, holds nothing."""
    if not isinstance(err, FileNotFoundError | NotADirectoryError):
        raise DataError(f"{str(err.filename)!r:.200} cannot be read: {err.strerror}") from err


def _is_part(name: str, glob: str) -> bool:
    return fnmatchcase(name, glob) and (glob.startswith(".") or not name.startswith("."))


def _is_match(names: Sequence[str], parts: Sequence[str]) -> bool:
    if not parts:
        return not names
    if parts[0] != _ANY_DEPTH:
        return bool(names) and _is_part(names[0], parts[0]) and _is_match(names[1:], parts[1:])
    return any(_is_match(names[start:], parts[1:]) for start in range(len(names) + 1))
