# SPDX-License-Identifier: Apache-2.0
"""Other names for the symbols of an object file, so that one program can hold the kernels of several levels.

Sources: System V ABI, ELF-64 object files: section headers, symbol tables and their string tables; PE Format, COFF
object files: the symbol table and the string table behind it; Apple's <mach-o/loader.h>, <mach-o/nlist.h>.
"""

import struct
from pathlib import Path

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL_BYTES = 24
_SYMBOL_TABLE = 2
_COFF_HEADER = struct.Struct("<HHIIIHH")
_COFF_X86_64 = 0x8664
_COFF_SYMBOL_BYTES = 18
_POINTER = b".refptr."
"""Before the name of data that another object file may have: a pointer to it."""

_MACHO_MAGIC, _MACHO_HEADER_BYTES, _MACHO_SYMBOL_BYTES = 0xFEEDFACF, 32, 16
_MACHO_SYMTAB = 2


def with_prefix(data: bytes, begin: str, prefix: str) -> bytes:
    """Returns an object file in which each symbol whose name begins so has a prefix before it.

    Raises:
        ValueError: it is no object file for 64 bits, little-endian: of ELF, of COFF for x86-64, or of Mach-O.
    """
    if data[:6] == b"\x7fELF\2\1":
        return _elf_with_prefix(data, begin.encode(), prefix.encode())
    if len(data) > _COFF_HEADER.size and _COFF_HEADER.unpack_from(data)[0] == _COFF_X86_64:
        return _coff_with_prefix(data, begin.encode(), prefix.encode())
    if data[:4] == struct.pack("<I", _MACHO_MAGIC):
        return _macho_with_prefix(data, begin.encode(), prefix.encode())
    raise ValueError("no object file of ELF, COFF or Mach-O")


def _elf_with_prefix(data: bytes, begin: bytes, prefix: bytes) -> bytes:
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
            if name.startswith(begin):
                struct.pack_into("<I", found, at, len(names))
                names += prefix + name + b"\0"
        strings[4], strings[5] = len(found), len(names)
        found += names
    for i, section in enumerate(sections):
        _SECTION.pack_into(found, offset + i * _SECTION.size, *section)
    return bytes(found)


def _coff_with_prefix(data: bytes, begin: bytes, prefix: bytes) -> bytes:
    _, _, _, table, count, _, _ = _COFF_HEADER.unpack_from(data)
    strings = table + count * _COFF_SYMBOL_BYTES  # the last of the file, its own size in front
    found, names = bytearray(data[:strings]), bytearray(data[strings:])
    number = 0
    while number < count:
        at = table + number * _COFF_SYMBOL_BYTES
        zeros, place = struct.unpack_from("<II", found, at)
        name = bytes(found[at : at + 8]).rstrip(b"\0") if zeros else bytes(names[place : names.index(0, place)])
        kind = _POINTER if name.startswith(_POINTER) else b""
        if name.startswith(kind + begin):
            struct.pack_into("<II", found, at, 0, len(names))
            names += kind + prefix + name.removeprefix(kind) + b"\0"
        number += 1 + found[at + _COFF_SYMBOL_BYTES - 1]  # with its auxiliary records
    struct.pack_into("<I", names, 0, len(names))
    return bytes(found + names)


def _macho_with_prefix(data: bytes, begin: bytes, prefix: bytes) -> bytes:
    found, at = bytearray(data), _MACHO_HEADER_BYTES
    (num_commands,) = struct.unpack_from("<I", data, 16)
    for _ in range(num_commands):
        command, command_bytes = struct.unpack_from("<II", data, at)
        if command == _MACHO_SYMTAB:
            table, count, strings, size = struct.unpack_from("<IIII", data, at + 8)
            names = bytearray(data[strings : strings + size])
            for symbol in range(table, table + count * _MACHO_SYMBOL_BYTES, _MACHO_SYMBOL_BYTES):
                (place,) = struct.unpack_from("<I", found, symbol)
                name = bytes(names[place : names.index(0, place)])
                if name.startswith(b"_" + begin):
                    struct.pack_into("<I", found, symbol, len(names))
                    names += b"_" + prefix + name[1:] + b"\0"
            struct.pack_into("<II", found, at + 16, len(found), len(names))
            found += names
        at += command_bytes
    return bytes(found)


def renamed(path: Path, folder: Path, begin: str, prefix: str) -> Path:
    """Returns the same of a file, which is kept in a folder."""
    made = folder / f"{prefix}{path.name}"
    if not made.exists():
        staged = made.with_suffix(".partial")
        staged.write_bytes(with_prefix(path.read_bytes(), begin, prefix))
        staged.replace(made)
    return made
