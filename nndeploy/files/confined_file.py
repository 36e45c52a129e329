# SPDX-License-Identifier: Apache-2.0
"""Reads a file below a folder by a name that somebody else wrote, such as one in a record of a stream.

Law: nothing but a regular file below the folder is ever opened for reading, whatever the name is and whoever changes
the folder meanwhile. Each part of the name is opened within the folder before it, and a link at any place is refused,
so there is no moment between a check and its use.
"""

import errno
import os
import stat
from pathlib import Path

from nndeploy.errors import InputError, InputOutputError, MissingInputError
from nndeploy.files.whole_files import let_go

MAX_NAME_BYTES = 4096
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY


def read_confined(folder: Path, name: str, max_bytes: int) -> bytes:
    """Returns the content of the file `name`, its parts separated by "/", below `folder`, which may be a link itself.

    Raises:
        InputError: the name leaves the folder, is a link, no regular file, or one of more than `max_bytes`.
        MissingInputError: there is no such file, or it may not be read.
        InputOutputError: reading failed half way.
    """
    parts = _parts_of(name)
    descriptor = _opened(folder, parts, name)
    try:
        return _content(descriptor, name, max_bytes)
    except OSError as err:
        raise InputOutputError(f"reading failed: {err.strerror}", where=repr(name)) from err
    finally:
        let_go(descriptor)


def _parts_of(name: str) -> list[bytes]:
    """Returns the parts of a name that stays below the folder that it is in."""
    try:
        encoded = os.fsencode(name)
    except UnicodeEncodeError as err:
        raise InputError(f"{name!r:.80} is not a file name") from err
    if not encoded or b"\0" in encoded or len(encoded) > MAX_NAME_BYTES:
        raise InputError(f"{name!r:.80} is not a file name")
    if encoded.startswith(b"/"):
        raise InputError(f"{name!r:.80} is absolute", hint="use a path relative to the folder")
    parts = encoded.split(b"/")
    if b".." in parts:
        raise InputError(f"{name!r:.80} is outside the folder", hint="use a path relative to the folder")
    if b"" in parts or b"." in parts:
        raise InputError(f"{name!r:.80} is not a plain name: a part is empty or a dot")
    return parts


def _opened(folder: Path, parts: list[bytes], name: str) -> int:
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as err:
        raise MissingInputError(f"the folder cannot be opened: {err.strerror}", where=str(folder)) from err
    for number, part in enumerate(parts, 1):
        flags = _FLAGS | (os.O_DIRECTORY if number < len(parts) else 0)
        try:
            inner = os.open(part, flags, dir_fd=descriptor)
        except OSError as err:
            raise _refusal(err, descriptor, part, name) from err
        finally:
            let_go(descriptor)
        descriptor = inner
    return descriptor


def _refusal(err: OSError, folder: int, part: bytes, name: str) -> InputError | MissingInputError:
    if err.errno == errno.ELOOP or (err.errno == errno.ENOTDIR and _is_link(folder, part)):
        return InputError(f"{os.fsdecode(part)!r} is a symbolic link, which is not followed", where=repr(name))
    if err.errno in (errno.ENXIO, errno.ENODEV):  # a socket, or a device without a driver
        return InputError("is not a regular file", where=repr(name))
    if err.errno in (errno.ENOENT, errno.ENOTDIR):
        return MissingInputError("no such file", where=repr(name))
    return MissingInputError(f"cannot be read: {err.strerror}", where=repr(name))


def _is_link(folder: int, part: bytes) -> bool:
    try:
        return stat.S_ISLNK(os.stat(part, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _content(descriptor: int, name: str, max_bytes: int) -> bytes:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        raise InputError("is not a regular file", where=repr(name))
    if found.st_size > max_bytes:
        raise InputError(f"has {found.st_size} bytes, more than {max_bytes}", where=repr(name))
    with os.fdopen(os.dup(descriptor), "rb") as file:
        data = file.read(max_bytes + 1)  # it may grow meanwhile
    if len(data) > max_bytes:
        raise InputError(f"has more than {max_bytes} bytes", where=repr(name))
    return data
