# SPDX-License-Identifier: Apache-2.0
"""A file in which a backend keeps something for later processes of the same account, in a folder of a cache.

What is in it may be code, so a file is read only where nobody but this user could have written it; writing is atomic,
and where it cannot be done the cache is simply not kept, unless a user asked for it (`check_writable`, `not_kept`).
"""

import contextlib
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

from nndeploy.errors import InputOutputError

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def opened_cache(path: Path) -> int | None:
    """Returns the descriptor of a cache file; None where there is none, or where someone else could have written it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    if _is_ours(os.fstat(descriptor)) and _is_ours_folder(path.parent):
        return descriptor
    os.close(descriptor)
    return None


def read_cache(path: Path, max_bytes: int) -> bytes:
    """Returns what a cache file of at most `max_bytes` holds; b"" where `opened_cache` gives none."""
    descriptor = opened_cache(path)
    if descriptor is None:
        return b""
    try:
        with os.fdopen(descriptor, "rb") as file:
            return file.read(max_bytes) if os.fstat(descriptor).st_size <= max_bytes else b""
    except OSError:
        return b""


def write_cache(path: Path, data: bytes, prefix: str) -> bool:
    """Writes a cache file in one step, under a temporary name that begins with `prefix`; returns whether it could."""

    def write(descriptor: int) -> None:
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.write(data)

    return keep_cache(path, write, prefix)


def keep_cache(path: Path, write: Callable[[int], None], prefix: str) -> bool:
    """Does what `write_cache` does with a file that `write` fills, which gets its descriptor and may raise OSError."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=prefix, dir=path.parent)
    except OSError:
        return False
    try:
        try:
            write(descriptor)
        finally:
            os.close(descriptor)
        Path(temporary).replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        return False
    return True


def check_writable(path: Path | None) -> None:
    """Passes a folder in which a file can be written; it is made where it is not there.

    Raises:
        InputOutputError: it cannot, or there is no folder.
    """
    if path is None:
        raise InputOutputError("there is no cache folder", hint="name one with --cache FOLDER")
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise not_kept(path)


def not_kept(path: Path) -> InputOutputError:
    """Returns the error of a file that a user asked for, and that cannot be written."""
    hint = "name a folder that can be written, with room, with --cache FOLDER"
    return InputOutputError("the cache file cannot be written", where=str(path), hint=hint)


def _is_ours(found: os.stat_result) -> bool:
    return (
        stat.S_ISREG(found.st_mode)
        and found.st_uid == os.getuid()
        and found.st_nlink == 1
        and not found.st_mode & _WRITABLE_BY_OTHERS
    )


def _is_ours_folder(folder: Path) -> bool:
    found = folder.stat()
    return found.st_uid in (os.getuid(), 0) and not found.st_mode & _WRITABLE_BY_OTHERS
