# SPDX-License-Identifier: Apache-2.0
"""Opens files that somebody else wrote, and creates files so that a reader sees the whole of one or none.

Reading: regular files alone (a pipe or a device would hang), and pipes that the user named, never more than a limit.
Writing: into a temporary
file that did not exist, in the folder where the result will stand, then renamed over it; nothing is followed or
written outside that folder.
"""

import contextlib
import errno
import fcntl
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path, PosixPath
from typing import BinaryIO
from weakref import WeakSet

from nndeploy.errors import (
    BusyError,
    CannotCreateError,
    InputError,
    InputOutputError,
    MissingInputError,
    NndeployError,
    lacks_files,
)
from nndeploy.files.account_folders import home

MAX_FILE_BYTES = 2 << 30
MAX_STEM_LENGTH = 80


class NamedPipe(PosixPath):
    """A pipe that the user named, so that it is waited for; `opened` is it where it is open already."""

    opened: BinaryIO | None = None


def open_regular(path: Path, max_bytes: int = MAX_FILE_BYTES) -> BinaryIO:
    """Returns the file at `path`, open for reading; of a `NamedPipe` a temporary copy of all that comes out of it.

    Raises:
        MissingInputError: there is no such file, or it may not be read.
        InputError: it is not a regular file, or larger than `max_bytes`.
        InputOutputError: the disk failed, or too many files are open.
    """
    if isinstance(path, NamedPipe):
        return _copied(path, max_bytes)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (FileNotFoundError, NotADirectoryError, ValueError) as err:
        raise MissingInputError("no such file", where=str(path)) from err
    except OSError as err:
        if err.errno == errno.EIO or lacks_files(err):  # it may well be there
            raise InputOutputError(f"cannot be read: {err.strerror}", where=str(path)) from err
        raise MissingInputError(f"cannot be read: {err.strerror}", where=str(path)) from err
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        let_go(descriptor)
        raise InputError("is not a regular file", where=str(path))
    if status.st_size > max_bytes:
        let_go(descriptor)
        raise InputError(f"has {status.st_size} bytes, more than {max_bytes}", where=str(path))
    return os.fdopen(descriptor, "rb")


def _copied(pipe: NamedPipe, max_bytes: int) -> BinaryIO:
    with contextlib.ExitStack() as stack:
        stack.enter_context(reading(pipe))
        source = stack.enter_context(pipe.opened or pipe.open("rb"))
        copy = stack.enter_context(tempfile.TemporaryFile())
        while piece := source.read(1 << 20):
            if copy.tell() + len(piece) > max_bytes:
                raise InputError(f"has more than {max_bytes} bytes", where=str(pipe))
            copy.write(piece)
        copy.seek(0)
        return os.fdopen(os.dup(copy.fileno()), "rb")


def read_regular(path: Path, max_bytes: int = MAX_FILE_BYTES) -> bytes:
    """Returns the content of a file; raises as `open_regular` does.

    Raises:
        InputOutputError: reading failed half way.
    """
    with reading(path), open_regular(path, max_bytes) as file:
        return file.read()


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turns an `OSError` inside its block into an `InputOutputError` that names `path`."""
    try:
        yield
    except OSError as err:
        raise InputOutputError(f"reading failed: {err.strerror}", where=str(path)) from err


def let_go(descriptor: int) -> None:
    """Closes a descriptor that nothing was written through: a failure, after which it is closed too, means nothing."""
    with contextlib.suppress(OSError):
        os.close(descriptor)


def safe_stem(text: str) -> str:
    """Returns a part of a file name made of the letters, digits, dots, dashes and underscores of `text`."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", text)[:MAX_STEM_LENGTH] or "item"


TEMPORARY = ".nndeploy-"
"""How names of temporary files begin; behind it stand 16 hexadecimal digits and `.tmp`."""
_TEMPORARY_NAME = re.compile(re.escape(TEMPORARY) + r"[0-9a-f]{16}\.tmp")

_swept = set[tuple[int, int]]()
_unfinished = WeakSet["NewFile"]()


class OutputFolder:
    """A folder that results are written into; made if it is missing, in a folder that is there."""

    def __init__(self, path: Path, *, is_own: bool = False) -> None:
        """Opens or makes the folder; `is_own` says that no other run writes into it.

        Raises:
            CannotCreateError: it cannot be made, or is no folder.
            InputOutputError: the disk is full or failed.
        """
        self.path = path
        self._is_own = is_own
        self._not_synced: set[str] = set()
        try:
            path.mkdir(exist_ok=True)
            self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError as err:
            raise no_folder(path) from err
        except (OSError, ValueError) as err:
            raise not_created(err, path, "the folder cannot be made") from err

    @property
    def descriptor(self) -> int:
        """The open folder."""
        return self._descriptor

    def claim(self) -> None:
        """Keeps other runs from writing into the folder until it is closed.

        Raises:
            BusyError: another one does.
        """
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as err:
            self.close()
            raise BusyError("another run is writing this output", where=str(self.path)) from err
        except OSError:
            return  # a file system without locks

    def create(self, name: str) -> "NewFile":
        """Returns a new file that will be called `name` once it is finished.

        Raises:
            CannotCreateError: nothing can be created here.
        """
        return NewFile(self._descriptor, self.path / name)

    def write(self, name: str, write_to: Callable[[BinaryIO], object]) -> Path:
        """Writes the file `name` whole, in place of the one that is there, and returns its path.

        It is not synced, which would cost more than most models: a kill leaves it whole or not there, a loss of
        power may not.

        Raises:
            CannotCreateError: nothing can be created here.
            InputOutputError: writing failed; what was there is still there.
        """
        new = self.create(name)
        try:
            with wrapped_io(new.path):
                write_to(new.file)
            new.finish(sync=False)
        except BaseException:
            new.discard()
            raise
        if self._is_own:
            self._not_synced.add(name)
        return new.path

    def sync(self) -> None:
        """Forces to the disk what was written since the last time, in a folder of one's own.

        Raises:
            InputOutputError: it could not be.
        """
        with wrapped_io(self.path):
            for name in self._not_synced:
                descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=self._descriptor)
                try:
                    os.fsync(descriptor)
                finally:
                    let_go(descriptor)
            os.fsync(self._descriptor)
        self._not_synced.clear()

    def remove(self, name: str) -> None:
        """Removes a file of an earlier run, if there is one."""
        try:
            os.unlink(name, dir_fd=self._descriptor)
        except FileNotFoundError:
            return
        except OSError as err:
            raise InputOutputError(f"cannot be removed: {_reason(err)}", where=str(self.path / name)) from err

    def sweep(self) -> None:
        """Removes what killed writers left half written in it."""
        sweep_temporary(self._descriptor)

    def close(self) -> None:
        """Lets go of the folder."""
        if self._descriptor >= 0:
            let_go(self._descriptor)
            self._descriptor = -1


class NewFile:
    """A file under a temporary name; `finish` gives it its own name, `discard` removes it."""

    def __init__(self, folder: int, path: Path) -> None:
        """Creates the temporary file in the folder with the descriptor `folder`.

        Raises:
            CannotCreateError: the folder is not writable, or `path` is a folder.
            InputOutputError: the disk is full or failed.
        """
        self.path = path
        self._folder = os.dup(folder)
        try:
            if path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            self._temporary, descriptor = self._create(self._folder)
        except OSError as err:
            let_go(self._folder)
            raise not_created(err, path) from err
        except NndeployError:
            let_go(self._folder)
            raise
        self.file: BinaryIO = os.fdopen(descriptor, "wb")
        self._is_open = True
        _unfinished.add(self)

    def _create(self, folder: int) -> tuple[str, int]:
        """Returns the name and the descriptor of the temporary file."""
        return temporary_file(folder)

    def finish(self, *, sync: bool = True) -> None:
        """Closes the file and gives it its name; with `sync` its content is on the disk first.

        Raises:
            InputOutputError: the disk is full or failed; the temporary file is gone.
        """
        try:
            with wrapped_io(self.path):
                self.file.flush()
                if sync:
                    os.fsync(self.file.fileno())
                self.file.close()
                os.replace(self._temporary, self.path.name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        except BaseException:
            self.discard()
            raise
        self._end()

    def discard(self) -> None:
        """Removes the file, unless it is finished or discarded already."""
        if not self._is_open:
            return
        with contextlib.suppress(OSError):  # the disk may be full; what was buffered is not wanted anyway
            self.file.close()
        with contextlib.suppress(OSError):  # it may have its name already; a disk that fails keeps it for the sweep
            os.unlink(self._temporary, dir_fd=self._folder)
        self._end()

    def _end(self) -> None:
        self._is_open = False
        _unfinished.discard(self)
        let_go(self._folder)


def discard_unfinished() -> None:
    """Removes all temporary files of this process, which is to end at once."""
    for new in [*_unfinished]:
        new.discard()


def new_file(path: Path) -> NewFile:
    """Returns a new file that will stand at `path` once it is finished, in a folder that is there.

    Raises:
        CannotCreateError: nothing can be created there.
    """
    folder = _folder_of(path)
    try:
        return folder.create(path.name)
    finally:
        folder.close()


def open_growing(path: Path) -> int:
    """Returns a descriptor of a file that grows under its own name, made where it is not there.

    Raises:
        OSError: it cannot be, or the name is a link, that of something else than a file, or not the file's only one.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and found.st_nlink <= 1:
        return descriptor
    let_go(descriptor)
    raise FileExistsError(errno.EEXIST, "it is there, and no file of its own")


def write_file(path: Path, write_to: Callable[[BinaryIO], object]) -> None:
    """Writes a file whole, in place of the one that is there, in a folder that is there.

    Raises:
        CannotCreateError: nothing can be created there.
        InputOutputError: writing failed; what was there is still there.
    """
    folder = _folder_of(path)
    try:
        folder.write(path.name, write_to)
    finally:
        folder.close()


def replace_durably(path: Path, content: bytes) -> None:
    """Replaces a file that everybody may read, or makes it, so that a loss of power leaves the old or the new one.

    Raises:
        CannotCreateError: nothing can be created there.
        InputOutputError: writing failed; what was there is still there.
    """
    new = new_file(path)
    try:
        with wrapped_io(path):
            os.fchmod(new.file.fileno(), 0o644)
            new.file.write(content)
        new.finish()
    except BaseException:
        new.discard()
        raise
    with wrapped_io(path):
        sync_folder(path.parent)


def temporary_file(folder: int, mode: int = 0o666) -> tuple[str, int]:
    """Returns the name and the descriptor of a new file in a folder, locked as long as it is being written.

    What killed processes left there is removed first, once a process.

    Raises:
        OSError: none can be made.
    """
    sweep_once(folder)
    while True:
        name = f"{TEMPORARY}{os.urandom(8).hex()}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(name, flags, mode, dir_fd=folder)
        with contextlib.suppress(OSError):  # a file system without locks is never swept either
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_nlink:
            return name, descriptor
        let_go(descriptor)  # who sweeps took it before it was locked


def sweep_once(folder: int) -> None:
    """Removes what killed writers left in a folder, if this process has not yet."""
    found = os.fstat(folder)
    if (found.st_dev, found.st_ino) not in _swept:
        _swept.add((found.st_dev, found.st_ino))
        sweep_temporary(folder)


def sweep_temporary(folder: int) -> None:
    """Removes the files that killed writers of this account left in a folder: those that nobody has locked."""
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            if _TEMPORARY_NAME.fullmatch(name):
                _remove_if_left(folder, name)


def _remove_if_left(folder: int, name: str) -> None:
    with contextlib.suppress(OSError):
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(name, flags, dir_fd=folder)
        try:
            found = os.fstat(descriptor)
            if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid():
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(name, dir_fd=folder)
        finally:
            let_go(descriptor)


_OF_DEVICE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_OF_RIGHTS = (errno.EACCES, errno.EPERM, errno.EROFS)


def not_created(
    error: OSError | ValueError, path: Path, what: str = "cannot be created"
) -> CannotCreateError | InputOutputError:
    """Returns what to raise where a file or folder could not be made: 74 where the disk is full or fails, else 73."""
    is_of_device = isinstance(error, OSError) and error.errno in _OF_DEVICE
    return (InputOutputError if is_of_device else CannotCreateError)(f"{what}: {_reason(error)}", where=str(path))


def _folder_of(path: Path) -> OutputFolder:
    if not path.parent.is_dir():
        raise no_folder(path)
    return OutputFolder(path.parent)


def no_folder(path: Path) -> CannotCreateError:
    """Returns the error of a file or folder whose own folder is not there."""
    return CannotCreateError(f"there is no folder {str(path.parent)!r}", where=str(path), hint="create it first")


@contextlib.contextmanager
def opened_folder(path: Path) -> Iterator[int]:
    """Yields the descriptor of a folder.

    Raises:
        OSError: it cannot be opened.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        let_go(descriptor)


def sync_folder(path: Path) -> None:
    """Forces the names in a folder to the disk."""
    sync(path, os.O_DIRECTORY)


def sync(path: Path, flags: int = 0) -> None:
    """Forces what a file or a folder holds to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
    try:
        os.fsync(descriptor)
    finally:
        let_go(descriptor)


def make_folders(path: Path, mode: int = 0o777) -> None:
    """Makes a folder and those above it, where they are not there, so that a loss of power does not take them back.

    Raises:
        OSError: one cannot be made, or is the account's home, which is never made.
    """
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    if home() in missing:
        raise FileNotFoundError(errno.ENOENT, "the home folder of this account does not exist", str(home()))
    for folder in reversed(missing):
        folder.mkdir(mode=mode, exist_ok=True)
        sync_folder(folder.parent)
    if not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))


def make_folder_of(path: Path) -> None:
    """Makes the folder that a file goes to, where it is not there.

    Raises:
        CannotCreateError: it cannot be made.
    """
    try:
        make_folders(path.absolute().parent)
    except OSError as err:
        raise not_created(err, path) from err


class wrapped_io:  # noqa: N801 - a context manager reads like a function
    """Turns an `OSError` inside its block into an `InputOutputError` that names `path`, or one of rights to create."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            kind = CannotCreateError if error.errno in _OF_RIGHTS else InputOutputError
            raise kind(f"writing failed: {_reason(error)}", where=str(self._path)) from error


def _reason(err: Exception) -> str:
    return (err.strerror if isinstance(err, OSError) else None) or str(err)
