# SPDX-License-Identifier: Apache-2.0
"""The files of an artifact as a bundle gives them."""

import hashlib
import mmap
from collections.abc import Iterator, Mapping


def in_pages(data: memoryview) -> memoryview:
    pages = mmap.mmap(-1, len(data), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    pages[:] = data
    return memoryview(pages)


class Files(Mapping[str, memoryview]):
    """Files as those of a bundle: what they hold is known without reading them."""

    def __init__(self, files: Mapping[str, bytes | memoryview], sha256: Mapping[str, str] | None = None) -> None:
        self._files = dict(files)
        self._sha256 = dict(sha256 or {})
        self.read: list[str] = []

    def __getitem__(self, name: str) -> memoryview:
        self.read.append(name)
        return memoryview(self._files[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __contains__(self, name: object) -> bool:
        return name in self._files

    def __len__(self) -> int:
        return len(self._files)

    def taken(self, name: str) -> memoryview:
        return in_pages(self[name])

    def sha256(self, name: str) -> str:
        return self._sha256.get(name) or hashlib.sha256(self._files[name]).hexdigest()
