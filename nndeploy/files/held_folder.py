# SPDX-License-Identifier: Apache-2.0
"""A temporary folder that is locked as long as its process lives; the system lets go of the lock however that ends.

So what killed processes left is known by its lock, not by its age, and the next process that needs a folder removes it:
only what is called as ours are, belongs to this user alone and can be locked.
"""

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import weakref
from pathlib import Path
from types import TracebackType

from nndeploy.files.whole_files import let_go

PREFIX, SUFFIX = "nndeploy-", ".held"
"""Beginning and end of the names of all folders that are locked."""

HIDDEN = "."
"""What they begin with where they stand among the user's own files."""

_swept = set[str]()


class HeldFolder:
    """A new folder where the system has temporary ones, or in another; removed at `close` or when it is forgotten."""

    def __init__(self, what: str, inside: str | None = None, hidden: str = "") -> None:
        """Makes a folder whose name has `what` in it, and begins with `hidden`.

        Raises:
            OSError: none can be made.
        """
        inside = inside or tempfile.gettempdir()
        sweep_leftovers(inside)
        name, descriptor = _locked_folder(f"{hidden}{PREFIX}{what}-", inside)
        self.path = Path(name)
        self.descriptor = descriptor
        self.close = weakref.finalize(self, _let_go, name, descriptor, os.getpid())

    def __enter__(self) -> Path:
        return self.path

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def sweep_leftovers(folder: str) -> None:
    """Removes what killed processes of this user left in a folder; once a process, and silently where it cannot."""
    if folder in _swept:
        return
    _swept.add(folder)
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.removeprefix(HIDDEN).startswith(PREFIX) and entry.name.endswith(SUFFIX):
                _remove_if_left(entry.path)


def _locked_folder(prefix: str, inside: str) -> tuple[str, int]:
    """Returns a new folder and the descriptor that holds its lock; who sweeps may take one before it is locked."""
    while True:
        path = tempfile.mkdtemp(SUFFIX, prefix, inside)
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            if _lock(descriptor) and os.path.isdir(path):  # noqa: PTH112 - it must not raise
                return path, descriptor
            let_go(descriptor)


def _lock(descriptor: int) -> bool:
    """Returns whether nobody else has the lock; a file system without locks is never swept."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _let_go(path: str, descriptor: int, pid: int) -> None:
    """Removes a folder, unless this is a process that was forked off the one it belongs to."""
    if os.getpid() == pid:
        remove_folder(path)
    let_go(descriptor)


def remove_folder(path: str | Path) -> None:
    """Removes a folder and what is in it, as far as that can be done."""
    with contextlib.suppress(OSError):  # a folder whose closing fails is raised whatever rmtree is told
        shutil.rmtree(path, ignore_errors=True)


def _remove_if_left(path: str) -> None:
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            found = os.fstat(descriptor)
            if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
                return
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove_folder(path)
        finally:
            let_go(descriptor)
