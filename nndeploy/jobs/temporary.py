# SPDX-License-Identifier: Apache-2.0
"""Temporary folders, and what to say where the disk below them is full: it would hit every backend alike."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nndeploy.errors import CannotCreateError, InputOutputError
from nndeploy.files.held_folder import HeldFolder

NO_SPACE = InputOutputError.exit_code
"""The exit status of a child that could not write its answer."""


@contextmanager
def temporary_folder(what: str, inside: str | None = None) -> Iterator[Path]:
    """Yields a new folder, removed at the end; `inside` another one, or where the system has them.

    Raises:
        CannotCreateError: none can be made.
        InputOutputError: the disk ran full, here or while it was in use.
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
            if lacks_space(err):
                raise no_space() from err
            raise


def lacks_space(error: BaseException | None) -> bool:
    """Returns whether an error is, or comes of, a disk that is full."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        error = error.__cause__ or error.__context__
    return False


def no_space() -> InputOutputError:
    """Returns the error that says so."""
    return InputOutputError("no space is left for temporary files", hint="make room, or name another folder in TMPDIR")
