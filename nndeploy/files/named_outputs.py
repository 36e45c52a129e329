# SPDX-License-Identifier: Apache-2.0
"""Files that the user named to be written: through their links, into pipes, by one run at a time, over no input.

Whatever else writes files (caches, stores, folders of results) follows no link and waits for no pipe: `whole_files`.
"""

import contextlib
import fcntl
import hashlib
import io
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

from nndeploy.errors import BusyError, CannotCreateError, UsageError
from nndeploy.files.whole_files import TEMPORARY, NewFile, OutputFolder, let_go, no_folder, sweep_once, wrapped_io

DESCRIPTOR = re.compile(r"/dev/(stdin|stdout|stderr|fd/[0-9]+)|/proc/(self|[0-9]+)/fd/[0-9]+")
STANDARD_OUTPUT = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
MAX_LINKS = 40
SWEPT_SECONDS = 0.02


def is_stream(path: Path) -> bool:
    """Returns whether a path is a pipe, a device or an open descriptor, which is written into and not replaced."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return DESCRIPTOR.fullmatch(str(path)) is not None or stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


def through_links(path: Path) -> Path:
    """Returns the file that a path stands for: what its links lead to, if they are one's own or the administrator's.

    Raises:
        CannotCreateError: a link is somebody else's, or links lead in a circle.
    """
    for _ in range(MAX_LINKS):
        try:
            found = path.lstat()
        except (OSError, ValueError):
            return path  # it is made, or the reason why not is given there
        if not stat.S_ISLNK(found.st_mode):
            return path
        if found.st_uid not in (0, os.geteuid()):
            raise CannotCreateError(
                "is a symbolic link of another user", where=str(path), hint="use the file it points to"
            )
        path = path.parent / path.readlink()
    raise CannotCreateError("its symbolic links form a loop", where=str(path))


class ClaimedFile(NewFile):
    """A new file that one run at a time may write: its temporary file is locked and named after it."""

    def _create(self, folder: int) -> tuple[str, int]:
        sweep_once(folder)
        name = f"{TEMPORARY}{hashlib.sha256(os.fsencode(self.path.name)).hexdigest()[:16]}.tmp"
        while True:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(name, flags, 0o666, dir_fd=folder)
            try:
                if self._is_claimed(name, descriptor):
                    os.ftruncate(descriptor, 0)
                    self._lock = os.dup(descriptor)  # held until the file has its name
                    return name, descriptor
            except BaseException:
                let_go(descriptor)
                raise
            let_go(descriptor)

    def _is_claimed(self, name: str, descriptor: int) -> bool:
        """Returns whether the file is this run's now; not where another one just finished with it, or swept it."""
        try:
            _lock(descriptor)
        except BlockingIOError as err:
            raise BusyError("another run is writing this output", where=str(self.path)) from err
        except OSError:
            pass  # a file system without locks
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            raise CannotCreateError(f"{name} is in the way", where=str(self.path), hint="remove it")
        return found.st_nlink == 1

    def _end(self) -> None:
        super()._end()
        let_go(self._lock)


def _lock(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:  # who sweeps holds it for a moment
        time.sleep(SWEPT_SECONDS)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class PipedFile:
    """A pipe, written as a new file is: what is written goes into it at once, or all of it when it is finished."""

    def __init__(self, path: Path, *, at_once: bool) -> None:
        """Opens the pipe, for which a reader may have to come.

        Raises:
            CannotCreateError: it cannot be opened.
        """
        self.path = path
        try:
            self._pipe = _AtOnce(io.FileIO(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC), "wb"))
        except OSError as err:
            raise CannotCreateError(f"cannot be opened: {err.strerror}", where=str(path)) from err
        self.file: BinaryIO = self._pipe if at_once else tempfile.TemporaryFile()  # noqa: SIM115

    def finish(self) -> None:
        """Writes what was kept, and closes the pipe.

        Raises:
            InputOutputError: it cannot be written.
        """
        try:
            with wrapped_io(self.path):
                if self.file is not self._pipe:
                    self.file.seek(0)
                    shutil.copyfileobj(self.file, self._pipe)
                self._pipe.close()
        finally:
            self.discard()

    def discard(self) -> None:
        """Closes the pipe; what went into it stays."""
        for file in (self.file, self._pipe):
            with contextlib.suppress(OSError):
                file.close()


class _AtOnce(io.BufferedWriter):
    def write(self, data: "bytes | bytearray | memoryview", /) -> int:  # type: ignore[override]
        """Writes all of it."""
        count = super().write(data)
        self.flush()
        return count


def new_output(path: Path, *, at_once: bool = False) -> "ClaimedFile | PipedFile":
    """Returns a file to write, which stands at `path` once it is finished; what goes into a pipe may go `at_once`.

    Raises:
        CannotCreateError: nothing can be created there.
        BusyError: another run writes it.
    """
    if is_stream(path):
        return PipedFile(path, at_once=at_once)
    path = through_links(path)
    if not path.parent.is_dir():
        raise no_folder(path)
    folder = OutputFolder(path.parent)
    try:
        return ClaimedFile(folder.descriptor, path)
    finally:
        folder.close()


def write_output(path: Path, write_to: Callable[[BinaryIO], object]) -> None:
    """Writes a file whole, in place of the one that is there, or into a pipe; raises as `new_output` does.

    Raises:
        InputOutputError: writing failed; what was there is still there.
    """
    new = new_output(path)
    try:
        with wrapped_io(new.path):
            write_to(new.file)
        new.finish()
    except BaseException:
        new.discard()
        raise


def check_no_input(outputs: Iterable[Path], inputs: Iterable[Path]) -> None:
    """Checks that no output is an input, or another output: the same file or folder, whatever its name.

    Raises:
        UsageError: one is.
    """
    seen = dict[tuple[int, int] | str, Path]()
    for path in outputs:
        if (known := _identity(path)) and (other := seen.setdefault(known, path)) is not path:
            raise UsageError(
                f"{_shown(path)} and {_shown(other)} are the same output", hint="give each a name of its own"
            )
    for path in inputs if seen else ():
        if (known := _identity(path)) in seen:
            raise UsageError(
                f"the output {_shown(seen[known])} is the input {_shown(path)}", hint="name another output"
            )


def _identity(path: Path) -> tuple[int, int] | str:
    """Returns what names the same file or folder by any path, its own path where it is not there; "" for streams."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return os.path.realpath(path) if "\0" not in str(path) else ""
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode) else ""


def _shown(path: Path) -> str:
    if not DESCRIPTOR.fullmatch(str(path)):
        return repr(str(path))
    return "standard input" if path.name in ("stdin", "0") else "standard output"
