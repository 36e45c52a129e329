# SPDX-License-Identifier: Apache-2.0
"""A file of tables (.nnt): a header of 64 bytes, then tables one after another, each with its own header and checksum.

`tables_to_bytes` and `tables_from_bytes` are the format, which docs/internals/units.md defines. Law: what is read has
passed `check_table` or `check_image_table` for the file's instruction set, and reading what was written gives equal
tables.
"""

import struct
import zlib
from collections.abc import Sequence

from nndeploy.errors import DataError
from nndeploy_native.isa import ISAS, Isa
from nndeploy_native.units.image_table import check_image_table, is_image_table
from nndeploy_native.units.table import Table, check_table, table_from_bytes, table_to_bytes

SUFFIX = ".nnt"
MAGIC, VERSION = b"NNTS", 1
MAX_TABLES = 1024
_HEADER = struct.Struct("<4sHHII16s32x")
_CHECKSUM_AT, _RESERVED_BYTES = 12, 32
_SIZE_AT = 24  # of a table, in its own header
_LEAST_BYTES = 32


def tables_to_bytes(isa: Isa, tables: Sequence[Table]) -> bytes:
    """Returns the file of at most `MAX_TABLES` tables."""
    assert len(tables) <= MAX_TABLES
    body = b"".join(map(table_to_bytes, tables))
    size = _HEADER.size + len(body)
    data = _HEADER.pack(MAGIC, VERSION, len(tables), size, 0, isa.name.encode("ascii")) + body
    return _with_checksum(data, zlib.crc32(data))


def tables_from_bytes(data: bytes) -> tuple[Isa, list[Table]]:
    """Returns the instruction set and the tables of a file.

    Raises:
        DataError: it is not a whole file of this version, or a table in it cannot be run.
    """
    if len(data) < _HEADER.size or data[:4] != MAGIC:
        raise _bad("it does not begin as one")
    _, version, count, size, checksum, name = _HEADER.unpack_from(data)
    if version != VERSION:
        raise _bad(f"its version is {version}, this one reads {VERSION}")
    if size != len(data) or count > MAX_TABLES:
        raise _bad(f"{count} tables and {size} bytes are said, {len(data)} bytes are there")
    if zlib.crc32(_with_checksum(data, 0)) != checksum:
        raise _bad("the checksum is wrong")
    if any(data[_HEADER.size - _RESERVED_BYTES : _HEADER.size]):
        raise _bad("reserved bytes are not zeros")
    isa = next((isa for isa in ISAS if isa.name.encode("ascii").ljust(16, b"\0") == name), None)
    if isa is None:
        raise _bad(f"no instruction set is called {name!r}")
    return isa, _tables(data, count, isa)


def _tables(data: bytes, count: int, isa: Isa) -> list[Table]:
    tables, at = [], _HEADER.size
    for number in range(count):
        size = int.from_bytes(data[at + _SIZE_AT : at + _SIZE_AT + 4], "little")
        if not _LEAST_BYTES <= size <= len(data) - at:
            raise _bad(f"table {number} is said to have {size} bytes, {len(data) - at} are left")
        try:
            tables.append(table_from_bytes(data[at : at + size]))
            check = check_image_table if is_image_table(tables[-1]) else check_table
            check(tables[-1], isa)
        except DataError as err:
            err.within(f"table {number}")
            raise
        at += size
    if at != len(data):
        raise _bad(f"{len(data) - at} bytes follow the last table")
    return tables


def _with_checksum(data: bytes, checksum: int) -> bytes:
    return data[:_CHECKSUM_AT] + checksum.to_bytes(4, "little") + data[_CHECKSUM_AT + 4 :]


def _bad(what: str) -> DataError:
    return DataError(f"not a file of tables: {what}", hint="make it again")
