# SPDX-License-Identifier: Apache-2.0
"""The files that the texts of `run --input` stand for.

A text is a file, a folder (its files with the right suffixes, hidden ones left out), a glob or a pipe; what is named
directly is taken whatever it is called.

Laws: files come in the order of the texts, those of a folder or glob as people count (a2 before a10). A file of a
folder or glob is taken or counted as passed over.
"""

import glob
import re
import stat
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from nndeploy.errors import MissingInputError
from nndeploy.files.globs import brace_hint
from nndeploy.files.whole_files import NamedPipe

DESCRIPTOR = re.compile(r"/dev/(stdin|fd/[0-9]+)|/proc/(self|[0-9]+)/fd/[0-9]+")


def paths_from_texts(
    texts: Sequence[str], suffixes: Sequence[str], more: Sequence[str] = ()
) -> tuple[list[Path], Counter[str]]:
    """Returns the files, and how many others of each suffix were passed over.

    Folders and globs give those whose names end in `suffixes`, all if there are none; globs also those in `more`.

    Raises:
        MissingInputError: a file or folder is missing, or a folder or glob holds nothing to read.
    """
    found, passed_over = list[Path](), Counter[str]()
    for text in texts:
        found += _paths_of(text, suffixes, more, passed_over)
    return found, passed_over


def _paths_of(text: str, suffixes: Sequence[str], more: Sequence[str], passed_over: Counter[str]) -> list[Path]:
    """Returns the files that a text stands for, at least one."""
    path, kinds = Path(text), f"{', '.join(suffixes) or 'regular'} files"
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as err:
        found = _globbed(text, err)
        taken = _taken(found, (*suffixes, *more) if suffixes else (), passed_over)
        if not taken:
            hint = passed_over_text(passed_over) or brace_hint(text)
            raise MissingInputError(f"matches no {kinds}", where=text, hint=hint) from err
        return sorted(taken, key=lambda path: natural_key(str(path)))
    if not stat.S_ISDIR(mode):
        return [named(path)]
    try:
        taken = _taken(list(path.iterdir()), suffixes, passed_over)
    except OSError as err:
        raise MissingInputError(f"the folder cannot be read: {err.strerror}", where=text) from err
    if not taken:
        raise MissingInputError(f"holds no {kinds}", where=text, hint=passed_over_text(passed_over))
    return sorted(taken, key=lambda child: natural_key(child.name))


def named(path: Path) -> Path:
    """Returns a path that the user named, as a `NamedPipe` where it is a FIFO or a descriptor such as /dev/stdin."""
    try:
        is_pipe = DESCRIPTOR.fullmatch(str(path)) or stat.S_ISFIFO(path.stat().st_mode)
    except (OSError, ValueError):
        return path
    return NamedPipe(path) if is_pipe else path


def _taken(found: Sequence[Path], suffixes: Sequence[str], passed_over: Counter[str]) -> list[Path]:
    taken = list[Path]()
    for path in found:
        if path.name.startswith("."):
            continue
        if path.suffix.lower() in suffixes if suffixes else path.is_file():
            taken.append(path)
        elif not path.is_dir():
            passed_over[path.suffix.lower()] += 1
    return taken


def _globbed(text: str, err: Exception) -> list[Path]:
    if not glob.has_magic(text):
        reason = "no such file or folder" if isinstance(err, FileNotFoundError) else f"cannot be read: {err}"
        raise MissingInputError(reason, where=text, hint=brace_hint(text)) from err
    return [Path(found) for found in glob.glob(text, recursive=True)]  # noqa: PTH207 - the text may be absolute


def passed_over_text(counts: Counter[str]) -> str:
    """Returns how many files of each suffix were passed over, "" where none was."""
    if not counts:
        return ""
    files = "1 file" if counts.total() == 1 else f"{counts.total():,} files"
    kinds = ", ".join(f"{suffix or 'no suffix'} {number:,}" for suffix, number in counts.most_common())
    return f"{files} passed over: {kinds}"


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """Returns a key that sorts a2 before a10."""
    parts = re.findall(r"([0-9]+)|([^0-9]+)", name)
    return [(0, int(digits), digits) if digits else (1, 0, text) for digits, text in parts]
