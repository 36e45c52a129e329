# SPDX-License-Identifier: Apache-2.0
"""What a 64-bit ELF file asks of a system: the machine, other libraries, and versions of their symbols."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

MACHINES = {62: "x86_64", 183: "aarch64"}
_DYNAMIC, _VERSIONS_NEEDED = 6, 0x6FFFFFFE  # kinds of sections
_NEEDED = 1  # the dynamic entry that names a library


@dataclass(frozen=True, slots=True)
class ElfNeeds:
    """The machine as `uname -m` says it, file names of libraries, and versions as "GLIBC_2.17"."""

    machine: str
    libraries: frozenset[str]
    versions: frozenset[str]


def needs_of(data: bytes) -> ElfNeeds:
    """Returns what a library or program needs. Source: System V ABI, and the Linux Standard Base for versions."""
    assert data[:6] == b"\x7fELF\2\1", "no little-endian 64-bit ELF file"
    (machine,) = struct.unpack_from("<H", data, 18)
    (start,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, start + number * size) for number in range(count)]
    libraries, versions = set[str](), set[str]()
    for section in sections:
        kind, offset, num_bytes, texts = (
            section[1],
            section[4],
            section[5],
            sections[section[6]][4] if section[6] else 0,
        )
        if kind == _DYNAMIC:
            pairs = struct.iter_unpack("<qQ", data[offset : offset + num_bytes])
            libraries |= {_text(data, texts + value) for tag, value in pairs if tag == _NEEDED}
        if kind == _VERSIONS_NEEDED:
            versions |= {_text(data, texts + name) for name in _names_of_versions(data, offset)}
    return ElfNeeds(MACHINES.get(machine, str(machine)), frozenset(libraries), frozenset(versions))


def _names_of_versions(data: bytes, offset: int) -> Iterator[int]:
    """Yields where the names of the versions lie, for each library that has some."""
    while True:
        _, count, _, first, further = struct.unpack_from("<HHIII", data, offset)
        version = offset + first
        for _ in range(count):
            _, _, _, name, behind = struct.unpack_from("<IHHII", data, version)
            yield name
            version += behind
        if not further:
            return
        offset += further


def _text(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode()
