# SPDX-License-Identifier: Apache-2.0
"""Downloads that are under way: a hidden folder beside the file that they become, with one file a blob.

What is there when a download is cut, killed or loses power is there for the next one, which takes no byte on trust: a
blob is hashed when it is whole. Laws: one process at a time fetches for an output; when its output is written, the
folder is gone; blobs that the artifact of today does not name are removed first.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import stat
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from nndeploy.errors import BundleError, BusyError, CannotCreateError
from nndeploy.files.held_folder import remove_folder
from nndeploy.files.whole_files import let_go, wrapped_io

PIECE_BYTES = 1 << 20
_FOLDER = ".nndeploy-pull-"
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class KeptBlobs:
    """The blobs that are fetched for the file `out`; use it in a `with`."""

    def __init__(self, out: Path) -> None:
        name = hashlib.sha256(os.fsencode(out.name)).hexdigest()[:16]
        self.path = out.parent / f"{_FOLDER}{name}"
        self._out = out

    def __enter__(self) -> "KeptBlobs":
        """Makes the folder, or takes what is left of an earlier one.

        Raises:
            CannotCreateError: it cannot be made, or what is there is not a folder of this account alone.
            BusyError: another process fetches for the same file.
        """
        try:
            self._descriptor = self._locked_folder()
        except BlockingIOError as err:
            raise BusyError("is being pulled by another process", where=str(self._out)) from err
        except OSError as err:
            raise CannotCreateError(
                f"the folder of downloads cannot be created: {err.strerror}", where=str(self.path)
            ) from err
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Removes the folder where all went well, where what came is wrong, or where nothing is kept in it."""
        try:
            if error is None or isinstance(error, BundleError):  # of wrong data no half is of use
                remove_folder(self.path)
            else:
                with contextlib.suppress(OSError):
                    self.path.rmdir()
        finally:
            let_go(self._descriptor)

    def keep_only(self, names: Collection[str]) -> None:
        """Removes what is there under another name, and what is no file, which nobody of us makes."""
        with wrapped_io(self.path):
            for path in self.path.iterdir():
                if path.name not in names or not stat.S_ISREG(path.lstat().st_mode):
                    self._remove(path)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is here."""
        with wrapped_io(self.path):
            return not any(self.path.iterdir())

    def size(self, name: str) -> int:
        """Returns how many bytes of a blob are here."""
        try:
            found = os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)
        except OSError:
            return 0
        return found.st_size if stat.S_ISREG(found.st_mode) else 0

    @contextlib.contextmanager
    def opened(self, name: str) -> Iterator[BinaryIO]:
        """Gives the file of a blob, to be read and written.

        Raises:
            InputOutputError: it cannot be opened, or the disk is full.
        """
        with wrapped_io(self.path / name):
            descriptor = os.open(name, _FLAGS, 0o600, dir_fd=self._descriptor)
            with os.fdopen(descriptor, "r+b") as file:
                yield file

    def checked(self, name: str) -> tuple[str, int]:
        """Returns the SHA-256 and the CRC-32 of what is here of a blob."""
        digest, crc = hashlib.sha256(), 0
        for piece in self.pieces(name):
            digest.update(piece)
            crc = zlib.crc32(piece, crc)
        return digest.hexdigest(), crc

    def pieces(self, name: str) -> Iterator[bytes]:
        """Yields what is here of a blob."""
        with self.opened(name) as file:
            while piece := file.read(PIECE_BYTES):
                yield piece

    def remove(self, name: str) -> None:
        """Removes what is here of a blob.

        Raises:
            InputOutputError: it cannot be removed.
        """
        with wrapped_io(self.path):
            self._remove(self.path / name)

    @staticmethod
    def _remove(path: Path) -> None:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    def _locked_folder(self) -> int:
        """Returns a descriptor of the folder, which holds its lock; who ends may remove it before it is locked."""
        while True:
            with contextlib.suppress(FileExistsError):
                self.path.mkdir(mode=0o700)
            descriptor = -1
            try:
                descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                found = os.fstat(descriptor)
                if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                    raise PermissionError(1, "it is not private to this user")
                if os.path.samestat(found, self.path.lstat()):
                    return descriptor
            except FileNotFoundError:
                pass
            except BaseException:
                if descriptor >= 0:
                    let_go(descriptor)
                raise
            if descriptor >= 0:
                let_go(descriptor)
