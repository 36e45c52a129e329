# SPDX-License-Identifier: Apache-2.0
"""Other names for the symbols of an object file, so that one program can hold the kernels of several levels.

Source: System V ABI, ELF-64 object files: section headers, symbol tables and their string tables.
"""

import struct
from pathlib import Path

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL_BYTES = 24
_SYMBOL_TABLE = 2


def with_prefix(data: bytes, begin: str, prefix: str) -> bytes:
    """Returns an object file in which each symbol whose name begins so has a prefix before it.

    Raises:
        ValueError: it is no object file of ELF for 64 bits, little-endian.
    """
    if data[:6] != b"\x7fELF\2\1":
        raise ValueError("no object file of ELF")
    header = _HEADER.unpack_from(data)
    offset, count = header[6], header[12]
    sections = [list(_SECTION.unpack_from(data, offset + i * _SECTION.size)) for i in range(count)]
    found = bytearray(data)
    for symbols in [one for one in sections if one[1] == _SYMBOL_TABLE]:
        strings = sections[symbols[6]]
        names = bytearray(data[strings[4] : strings[4] + strings[5]])
        for at in range(symbols[4], symbols[4] + symbols[5], _SYMBOL_BYTES):
            (place,) = struct.unpack_from("<I", found, at)
            name = bytes(names[place : names.index(0, place)])
            if name.startswith(begin.encode()):
                struct.pack_into("<I", found, at, len(names))
                names += prefix.encode() + name + b"\0"
        strings[4], strings[5] = len(found), len(names)
        found += names
    for i, section in enumerate(sections):
        _SECTION.pack_into(found, offset + i * _SECTION.size, *section)
    return bytes(found)


def renamed(path: Path, folder: Path, begin: str, prefix: str) -> Path:
    """Returns the same of a file, which is kept in a folder."""
    made = folder / f"{prefix}{path.name}"
    if not made.exists():
        staged = made.with_suffix(".partial")
        staged.write_bytes(with_prefix(path.read_bytes(), begin, prefix))
        staged.replace(made)
    return made
