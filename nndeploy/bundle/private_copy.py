# SPDX-License-Identifier: Apache-2.0
"""A file as memory of this process alone, filled part by part as parts are needed.

Below the reader of bundles: a path comes in, a view as large as the file goes out, in which a part is zeros until
`fetch` was called for it. A part is read once, straight to its place, so nothing is copied twice, and what lies at a
multiple of 4,096 in the file does so in memory. Law: what was fetched never changes again, whoever writes into the file
or cuts it, so a hash that was compared stays true; a mapped file would change under the hash, or end the process
(SIGBUS).
"""

import contextlib
import hashlib
import mmap
import os
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Protocol

from nndeploy.bundle.container import Buffer
from nndeploy.errors import BundleError, InputOutputError, MissingInputError
from nndeploy.files.huge_pages import memory_to_fill
from nndeploy.files.whole_files import let_go

PIECE_BYTES = 1 << 20
_NO_RESERVE = 0x4000
"""MAP_NORESERVE: memory is taken as it is filled. Linux, every architecture that we have but MIPS and Alpha."""
_HUGE_PAGES_FROM = 4 << 20
_READ_AHEAD_FROM = 16 << 20
"""Bytes from which a thread reads while the caller hashes; it takes as long to start as a megabyte to hash."""


class ByteSource(Protocol):
    """Where a reader takes its bytes from: `view` is all of them, each part once `fetch` was called for it."""

    view: memoryview
    size_bytes: int
    descriptor: int  # of the open file, -1 where there is none

    def fetch(self, begin: int, end: int) -> None: ...

    def fetch_hashed(self, begin: int, end: int) -> str: ...

    def read_into(self, target: memoryview, begin: int) -> None: ...

    def read_hashed(self, target: memoryview, begin: int) -> str: ...

    def checked_again(self, begin: int, end: int) -> tuple[str, int]: ...

    def close(self) -> None: ...


class GivenBytes:
    """Bytes that are in memory already, and belong to the reader."""

    descriptor = -1

    def __init__(self, data: Buffer) -> None:
        self.view = memoryview(data)
        self.size_bytes = len(data)

    def fetch(self, begin: int, end: int) -> None:
        """All of it is there."""

    def fetch_hashed(self, begin: int, end: int) -> str:
        """Returns the SHA-256 of a part."""
        return hashlib.sha256(self.view[begin:end]).hexdigest()

    def read_into(self, target: memoryview, begin: int) -> None:
        """Copies a part to memory of the caller."""
        target[:] = self.view[begin : begin + len(target)]

    def read_hashed(self, target: memoryview, begin: int) -> str:
        """Copies a part to memory of the caller; returns its SHA-256."""
        self.read_into(target, begin)
        return hashlib.sha256(target).hexdigest()

    def checked_again(self, begin: int, end: int) -> tuple[str, int]:
        """Returns the SHA-256 and the CRC-32 of a part."""
        return self.fetch_hashed(begin, end), zlib.crc32(self.view[begin:end])

    def close(self) -> None:
        """Does nothing."""


class PrivateCopy:
    """The bytes of an open file; several threads may fetch different parts at once."""

    def __init__(self, path: Path, what: str, descriptor: int | None = None) -> None:
        """Opens the file at `path`, or takes over `descriptor`, by which it is open; `what` is what it should be.

        Raises:
            MissingInputError: there is no such file, or it may not be read.
            BundleError: it is not a regular file, or empty.
            InputOutputError: there is not enough memory.
        """
        self._path = path
        self.descriptor = _opened(path, what) if descriptor is None else descriptor
        try:
            self.size_bytes = _checked_size(self.descriptor, path, what)
            self._memory = _memory_of_file(self.size_bytes, path)
            self.view = memoryview(self._memory)
        except BaseException:
            self.close()
            raise

    def fetch(self, begin: int, end: int) -> None:
        """Fills a part of the view.

        Raises:
            InputOutputError: reading failed, or the file is shorter than it was when it was opened.
        """
        self.read_into(self._part(begin, end), begin)

    def read_into(self, target: memoryview, begin: int) -> None:
        """Fills memory of the caller with a part of the file; the view stays as it is.

        Raises:
            InputOutputError: as for `fetch`.
        """
        for _ in self._pieces_into(target, begin):
            pass

    def fetch_hashed(self, begin: int, end: int) -> str:
        """Fills a part of the view and returns its SHA-256.

        Raises:
            InputOutputError: as for `fetch`.
        """
        return self.read_hashed(self._part(begin, end), begin)

    def read_hashed(self, target: memoryview, begin: int) -> str:
        """Fills memory of the caller and returns its SHA-256, computed of what is there while it is in the caches.

        Raises:
            InputOutputError: as for `fetch`.
        """
        digest, pieces = hashlib.sha256(), self._pieces_into(target, begin)
        for piece in _made_ahead(pieces) if len(target) >= _READ_AHEAD_FROM else pieces:
            digest.update(piece)
        return digest.hexdigest()

    def checked_again(self, begin: int, end: int) -> tuple[str, int]:
        """Returns the SHA-256 and the CRC-32 of a part as it is in the file now; the view stays as it is.

        Raises:
            InputOutputError: as for `fetch`.
        """
        digest, crc = hashlib.sha256(), 0
        buffer = memoryview(bytearray(min(PIECE_BYTES, end - begin)))
        while begin < end:
            piece = buffer[: min(PIECE_BYTES, end - begin)]
            for _ in self._pieces_into(piece, begin):
                digest.update(piece)
                crc = zlib.crc32(piece, crc)
            begin += len(piece)
        return digest.hexdigest(), crc

    def close(self) -> None:
        """Lets go of the file; views stay. A second call does nothing."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            let_go(descriptor)

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError):  # it was never opened
            self.close()

    def _part(self, begin: int, end: int) -> memoryview:
        """Returns a part of the view that is about to be filled: in huge pages where it is large, and only there."""
        if end - begin >= _HUGE_PAGES_FROM:
            page = begin // mmap.PAGESIZE * mmap.PAGESIZE
            with contextlib.suppress(OSError):  # a kernel without them
                self._memory.madvise(mmap.MADV_HUGEPAGE, page, end - page)
        return self.view[begin:end]

    def _pieces_into(self, target: memoryview, begin: int) -> Iterator[memoryview]:
        """Reads a part of the file into `target`, and yields each piece of it once it is there."""
        done = 0
        while done < len(target):
            piece = target[done : done + PIECE_BYTES]
            filled = 0
            while filled < len(piece):
                filled += self._read(piece[filled:], begin + done + filled)
            done += len(piece)
            yield piece

    def _read(self, target: memoryview, begin: int) -> int:
        try:
            count = os.preadv(self.descriptor, [target], begin)
        except OSError as err:
            raise InputOutputError(f"cannot be read: {err.strerror}", where=str(self._path)) from err
        if not count:
            raise InputOutputError("the file was cut short while it was in use", where=str(self._path))
        return count


def _made_ahead(pieces: Iterator[memoryview]) -> Iterator[memoryview]:
    """Yields what an iterator yields, or raises what it raises, while a thread goes on with it."""
    made: SimpleQueue[memoryview | BaseException | None] = SimpleQueue()

    def make() -> None:
        try:
            for piece in pieces:
                made.put(piece)
            made.put(None)
        except BaseException as err:  # whatever it is, the caller gets it
            made.put(err)

    thread = Thread(target=make)
    thread.start()
    while isinstance(piece := made.get(), memoryview):
        yield piece
    thread.join()
    if piece is not None:
        raise piece


def _opened(path: Path, what: str) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (FileNotFoundError, NotADirectoryError, ValueError) as err:
        raise MissingInputError(f"no such {what}", where=str(path)) from err
    except OSError as err:
        raise MissingInputError(f"the {what} cannot be read: {err.strerror}", where=str(path)) from err


def _checked_size(descriptor: int, path: Path, what: str) -> int:
    status = os.fstat(descriptor)
    if stat.S_ISDIR(status.st_mode):
        raise BundleError(f"is a folder, not a {what}", where=str(path))
    if not stat.S_ISREG(status.st_mode):
        raise BundleError("is not a regular file", where=str(path))
    if status.st_size == 0:
        raise BundleError(f"not a {what}: the file is empty", where=str(path))
    return status.st_size


def memory_of_caller(size: int, path: Path) -> memoryview:
    """Returns zeros that are about to be filled; `path` is what they are for.

    Raises:
        InputOutputError: there is not enough memory.
    """
    with _memory_for(size, path):
        return memory_to_fill(max(1, size)).data[:size]


def _memory_of_file(size: int, path: Path) -> mmap.mmap:
    """Returns zeros, of which each page is taken when it is first written."""
    with _memory_for(size, path):
        return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE)


@contextlib.contextmanager
def _memory_for(size: int, path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, OverflowError, MemoryError) as err:
        raise InputOutputError(f"there is no memory for {size} bytes: {err}", where=str(path)) from err
