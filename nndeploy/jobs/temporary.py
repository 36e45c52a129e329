# SPDX-License-Identifier: Apache-2.0
"""Temporary folders, and what to say where the disk below them is full or fails: it would hit every backend alike."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nndeploy.errors import CannotCreateError, InputOutputError
from nndeploy.files.held_folder import HeldFolder

NO_SPACE = InputOutputError.exit_code
"""The exit status of a child that could not write its answer."""

DISK_FAILS = 5
"""The exit status of a child that could not either, though there is space."""


@contextmanager
def temporary_folder(what: str, inside: str | None = None) -> Iterator[Path]:
    """Yields a new folder, removed at the end; `inside` another one, or where the system has them.

    Raises:
        CannotCreateError: none can be made.
        InputOutputError: the disk ran full or failed, here or while it was in use.
    """
    try:
        folder = HeldFolder(what, inside)
    except OSError as err:
        raise (
            no_space()
            if lacks_space(err)
            else CannotCreateError(f"no temporary folder can be made: {err.strerror}", hint="name one with TMPDIR")
        ) from err
    with folder as path:
        try:
            yield path
        except OSError as err:
            if (known := disk_error(err)) is not None:
                raise known from err
            raise


def lacks_space(error: BaseException | None) -> bool:
    """Returns whether an error is, or comes of, a disk that is full."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        error = error.__cause__ or error.__context__
    return False


def disk_error(error: OSError) -> InputOutputError | None:
    """Returns what to say of a disk that is full or fails; None where an error comes of something else."""
    if lacks_space(error):
        return no_space()
    return disk_fails() if error.errno in (errno.EIO, errno.EINTR) else None  # closing a file may be interrupted


def no_space() -> InputOutputError:
    """Returns the error that says so."""
    return InputOutputError("no space is left for temporary files", hint="make room, or name another folder in TMPDIR")


def disk_fails() -> InputOutputError:
    """Returns the error that says so."""
    return InputOutputError("the disk of the temporary files fails", hint="name another folder in TMPDIR")
