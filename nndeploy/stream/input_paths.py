# SPDX-License-Identifier: Apache-2.0
"""The files that the texts of `run --input` stand for, where a pipeline says what kind of file they are.

A text is a file, a folder (its files with the right suffixes, hidden ones left out) or a glob; files that are named
one by one are taken whatever they are called.

Law: files come in the order of the texts, those of a folder or glob as people count (a2 before a10).
"""

import glob
from collections.abc import Sequence
from pathlib import Path

from nndeploy.errors import MissingInputError
from nndeploy.stream.sources import natural_key


def paths_from_texts(texts: Sequence[str], suffixes: Sequence[str]) -> list[Path]:
    """Returns the files; folders and globs give those whose names end in `suffixes`, all if there are none.

    Raises:
        MissingInputError: a file or folder is missing, or a folder or glob holds nothing to read.
    """
    return [path for text in texts for path in _paths_of(text, tuple(suffixes))]


def _paths_of(text: str, suffixes: tuple[str, ...]) -> list[Path]:
    path = Path(text)
    try:
        if not path.is_dir():
            path.stat()
            return [path]
        found = [child for child in path.iterdir() if _is_taken(child, suffixes)]
    except (OSError, ValueError) as err:
        if glob.has_magic(text):
            return _globbed(text, suffixes)
        reason = "no such file or folder" if isinstance(err, FileNotFoundError) else f"cannot be read: {err}"
        raise MissingInputError(reason, where=text) from err
    if not found:
        raise MissingInputError(f"holds no {', '.join(suffixes) or 'regular'} files", where=text)
    return sorted(found, key=lambda child: natural_key(child.name))


def _globbed(text: str, suffixes: tuple[str, ...]) -> list[Path]:
    found = [Path(name) for name in glob.glob(text, recursive=True)]  # noqa: PTH207 - the text may be absolute
    found = [path for path in found if _is_taken(path, suffixes)]
    if not found:
        raise MissingInputError(f"matches no {', '.join(suffixes) or 'regular'} files", where=text)
    return sorted(found, key=lambda path: natural_key(str(path)))


def _is_taken(path: Path, suffixes: tuple[str, ...]) -> bool:
    if path.name.startswith("."):
        return False
    return path.suffix.lower() in suffixes if suffixes else path.is_file()
