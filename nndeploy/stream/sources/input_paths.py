# SPDX-License-Identifier: Apache-2.0
"""The files that the texts of `run --input` stand for.

A text is a file, a folder (its files with the right suffixes, hidden ones left out) or a glob; files that are named
one by one are taken whatever they are called.

Law: files come in the order of the texts, those of a folder or glob as people count (a2 before a10).
"""

import glob
import re
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

from nndeploy.errors import MissingInputError


def paths_from_texts(
    texts: Sequence[str], suffixes: Sequence[str], is_matched: Callable[[Path], bool] | None = None
) -> list[Path]:
    """Returns the files; folders and globs give those whose names end in `suffixes`, all if there are none.

    `is_matched` says which files a glob gives, where these are others than those of a folder.

    Raises:
        MissingInputError: a file or folder is missing, or a folder or glob holds nothing to read.
    """
    kinds = f"{', '.join(suffixes) or 'regular'} files"

    def is_taken(path: Path) -> bool:
        if path.name.startswith("."):
            return False
        return path.suffix.lower() in suffixes if suffixes else path.is_file()

    return [path for text in texts for path in _paths_of(text, kinds, is_taken, is_matched or is_taken)]


def _paths_of(
    text: str, kinds: str, is_taken: Callable[[Path], bool], is_matched: Callable[[Path], bool]
) -> list[Path]:
    """Returns the files that a text stands for, at least one."""
    path = Path(text)
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as err:
        return _globbed(text, err, kinds, is_matched)
    if not stat.S_ISDIR(mode):
        return [path]
    try:
        files = [child for child in path.iterdir() if is_taken(child)]
    except OSError as err:
        raise MissingInputError(f"the folder cannot be read: {err.strerror}", where=text) from err
    if not files:
        raise MissingInputError(f"holds no {kinds}", where=text)
    return sorted(files, key=lambda child: natural_key(child.name))


def _globbed(text: str, err: Exception, kinds: str, is_matched: Callable[[Path], bool]) -> list[Path]:
    if not glob.has_magic(text):
        reason = "no such file or folder" if isinstance(err, FileNotFoundError) else f"cannot be read: {err}"
        raise MissingInputError(reason, where=text) from err
    files = [Path(found) for found in glob.glob(text, recursive=True)]  # noqa: PTH207 - the text may be absolute
    files = [path for path in files if is_matched(path)]
    if not files:
        raise MissingInputError(f"matches no {kinds}", where=text)
    return sorted(files, key=lambda path: natural_key(str(path)))


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """Returns a key that sorts a2 before a10."""
    parts = re.findall(r"([0-9]+)|([^0-9]+)", name)
    return [(0, int(digits), digits) if digits else (1, 0, text) for digits, text in parts]
