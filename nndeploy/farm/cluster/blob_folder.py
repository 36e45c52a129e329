# SPDX-License-Identifier: Apache-2.0
"""Files by digest in a worker's folder: those of jobs as they come, in pieces, and what was built until it is fetched.

Laws: a file has its name when all of it is there and its digest was compared; what was used within the last hour stays,
of the rest the oldest goes where all together are more than they may be.
"""

import contextlib
import hashlib
import os
import time
from pathlib import Path

from nndeploy.build_cache.entry import Blob
from nndeploy.build_cache.local_cache import is_key
from nndeploy.errors import BusyError, CannotCreateError, DataError, MissingInputError
from nndeploy.files.pieces import ANY_SIZE, PIECE_BYTES, pieces_of, sha256_of, written
from nndeploy.files.whole_files import make_folders, open_regular, wrapped_io

_KEPT_SECONDS = 3600.0


class BlobFolder:
    """Files by digest; one thread at a time calls it for one file."""

    def __init__(self, folder: Path, most_bytes: int) -> None:
        """Makes the folder where it is not there.

        Raises:
            CannotCreateError: it cannot be made.
        """
        self._folder = folder
        self._most_bytes = most_bytes
        try:
            make_folders(folder, 0o700)
        except OSError as err:
            raise CannotCreateError(f"cannot be created: {err.strerror}", where=str(folder)) from err

    def has(self, blob: Blob) -> bool:
        """Returns whether a file is there; so it stays for an hour."""
        path = self._place(blob)
        with contextlib.suppress(OSError):
            if path.stat().st_size == blob.size:
                os.utime(path)
                return True
        return False

    def store(self, blob: Blob, sender: str, offset: int, piece: bytes) -> None:
        """Adds a piece that comes from a sender, behind those that came; with the last one the file is there.

        Raises:
            BusyError: the pieces are not of that file: it changed while it was sent, or one was lost.
            InputOutputError: the disk is full or failed.
        """
        partial = self._folder / f"{self._place(blob).name}.{hashlib.sha256(sender.encode()).hexdigest()[:16]}"
        with wrapped_io(partial):
            if offset == 0:
                self._make_room(blob.size)
            descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                if file.seek(0, os.SEEK_END) < offset:
                    raise BusyError("a piece of a file was lost", hint="run it again")
                file.seek(offset)
                file.truncate()
                file.write(piece)
        if offset + len(piece) >= blob.size:
            self._finish(partial, blob)

    def add(self, path: Path) -> Blob:
        """Takes a file of the same file system away from its place."""
        blob = Blob(sha256_of(path), path.stat().st_size)
        with wrapped_io(path):
            path.replace(self._place(blob))
        return blob

    def read(self, blob: Blob, offset: int) -> bytes:
        """Returns the piece of a file at an offset.

        Raises:
            MissingInputError, InputOutputError: it is not there any more, or the disk failed.
        """
        path = self._place(blob)
        with open_regular(path, ANY_SIZE) as file, wrapped_io(path):
            file.seek(offset)
            return file.read(PIECE_BYTES)

    def copy(self, blob: Blob, place: Path) -> None:
        """Copies a file, of which the digest is compared again, to a place where none is.

        Raises:
            BusyError: it is not there any more, or is not what it was.
            InputOutputError: the disk is full or failed.
        """
        try:
            with wrapped_io(place), place.open("xb") as new:
                sha256, _ = written(pieces_of(self._place(blob)), new.write)
        except MissingInputError as err:
            raise BusyError("a file of the job no longer exists", hint="run it again") from err
        if sha256 != blob.sha256:
            self.forget(blob)
            raise BusyError("a file of the job has changed", hint="run it again")

    def forget(self, blob: Blob) -> None:
        """Removes a file, if it is there."""
        self._place(blob).unlink(missing_ok=True)

    def _finish(self, partial: Path, blob: Blob) -> None:
        if sha256_of(partial) != blob.sha256:
            partial.unlink(missing_ok=True)
            raise BusyError("a file changed while it was sent", hint="run it again")
        with wrapped_io(partial):
            partial.replace(self._place(blob))

    def _make_room(self, size: int) -> None:
        files = []
        for entry in os.scandir(self._folder):
            with contextlib.suppress(FileNotFoundError):
                found = entry.stat(follow_symlinks=False)
                files.append((found.st_mtime, found.st_size, entry.path))
        left, now = size + sum(one[1] for one in files), time.time()
        for changed, bytes_, path in sorted(files):
            if left <= self._most_bytes or now - changed < _KEPT_SECONDS:
                return
            Path(path).unlink(missing_ok=True)
            left -= bytes_

    def _place(self, blob: Blob) -> Path:
        if not is_key(blob.sha256):
            raise DataError(f"{blob.sha256!r:.80} is no digest", where="blob")
        return self._folder / blob.sha256
