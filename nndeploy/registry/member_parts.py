# SPDX-License-Identifier: Apache-2.0
"""Members that lie in files, and the container that they make: nothing larger than a piece is held in memory.

A `LocalBundle` offers what it stores by its hash. Law: a member is hashed before it counts as found, and what
`container_pieces` yields is the one encoding of its parts.
"""

import hashlib
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType

from nndeploy.bundle.container import Entry, directory, entry_at, local_header, parse_container
from nndeploy.bundle.manifest import Member
from nndeploy.bundle.manifest_check import UNLISTED
from nndeploy.bundle.member_checks import check_crc, check_hash
from nndeploy.bundle.private_copy import PIECE_BYTES, PrivateCopy
from nndeploy.bundle.reader import Bundle
from nndeploy.registry.artifact import Blob


@dataclass(frozen=True, slots=True)
class Part:
    """The data of a member that was hashed: how many they are, their CRC-32, and how to read them."""

    size: int
    crc32: int
    pieces: Callable[[], Iterator[bytes]]


class LocalBundle:
    """A bundle in a file, its structure and manifest checked; use it in a `with`. `members` is name -> what is stored.

    The hash of a member is the one that the manifest lists, true or not; of members that it cannot list, their own.
    """

    def __init__(self, path: Path) -> None:
        """Opens the bundle at `path`.

        Raises:
            MissingInputError: there is no such file, or it may not be read.
            BundleError: it is not a bundle.
            InputOutputError: reading failed.
        """
        self.path = path
        self._file = PrivateCopy(path, "bundle")
        self._bundle = Bundle(self._file, path)
        self.size_bytes = self._file.size_bytes
        self._entries = parse_container(self._file.view, self._file.fetch)
        unlisted = {name: self._hashed(name) for name in self._entries if name in UNLISTED}
        self.members: Mapping[str, Member] = {**self._bundle.manifest.members, **unlisted}

    def __enter__(self) -> "LocalBundle":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bundle.close()

    def file_sha256(self) -> str:
        """Returns the SHA-256 of the whole file."""
        return self._file.checked_again(0, self.size_bytes)[0]

    def checked_blocks(self, name: str, block_bytes: int) -> tuple[Blob, ...]:
        """Returns a member as blobs, of so many bytes each but the last, after all of it was checked.

        Raises:
            BundleError: it is damaged.
            InputOutputError: reading failed.
        """
        whole, crc, blobs = hashlib.sha256(), 0, []
        for begin, size in self._blocks(name, block_bytes):
            block = hashlib.sha256()
            for piece in self.pieces(name, begin, size):
                whole.update(piece)
                block.update(piece)
                crc = zlib.crc32(piece, crc)
            blobs.append(Blob(block.hexdigest(), size))
        check_hash(self.members[name], whole.hexdigest(), f"{self.path}: {name}", "copy the bundle again")
        check_crc(self._entries[name], crc, f"{self.path}: {name}")
        return tuple(blobs)

    def blocks(self, block_bytes: int) -> Iterator[tuple[Blob, Part]]:
        """Yields the blocks of all members that have several of them, hashed one by one as they are asked for."""
        for name, entry in self._entries.items():
            for begin, size in self._blocks(name, block_bytes) if entry.size > block_bytes else ():
                sha256, crc = self._file.checked_again(entry.offset + begin, entry.offset + begin + size)
                yield Blob(sha256, size), Part(size, crc, partial(self.pieces, name, begin, size))

    def part(self, name: str) -> Part | None:
        """Returns a member; None where its bytes are not those that are listed."""
        found, crc = self._checked(name)
        if found != self.members[name].sha256:
            return None
        return Part(self._entries[name].size, crc, partial(self.pieces, name))

    def pieces(self, name: str, begin: int = 0, size: int = -1) -> Iterator[bytes]:
        """Yields a part of a member as it is in the file now, all of it where `size` is -1.

        Raises:
            InputOutputError: reading failed.
        """
        entry = self._entries[name]
        position = entry.offset + begin
        end = entry.end if size < 0 else position + size
        while position < end:
            piece = bytearray(min(PIECE_BYTES, end - position))
            self._file.read_into(memoryview(piece), position)
            position += len(piece)
            yield bytes(piece)

    def _blocks(self, name: str, block_bytes: int) -> Iterator[tuple[int, int]]:
        """Yields where each block of a member begins, and its size; an empty member has one block."""
        size = self._entries[name].size
        for begin in range(0, max(size, 1), block_bytes):
            yield begin, min(block_bytes, size - begin)

    def _hashed(self, name: str) -> Member:
        return Member(self._checked(name)[0], self._entries[name].size)

    def _checked(self, name: str) -> tuple[str, int]:
        return self._file.checked_again(self._entries[name].offset, self._entries[name].end)


@dataclass(frozen=True, slots=True)
class BlockBody:
    """A part of a member as what is sent: as many bytes as its length says, from the beginning each time."""

    bundle: LocalBundle
    name: str
    begin: int
    size: int

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[bytes]:
        return self.bundle.pieces(self.name, self.begin, self.size)


def joined(parts: Sequence[Part]) -> Part:
    """Returns the part that others are, one after the other."""

    def pieces() -> Iterator[bytes]:
        for part in parts:
            yield from part.pieces()

    if len(parts) == 1:
        return parts[0]
    crc = 0
    for piece in pieces():
        crc = zlib.crc32(piece, crc)
    return Part(sum(part.size for part in parts), crc, pieces)


def container_pieces(parts: Mapping[str, Part]) -> Iterator[bytes]:
    """Yields the container of some parts, by name."""
    for entry in (entries := _entries({name: (part.size, part.crc32) for name, part in parts.items()})):
        yield local_header(entry)
        yield from parts[entry.name].pieces()
    yield directory(entries)


def container_size(sizes: Mapping[str, int]) -> int:
    """Returns the size of the container of members of some sizes."""
    entries = _entries({name: (size, 0) for name, size in sizes.items()})
    return entries[-1].end + len(directory(entries))


def _entries(members: Mapping[str, tuple[int, int]]) -> list[Entry]:
    entries: list[Entry] = []
    for name in sorted(members):
        entries.append(entry_at(entries[-1].end if entries else 0, name, *members[name]))
    return entries
