# SPDX-License-Identifier: Apache-2.0
"""Hostile bundles: every changed byte, every cut, random damage and structural attacks; none is taken for a bundle.

`make fuzz-containers` makes ten million mutants.
"""

import io
import itertools
import random
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import pytest
from container_mutants import BUNDLE, MODEL, changed_bytes, damaged, is_taken, sealed, small_contents

from nndeploy.bundle.container import encode_container, parse_container
from nndeploy.bundle.manifest_json import decode_manifest
from nndeploy.errors import BundleError

NUM_RANDOM = 10_000


def assert_none_is_taken(mutants: Iterator[tuple[str, bytes]], least: int) -> None:
    num_refused = 0
    for what, mutant in mutants:
        assert not is_taken(mutant), f"{what}: taken for a bundle"
        num_refused += 1
    assert num_refused >= least


def test_no_changed_byte_is_taken() -> None:
    assert_none_is_taken(changed_bytes(), 8 * len(BUNDLE))


def test_no_cut_is_taken() -> None:
    assert_none_is_taken(((f"cut at {end}", BUNDLE[:end]) for end in range(len(BUNDLE))), len(BUNDLE))


def test_no_removed_or_repeated_byte_is_taken() -> None:
    def mutants() -> Iterator[tuple[str, bytes]]:
        for position in range(len(BUNDLE)):
            yield f"without byte {position}", BUNDLE[:position] + BUNDLE[position + 1 :]
            yield f"byte {position} twice", BUNDLE[: position + 1] + BUNDLE[position:]

    assert_none_is_taken(mutants(), 2 * len(BUNDLE))


def test_no_random_damage_is_taken() -> None:
    rng = random.Random(20261120)  # noqa: S311 - the same mutants each time
    mutants = ((f"mutant {index}", damaged(rng)) for index in range(NUM_RANDOM))
    assert_none_is_taken((item for item in mutants if item[1] != BUNDLE), NUM_RANDOM * 9 // 10)


def test_no_damage_of_compressed_members_is_taken_where_hashes_are_made_right() -> None:
    contents = small_contents()
    manifest = decode_manifest(contents.pop("manifest.json"))
    stream, base = zlib.decompress(contents[MODEL]), contents["weights/w"]

    def mutants() -> Iterator[tuple[str, bytes]]:
        for name, original, first in ((MODEL, stream, 0), ("weights/w", base, 10)):  # before it, the base is not used
            for position, bit in itertools.product(range(first, len(original)), range(8)):
                mutant = bytearray(original)
                mutant[position] ^= 1 << bit
                changed = {name: zlib.compress(mutant) if name == MODEL else bytes(mutant)}
                container = encode_container(sealed(manifest, contents | changed))
                yield f"{name}: bit {bit} of byte {position}", b"".join(container)

    assert_none_is_taken(mutants(), 8 * (len(stream) + len(base) - 10))


@dataclass
class Forged:
    """A member as a forger writes it; every field stands for itself, whether or not it is true."""

    name: bytes
    data: bytes
    flags: int = 0
    method: int = 0
    time: int = 0
    date: int = 33
    version: int = 45
    made_by: int = 0x032D
    internal: int = 0
    external: int = 0o100644 << 16
    disk: int = 0
    comment: bytes = b""
    extra: bytes = b""
    sizes32: tuple[int, int] = (0xFFFFFFFF, 0xFFFFFFFF)
    offset32: int = 0xFFFFFFFF
    size: int | None = None
    stored: int | None = None
    offset: int | None = None
    crc: int | None = None
    local: dict[str, object] = field(default_factory=dict)
    padding: bytes | None = None
    gap: bytes = b""
    local_zip64: bytes | None = None
    after: bytes = b""


def local_part(member: Forged, at: int) -> bytes:
    """The local header and data of a member at `at`; its dictionary `local` overrides fields here alone."""
    here = replace(member, **member.local)  # type: ignore[arg-type]
    size = len(here.data) if here.size is None else here.size
    stored = size if here.stored is None else here.stored
    alignment = 4096 if len(here.data) >= 4096 else 64
    zip64 = struct.pack("<HHQQ", 1, 16, size, stored) if here.local_zip64 is None else here.local_zip64
    zeros = -(at + 30 + len(here.name) + 20 + 6) % alignment
    padding = struct.pack("<HHH", 0xD935, 2 + zeros, alignment) + bytes(zeros) if here.padding is None else here.padding
    crc = zlib.crc32(here.data) if here.crc is None else here.crc
    header = struct.pack(
        "<4s5HIIIHH", b"PK\3\4", here.version, here.flags, here.method, here.time, here.date,
        crc, *here.sizes32, len(here.name), len(zip64 + padding),
    )  # fmt: skip
    return header + here.name + zip64 + padding + here.data


def central_part(member: Forged, at: int) -> bytes:
    size = len(member.data) if member.size is None else member.size
    stored = size if member.stored is None else member.stored
    crc = zlib.crc32(member.data) if member.crc is None else member.crc
    offset = at if member.offset is None else member.offset
    extra = struct.pack("<HHQQQ", 1, 24, size, stored, offset) + member.extra
    header = struct.pack(
        "<4s6HIIIHHHHHII", b"PK\1\2", member.made_by, member.version, member.flags, member.method, member.time,
        member.date, crc, *member.sizes32, len(member.name), len(extra), len(member.comment), member.disk,
        member.internal, member.external, member.offset32,
    )  # fmt: skip
    return header + member.name + extra + member.comment


@dataclass
class End:
    """The end records as a forger writes them; None: as they should be."""

    count: int | None = None
    here: int | None = None
    directory_bytes: int | None = None
    start: int | None = None
    disk: int = 0
    disks: int = 1
    version: int = 45
    made_by: int = 0x032D
    record_bytes: int = 44
    locator: int | None = None
    comment: bytes = b""
    end: bytes = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    before_directory: bytes = b""
    in_directory: bytes = b""
    after_directory: bytes = b""


def forge(members: list[Forged], end: End | None = None) -> bytes:
    """A container built by other code than the project's, so that the two check each other."""
    end = end or End()
    data, records = b"", b""
    for member in members:
        data += member.gap
        records += central_part(member, len(data))
        data += local_part(member, len(data)) + member.after
    data += end.before_directory
    records += end.in_directory
    start = len(data) if end.start is None else end.start
    count = len(members) if end.count is None else end.count
    here = count if end.here is None else end.here
    directory_bytes = len(records) if end.directory_bytes is None else end.directory_bytes
    data += records + end.after_directory
    locator = len(data) if end.locator is None else end.locator
    data += struct.pack(
        "<4sQHHIIQQQQ", b"PK\6\6", end.record_bytes, end.made_by, end.version, end.disk, 0, here, count,
        directory_bytes, start,
    )  # fmt: skip
    data += struct.pack("<4sIQI", b"PK\6\7", end.disk, locator, end.disks)
    return data + end.end + end.comment


A, B = Forged(b"a", b"first"), Forged(b"b", bytes(5000))


def test_what_is_forged_without_an_attack_is_what_the_project_writes() -> None:
    assert forge([A, B]) == b"".join(encode_container({"a": b"first", "b": bytes(5000)}))
    members = [Forged(name.encode(), data) for name, data in sorted(small_contents().items())]
    assert forge(members) == BUNDLE
    assert is_taken(BUNDLE)


def a(**fields: object) -> bytes:
    return forge([replace(A, **fields), B])  # type: ignore[arg-type]


def b(**fields: object) -> bytes:
    return forge([A, replace(B, **fields)])  # type: ignore[arg-type]


def ended(**fields: object) -> bytes:
    return forge([A, B], End(**fields))  # type: ignore[arg-type]


def plain_zip(compression: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        archive.writestr("manifest.json", "{}" * 100)
    return buffer.getvalue()


START_OF_B = parse_container(memoryview(forge([A, B])))["b"].header
SYMLINK = 0o120777 << 16
OTHER_END = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 2, 2, 150, 9000, 0)
LONG = Forged(b"x" * 300, b"")

ATTACKS: dict[str, tuple[Callable[[], bytes], str]] = {
    "compressed": (lambda: a(method=8), "a: it is compressed \\(method 8\\)"),
    "compressed in the local header alone": (lambda: a(local={"method": 8}), "a: its local header does not say what"),
    "encrypted": (lambda: a(flags=1), "a: it is encrypted"),
    "encrypted in the local header alone": (lambda: a(local={"flags": 1}), "a: its local header does not say what"),
    "data descriptor": (lambda: a(flags=8), "a: it has a data descriptor"),
    "UTF-8 flag": (lambda: a(flags=0x800), "a: it has flags 0x0800"),
    "masked headers": (lambda: a(flags=0x2000), "a: it has flags 0x2000"),
    "symbolic link": (lambda: a(external=SYMLINK), "a: it is a symbolic link"),
    "folder attribute": (lambda: a(external=0o040755 << 16 | 0x10), "a: it has file attributes"),
    "device": (lambda: a(external=0o060644 << 16), "a: it has file attributes"),
    "set-user-id": (lambda: a(external=0o104755 << 16), "a: it has file attributes"),
    "text attribute": (lambda: a(internal=1), "a: it has file attributes"),
    "time stamp": (lambda: a(time=1), "a: it has a time stamp"),
    "date stamp": (lambda: a(date=34), "a: it has a time stamp"),
    "time stamp in the local header alone": (lambda: a(local={"time": 1}), "a: its local header does not say what"),
    "member comment": (lambda: a(comment=b"hi"), "a: it has a comment of 2 bytes"),
    "other disk": (lambda: a(disk=1), "a: it is said to lie on disk 1"),
    "made on another system": (lambda: a(made_by=45), "a: it was made by 0x002d"),
    "other version": (lambda: a(version=20), "a: it was made by 0x032d and needs version 20"),
    "other version in the local header alone": (lambda: a(local={"version": 20}), "a: its local header does not say"),
    "central extra field": (lambda: a(extra=b"\xfe\xca\0\0"), "a: its record has 32 bytes of extra fields"),
    "local extra field": (
        lambda: a(padding=struct.pack("<HHH", 0xD935, 2, 64) + b"\xfe\xca\0\0"), "a: the padding before its data",
    ),
    "local Unicode path": (
        lambda: a(padding=struct.pack("<HHBI", 0x7075, 9, 1, 0) + b"evil"), "a: the padding before its data",
    ),
    "padding that is not zero": (
        lambda: a(padding=struct.pack("<HHH", 0xD935, 2 + 7, 64) + b"\0\0\0\0\0\0\1"), "a: the padding before its data",
    ),
    "no padding": (lambda: a(padding=b""), "a: the padding before its data"),
    "other alignment": (
        lambda: a(padding=struct.pack("<HHH", 0xD935, 2 + 7, 32) + bytes(7)), "a: the padding before its data",
    ),
    "32-bit sizes": (lambda: a(sizes32=(5, 5)), "a: it states sizes outside its zip64 field"),
    "32-bit sizes in the local header alone": (lambda: a(local={"sizes32": (5, 5)}), "a: its local header does not"),
    "32-bit offset": (lambda: a(offset32=0), "a: it states sizes outside its zip64 field"),
    "other local zip64 field": (
        lambda: a(local_zip64=struct.pack("<HHQQ", 1, 16, 5, 6)), "a: its local header does not say what",
    ),
    "no local zip64 field": (lambda: a(local_zip64=b""), "a: (its local header|the padding)"),
    "sizes that differ": (lambda: a(stored=6), "a: it has two sizes, 5 and 6 bytes"),
    "larger size": (lambda: a(size=6), "a: its local header|b: it overlaps"),
    "smaller size": (lambda: a(size=4), "b: 1 bytes before it belong to no member"),
    "smaller size of the last": (lambda: b(size=4999), "1 bytes between the last member and the directory"),
    "larger size of the last": (lambda: b(size=5001), "b: its data reach past the directory"),
    "absurd size": (lambda: a(size=2**63), "a: it claims 9223372036854775808 bytes"),
    "size of all bits": (lambda: a(size=2**64 - 1), "a: it claims 18446744073709551615 bytes"),
    "size past the file": (lambda: b(size=100_000), "b: it claims 100000 bytes"),
    "other CRC in the local header": (lambda: a(local={"crc": 1}), "a: its local header does not say what"),
    "other name in the local header": (lambda: a(local={"name": b"z"}), "a: its local header has another name"),
    "longer name in the local header": (lambda: a(local={"name": b"aa"}), "a: (its local|the padding)"),
    "no local header": (lambda: b(offset=START_OF_B + 1), "b: 1 bytes before it belong to no member"),
    "damaged local signature": (lambda: forge([A, B]).replace(b"PK\3\4", b"PK\3\5", 1), "a: there is no local header"),
    "offset past the file": (lambda: b(offset=2**62), "b: 4611686018427378900|b: \\d+ bytes before it"),
    "offset of another member": (lambda: b(offset=0), "b: it overlaps the member before it"),
    "overlap": (lambda: b(offset=START_OF_B - 1), "b: it overlaps the member before it"),
    "one local header for two members": (
        lambda: forge([A], End(in_directory=central_part(replace(A, name=b"b"), 0), count=2)), "b: it overlaps",
    ),
    "gap before the first member": (lambda: a(gap=b"#!/bin/sh\n"), "not a bundle: it does not begin like one"),
    "prefix that looks like a ZIP": (lambda: a(gap=b"PK\3\4" + bytes(60)), "a: 64 bytes before it belong to no member"),
    "gap between members": (lambda: b(gap=b"evil"), "b: 4 bytes before it belong to no member"),
    "unlisted member": (
        lambda: forge([A, replace(B, after=local_part(Forged(b"c", b"evil"), 0))]), "between the last member and the",
    ),
    "gap before the directory": (lambda: ended(before_directory=b"evil"), "4 bytes between the last member and the"),
    "prefix before everything": (lambda: b"MZ" + forge([A, B]), "not a bundle: it does not begin like one"),
    "ZIP before everything": (lambda: forge([A]) + forge([A, B]), "the directory should end at"),
    "trailing byte": (lambda: forge([A, B]) + b"\0", "1 bytes follow the end record"),
    "trailing ZIP": (lambda: forge([A, B]) + plain_zip(0), "a ZIP archive, but not a bundle"),
    "bundle twice": (lambda: forge([A, B]) * 2, "the directory should end at"),
    "archive comment": (
        lambda: ended(
            end=struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 65535, 65535, 2**32 - 1, 2**32 - 1, 4), comment=b"evil",
        ),
        "the archive has a comment of 4 bytes",
    ),
    "comment that claims less": (lambda: ended(comment=b"evil"), "4 bytes follow the end record"),
    "32-bit end record": (lambda: ended(end=OTHER_END), "a ZIP archive, but not a bundle"),
    "no end record": (lambda: forge([A, B])[:-22], "the end record is missing"),
    "half an end record": (lambda: forge([A, B])[:-5], "the end record is missing"),
    "no zip64 end record": (lambda: forge([A, B])[:-98] + forge([A, B])[-22:], "has no zip64 end record"),
    "end record alone": (lambda: forge([A, B])[-22:], "the end record is missing|not a bundle"),
    "end records alone": (lambda: forge([A, B])[-98:], "the directory should end at|0 members"),
    "no members": (lambda: forge([]), "0 members; 1 to 4096 are allowed"),
    "too many members": (lambda: forge([Forged(f"m{i:05}".encode(), b"") for i in range(4097)]), "4097 members"),
    "count too small": (lambda: ended(count=1), "bytes more than its 1 records"),
    "count too large": (lambda: ended(count=3), "the directory is shorter than its records"),
    "count of all bits": (lambda: ended(count=2**64 - 1), "18446744073709551615 members"),
    "count of zero": (lambda: ended(count=0), "0 members"),
    "two counts": (lambda: ended(here=1), "the end record counts 1 and 2 members"),
    "directory too small": (lambda: ended(directory_bytes=1), "the directory should end at"),
    "directory of all bits": (lambda: ended(directory_bytes=2**64 - 1), "the directory should end at"),
    "directory before its start": (lambda: ended(start=0), "the directory should end at"),
    "directory past the file": (lambda: ended(start=2**63), "the directory should end at"),
    "directory at all bits": (lambda: ended(start=2**64 - 1), "the directory should end at"),
    "other locator": (lambda: ended(locator=0), "the directory should end at"),
    "several disks": (lambda: ended(disks=2), "several disks"),
    "other disk of the directory": (lambda: ended(disk=1), "several disks"),
    "long zip64 end record": (lambda: ended(record_bytes=45), "the zip64 end record is not written as"),
    "old zip64 end record": (lambda: ended(version=20), "the zip64 end record is not written as"),
    "zip64 end record of another system": (lambda: ended(made_by=45), "the zip64 end record is not written as"),
    "junk in the directory": (lambda: ended(in_directory=b"PK\1\2"), "4 bytes more than its 2 records"),
    "signature in the directory": (lambda: ended(in_directory=b"PK\5\5\4\0evil"), "10 bytes more than its 2 records"),
    "junk as a record": (lambda: ended(in_directory=bytes(100), count=3), "the directory holds something that is no"),
    "junk after the directory": (lambda: ended(after_directory=b"evil"), "the directory should end at"),
    "record past the directory": (
        lambda: ended(in_directory=central_part(LONG, 0)[:100], count=3), "its record reaches past the directory",
    ),
    "other zip64 field": (
        lambda: forge([A, B]).replace(struct.pack("<HHQQQ", 1, 24, 5, 5, 0), struct.pack("<HHQQQ", 2, 24, 5, 5, 0)),
        "a: its zip64 field is not written as",
    ),
    "repeated name": (lambda: forge([A, A]), "the member name 'a' stands twice"),
    "unsorted": (lambda: forge([B, A]), "the member 'a' stands after 'b'"),
    "file that is a folder": (lambda: forge([A, Forged(b"a/b", b"")]), "the member 'a' is also the folder of 'a/b'"),
    "parent folder": (lambda: a(name=b"../a"), "'../a' leaves its folder"),
    "parent folder inside": (lambda: a(name=b"a/../../b"), "leaves its folder"),
    "own folder": (lambda: a(name=b"./a"), "leaves its folder"),
    "absolute": (lambda: a(name=b"/a"), "is an absolute path"),
    "drive": (lambda: a(name=b"c:/a"), "is an absolute path"),
    "backslash": (lambda: a(name=b"..\\a"), "other characters"), "empty name": (lambda: a(name=b""), "is empty"),
    "empty segment": (lambda: a(name=b"a//a"), "an empty segment"),
    "folder entry": (lambda: a(name=b"a/"), "an empty segment"), "capital": (lambda: a(name=b"A"), "other characters"),
    "NUL": (lambda: a(name=b"a\0.onnx"), "other characters"), "line end": (lambda: a(name=b"a\n"), "other characters"),
    "escape codes": (lambda: a(name=b"\x1b[2J"), "other characters"),
    "no UTF-8": (lambda: a(name=b"\xff\xfe"), "other characters"),
    "long name": (lambda: forge([LONG]), "longer than 255 bytes"),
    "deep name": (lambda: a(name=b"a/a/a/a/a/a"), "deeper than 4 folders"),
    "plain ZIP": (lambda: plain_zip(0), "a ZIP archive, but not a bundle"),
    "deflated ZIP": (lambda: plain_zip(8), "a ZIP archive, but not a bundle"),
}  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS)
def test_refuses(attack: str) -> None:
    make, message = ATTACKS[attack]
    with pytest.raises(BundleError, match=message) as caught:
        parse_container(memoryview(make()))
    assert "\n" not in str(caught.value)
    assert str(caught.value).isprintable()
