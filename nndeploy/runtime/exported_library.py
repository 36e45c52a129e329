# SPDX-License-Identifier: Apache-2.0
"""A bundle -> a static library that holds it as data, and a header with one function that opens it.

    digits.a: an archive of one object: a size of 8 bytes, the bundle             digits.h: digits_open(options, error)

Comes in: an open bundle. Goes out: two files. Laws: as of `exported_program`; neither a compiler nor a linker is
needed, and the same bundle gives the same bytes.

Sources: System V ABI, ELF-64 object files (gABI 4.1, chapter 4); PE Format, COFF object files, for Windows; the
archives of GNU ar, whose first member is an index.
"""

import re
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from nndeploy.bundle.container import Buffer
from nndeploy.bundle.manifest import Manifest
from nndeploy.bundle.reader import Bundle
from nndeploy.bundle.writer import replace_file
from nndeploy.errors import UnavailableError, UsageError, one_line
from nndeploy.runtime.exported_program import WINDOWS, Exported, hinted, runnable

MACHINES = {"x86_64": 62, "aarch64": 183}
"""What e_machine is, by architecture of Linux."""
MAX_BYTES = 1 << 30
"""More data than that cannot be reached from code of the usual model."""
ALIGNMENT = 64

_SECTIONS = ("", ".rodata", ".note.GNU-stack", ".symtab", ".strtab", ".shstrtab")
_HEAD_BYTES, _SECTION_BYTES, _SYMBOL_BYTES = 64, 64, 24
_PROGBITS, _SYMTAB, _STRTAB = 1, 2, 3
_ALLOC = 2
_GLOBAL_OBJECT = 1 << 4 | 1
_COFF_X86_64, _COFF_HEAD_BYTES, _COFF_SECTION_BYTES = 0x8664, 20, 40
_COFF_READ_ONLY_LINES = 0x40700040
"""The section holds data, is read alone, and begins at 64 bytes."""
_COFF_EXTERNAL = 2


def export_library(bundle: Bundle, out: Path, arch: str, *, keeps_goldens: bool = False) -> Exported:
    """Writes `out`, whose name ends in .a or .lib, for an architecture, and a header of the same name beside it.

    Raises:
        UsageError: the name is none of a static library.
        UnavailableError: as of `exported_program.runnable`, or the bundle is too large for a library.
        BundleError: the bundle is damaged.
        CannotCreateError, InputOutputError: a file cannot be written.
    """
    if out.suffix not in (".a", ".lib"):
        raise UsageError(f"{out.name!r:.80} is no name of a static library", hint=f"-o {out.with_suffix('.a')}")
    part = runnable(bundle, keeps_goldens=keeps_goldens)
    size = sum(map(len, part.chunks))
    if size > MAX_BYTES:
        raise UnavailableError(
            f"the bundle has {size} bytes, a library at most {MAX_BYTES}", hint="nnd_open opens a file"
        )
    name = identifier(out.stem.removeprefix("lib"))
    data = f"{name}_bundle"
    made = (
        _coff_object(data, part.chunks, size) if arch == WINDOWS else _object(data, part.chunks, size, MACHINES[arch])
    )
    archive = list(_archive(f"{name}.o", list(made), [data, f"{data}_bytes"]))
    replace_file(out, archive)
    replace_file(out.with_suffix(".h"), [_header(name, bundle.manifest).encode()])
    return Exported(sum(map(len, archive)), size, hinted(part.left_out))


def identifier(name: str) -> str:
    """Returns what a name is called in C."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return plain if plain and not plain[0].isdigit() else f"_{plain}"


def _header(name: str, manifest: Manifest) -> str:
    lines = [f"{manifest.model_name}, by nndeploy export. Link with libnndeploy, whose nndeploy.h this needs.", ""]
    lines += [f"  input {one.name}: {one.type}" for one in manifest.inputs]
    lines += [f"  output {one.name}: {one.type}" for one in manifest.outputs]
    comment = "\n".join(f" * {one_line(line)}".rstrip().replace("*/", "* /") for line in lines)
    guard = f"{name.upper()}_H"
    return f"""/*
{comment}
 */
#ifndef {guard}
#define {guard}

#include <nndeploy.h>

#ifdef __cplusplus
extern "C" {{
#endif

extern const int64_t {name}_bundle_bytes;
extern const unsigned char {name}_bundle[];

/* Opens the bundle in this library; as nnd_open. */
static inline nnd_program *{name}_open(const nnd_options *options, nnd_error *error) {{
  return nnd_open_memory({name}_bundle, {name}_bundle_bytes, options, error);
}}

#ifdef __cplusplus
}}
#endif

#endif
"""


def _object(symbol: str, chunks: Sequence[Buffer], size: int, machine: int) -> Iterator[Buffer]:
    """Yields an ELF object with the bundle under a symbol, and its size under one with _bytes behind."""
    names = f"\0{symbol}\0{symbol}_bytes\0".encode()
    symbols = bytes(_SYMBOL_BYTES)
    symbols += struct.pack("<IBBHQQ", 1, _GLOBAL_OBJECT, 0, 1, ALIGNMENT, size)
    symbols += struct.pack("<IBBHQQ", 2 + len(symbol), _GLOBAL_OBJECT, 0, 1, 0, 8)
    section_names = "\0".join((*_SECTIONS, "")).encode()
    tables = [symbols, names, section_names]
    data_at, data_bytes = ALIGNMENT, ALIGNMENT + size
    after = data_at + data_bytes + -(data_at + data_bytes) % 8
    places = [after, after + len(symbols), after + len(symbols) + len(names)]
    end = places[-1] + len(section_names)
    sections_at = end + -end % 8
    rows = [
        (0,) * 9,
        (_PROGBITS, _ALLOC, data_at, data_bytes, 0, 0, ALIGNMENT, 0),
        (_PROGBITS, 0, after, 0, 0, 0, 1, 0),  # the stack of the program need not be executable
        (_SYMTAB, 0, places[0], len(symbols), 4, 1, 8, _SYMBOL_BYTES),
        (_STRTAB, 0, places[1], len(names), 0, 0, 1, 0),
        (_STRTAB, 0, places[2], len(section_names), 0, 0, 1, 0),
    ]
    yield b"\x7fELF\2\1\1" + bytes(9)
    yield struct.pack(
        "<HHIQQQIHHHHHH", 1, machine, 1, 0, 0, sections_at, 0, _HEAD_BYTES, 0, 0, _SECTION_BYTES, len(rows), 5
    )
    yield struct.pack("<Q", size) + bytes(ALIGNMENT - 8)
    yield from chunks
    yield bytes(-(data_at + data_bytes) % 8)
    yield from tables
    yield bytes(-end % 8)
    for section, (kind, flags, offset, length, link, info, alignment, entry, *_) in zip(_SECTIONS, rows, strict=True):
        place = section_names.index(section.encode() + b"\0") if section else 0
        yield struct.pack("<IIQQQQIIQQ", place, kind, flags, 0, offset, length, link, info, alignment, entry)


def _coff_object(symbol: str, chunks: Sequence[Buffer], size: int) -> Iterator[Buffer]:
    """Yields the same as an object of Windows."""
    names = f"{symbol}\0{symbol}_bytes\0".encode()
    data_at, data_bytes = _COFF_HEAD_BYTES + _COFF_SECTION_BYTES, ALIGNMENT + size
    yield struct.pack("<HHIIIHH", _COFF_X86_64, 1, 0, data_at + data_bytes, 2, 0, 0)
    yield struct.pack("<8sIIIIIIHHI", b".rdata", 0, 0, data_bytes, data_at, 0, 0, 0, 0, _COFF_READ_ONLY_LINES)
    yield struct.pack("<Q", size) + bytes(ALIGNMENT - 8)
    yield from chunks
    for place, value in ((4, ALIGNMENT), (4 + len(symbol) + 1, 0)):
        yield struct.pack("<IIIhHBB", 0, place, value, 1, 0, _COFF_EXTERNAL, 0)
    yield struct.pack("<I", 4 + len(names)) + names


def _archive(member: str, data: Sequence[Buffer], symbols: Sequence[str]) -> Iterator[Buffer]:
    """Yields an archive of one member, with the index by which a linker finds its symbols; its bytes have no date."""
    names = b"".join(symbol.encode() + b"\0" for symbol in symbols)
    names += bytes(len(names) % 2)
    index_bytes = 4 + 4 * len(symbols) + len(names)
    long_names = f"{member}/\n".encode()
    long_names += b"\n" * (len(long_names) % 2)
    begin = 8 + 60 + index_bytes + 60 + len(long_names)
    size = sum(map(len, data))
    yield b"!<arch>\n" + _member_head("/", index_bytes)
    yield struct.pack(f">{1 + len(symbols)}I", len(symbols), *(begin for _ in symbols)) + names
    yield _member_head("//", len(long_names)) + long_names
    yield _member_head("/0", size)
    yield from data
    yield b"\n" * (size % 2)


def _member_head(name: str, size: int) -> bytes:
    return f"{name:<16}{0:<12}{0:<6}{0:<6}{'644':<8}{size:<10}`\n".encode()
