# SPDX-License-Identifier: Apache-2.0
"""Temporary folders, and what to say where the disk below them is full or fails: it would hit every backend alike."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nndeploy.errors import CannotCreateError, InputOutputError, full_disk, lacks_space
from nndeploy.files.held_folder import HeldFolder

NO_SPACE = InputOutputError.exit_code
"""The exit status of a child that could not write its answer."""

SPARE_BYTES, COPIES = 1 << 20, 4
"""What a library may write beside copies of its model, and how many of these; it is gone when it says why it failed."""

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
            full_disk()
            if lacks_space(err)
            else CannotCreateError(
                f"cannot create a temporary folder: {err.strerror}", hint="set TMPDIR to a writable folder"
            )
        ) from err
    with folder as path:
        try:
            yield path
        except OSError as err:
            if (known := disk_error(err)) is not None:
                raise known from err
            raise


def disk_error(error: Exception) -> InputOutputError | None:
    """Returns what to say of a disk that is full or fails; None where an error comes of something else."""
    if lacks_space(error):
        return full_disk()
    fails = isinstance(error, OSError) and error.errno in (errno.EIO, errno.EINTR)  # closing a file may be interrupted
    return disk_fails() if fails else None


def is_nearly_full(folder: str, num_bytes: int = 0) -> bool:
    """Returns whether the disk of a folder hardly takes files of so many bytes: who fails there is not believed why."""
    found = os.statvfs(folder)
    least = SPARE_BYTES + COPIES * num_bytes
    return found.f_bavail * found.f_frsize < least or (found.f_files > 0 and found.f_favail < COPIES)


def disk_fails() -> InputOutputError:
    """Returns the error that says so."""
    return InputOutputError("the disk of the temporary files has failed", hint="set TMPDIR to another folder")
