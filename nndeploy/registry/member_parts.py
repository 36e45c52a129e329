# SPDX-License-Identifier: Apache-2.0
"""Members that lie in files, and the container that they make: nothing larger than a piece is held in memory.

A `LocalBundle` offers what it stores by its hash. Law: a member is hashed before it counts as found, and what
`container_pieces` yields is the one encoding of its parts.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from nndeploy.bundle.container import Entry, directory, entry_at, local_header, parse_container
from nndeploy.bundle.manifest import Member
from nndeploy.bundle.manifest_check import UNLISTED
from nndeploy.bundle.member_checks import check_crc, check_hash
from nndeploy.bundle.private_copy import PIECE_BYTES, PrivateCopy
from nndeploy.bundle.reader import Bundle


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

    def check(self) -> None:
        """Checks every member as it is in the file now.

        Raises:
            BundleError: one is damaged.
            InputOutputError: reading failed.
        """
        for name, member in self.members.items():
            found, crc = self._checked(name)
            check_hash(member, found, f"{self.path}: {name}", "compile again, or copy the bundle again")
            check_crc(self._entries[name], crc, f"{self.path}: {name}")

    def part(self, name: str) -> Part | None:
        """Returns a member; None where its bytes are not those that are listed."""
        found, crc = self._checked(name)
        if found != self.members[name].sha256:
            return None
        return Part(self._entries[name].size, crc, lambda: self.pieces(name))

    def pieces(self, name: str) -> Iterator[bytes]:
        """Yields the bytes of a member as they are in the file now.

        Raises:
            InputOutputError: reading failed.
        """
        begin, end = self._entries[name].offset, self._entries[name].end
        while begin < end:
            piece = bytearray(min(PIECE_BYTES, end - begin))
            self._file.read_into(memoryview(piece), begin)
            begin += len(piece)
            yield bytes(piece)

    def _hashed(self, name: str) -> Member:
        return Member(self._checked(name)[0], self._entries[name].size)

    def _checked(self, name: str) -> tuple[str, int]:
        return self._file.checked_again(self._entries[name].offset, self._entries[name].end)


@dataclass(frozen=True, slots=True)
class MemberBody:
    """A member of a bundle as what is sent: as many bytes as its length says, from the beginning each time."""

    bundle: LocalBundle
    name: str

    def __len__(self) -> int:
        return self.bundle.members[self.name].size_bytes

    def __iter__(self) -> Iterator[bytes]:
        return self.bundle.pieces(self.name)


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
