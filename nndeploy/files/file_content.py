# SPDX-License-Identifier: Apache-2.0
"""The bytes of a file: in memory, or mapped where they are many, and their SHA-256.

What is mapped takes no memory of its own and stays when the file is removed. For files that nobody writes to any more.
"""

import contextlib
import hashlib
import mmap
import weakref
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import TypeAlias

Content: TypeAlias = bytes | memoryview

MIN_MAPPED_BYTES = 1 << 20
_WRITTEN_BYTES = 1 << 26
_LET_GO_SECONDS = 0.01
"""A library copies some 30 MB within it."""


class _FileMap(mmap.mmap):
    """The map of a file: what is let go of it can be read again, which is not so of memory without one."""


_maps: dict[int, "weakref.ref[_FileMap]"] = {}
"""Those that are there, by identity. A list of a dict's values is made in one step, whatever other threads add."""


def content_of(path: Path) -> Content:
    """Returns the bytes of a file."""
    if path.stat().st_size < MIN_MAPPED_BYTES:
        return path.read_bytes()
    with path.open("rb") as file:
        return mapped_content(file.fileno())


def mapped_content(descriptor: int) -> memoryview:
    """Returns the bytes of an open file, which has some."""
    return memoryview(file_map(descriptor))


def file_map(descriptor: int) -> mmap.mmap:
    """Returns the map of an open file, which has some bytes."""
    mapped = _FileMap(descriptor, 0, access=mmap.ACCESS_READ)
    key = id(mapped)
    _maps[key] = weakref.ref(mapped, lambda _: _maps.pop(key, None))
    return mapped


def is_file_map(content: Content) -> bool:
    """Whether a content is the map of a file: pages that are given back are read again at need."""
    return _file_map_of(content) is not None


def let_go_of_pages(content: Content) -> None:
    """Gives the pages of a mapped file back, which count as this process's until then."""
    if (mapped := _file_map_of(content)) is not None:
        mapped.madvise(mmap.MADV_DONTNEED)


def let_go_of_all_pages() -> None:
    """Does the same with the pages of all mapped files: what is needed once more is read again."""
    for one in list(_maps.values()):
        if (mapped := one()) is not None:
            mapped.madvise(mmap.MADV_DONTNEED)


@contextlib.contextmanager
def letting_go_of_pages() -> Iterator[None]:
    """Gives the pages of all mapped files back again and again, while a library copies what is in them.

    They would count as this process's beside the copies. What is needed once more is read again, from the system's
    memory of files, so this is not for calls that use mapped weights where they are.
    """
    is_copied = Event()

    def let_go() -> None:
        while not is_copied.wait(_LET_GO_SECONDS):
            let_go_of_all_pages()

    thread = Thread(target=let_go, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_copied.set()
        thread.join()


def _file_map_of(content: Content) -> _FileMap | None:
    of = content.obj if isinstance(content, memoryview) else None
    return of if isinstance(of, _FileMap) else None


def write_content(path: Path, content: Content) -> None:
    """Writes a new file, and gives the pages back of what is mapped as it goes."""
    with path.open("wb") as file:
        for begin in range(0, len(content), _WRITTEN_BYTES):
            file.write(memoryview(content)[begin : begin + _WRITTEN_BYTES])
            let_go_of_pages(content)


class KnownHashes:
    """The SHA-256 of contents, in hex, each computed once; they stay as long as this."""

    def __init__(self) -> None:
        """Begins with none."""
        self._known: dict[int, tuple[Content, str]] = {}

    def of(self, content: Content) -> str:
        """Returns the hash of a content, which never changes."""
        if id(content) not in self._known:
            self._known[id(content)] = content, hashlib.sha256(content).hexdigest()
            let_go_of_pages(content)
        return self._known[id(content)][1]
