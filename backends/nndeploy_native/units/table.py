# SPDX-License-Identifier: Apache-2.0
"""The parameter table: which units compute which blocks of a first shape. docs/internals/units.md defines every field.

`table_to_bytes` and `table_from_bytes` are the format; `check_table` is what a table from a file has to pass before
anything runs it. Laws: reading what was written gives an equal table; a table that passes covers its first shape
exactly, and no unit gets a block that it does not accept.
"""

import struct
import zlib
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import groupby

from nndeploy.errors import DataError
from nndeploy_native.isa import Isa
from nndeploy_native.units.unit_list import (
    ACTIVATIONS,
    DOT,
    DOT_COLUMNS,
    LANE,
    NAMES,
    PACK_INPUT,
    PACK_WEIGHTS,
    PACKING,
    THIN,
    THIN_K,
    limits_of,
)

MAGIC, VERSION = 0x54444E4E, 1
_HEADER, _ROW = struct.Struct("<IHH3iBBHII"), struct.Struct("<HBBI3i3i")
MAX_ROWS = 8
_MOST = 2**31 - 1
GOES_ON, GROWS = 1, 2
EPILOGUE_SHIFT = 4
_MOST_TILES_AT_ONCE = 64
_MOST_KINDS = 3


class Range(IntEnum):
    """Which first shapes beside its own a table serves along M."""

    EXACT = 0
    WHOLE = 1
    PART = 2
    TAIL = 3


class Tail(IntEnum):
    """How a block that is smaller than its unit's is treated."""

    NONE = 0
    DISCARD = 1
    OVERLAP = 2
    VARIABLE = 3
    VARIABLE_TAIL = 4


@dataclass(frozen=True, slots=True)
class Row:
    """One or more blocks for one unit: `repeat` blocks of `length` (M, N, K) along M, the first at `offset`."""

    unit: int
    tail: int
    flags: int
    repeat: int
    offset: tuple[int, int, int]
    length: tuple[int, int, int]

    @property
    def activation(self) -> str:
        """The epilogue's name."""
        return ACTIVATIONS[self.flags >> EPILOGUE_SHIFT]


@dataclass(frozen=True, slots=True)
class Table:
    """A table: `first` is (M, N, K); `modulus` is the M between two first shapes that share it."""

    first: tuple[int, int, int]
    range: int
    modulus: int
    rows: tuple[Row, ...]
    axes: int = 3


def table_to_bytes(table: Table) -> bytes:
    """Returns the table in the binary layout, with its checksum."""
    rows = b"".join(
        _ROW.pack(row.unit, row.tail, row.flags, row.repeat, *row.offset, *row.length) for row in table.rows
    )
    size = _HEADER.size + len(rows)

    def with_checksum(checksum: int) -> bytes:
        head = (MAGIC, VERSION, len(table.rows), *table.first, table.axes, table.range, table.modulus, size, checksum)
        return _HEADER.pack(*head) + rows

    return with_checksum(zlib.crc32(with_checksum(0)))


def table_from_bytes(data: bytes) -> Table:
    """Returns the table of its bytes; `check_table` is still to be asked.

    Raises:
        DataError: it is not a whole table of this version.
    """
    table, checksum = _read(data)
    if checksum != zlib.crc32(data[: _HEADER.size - 4] + bytes(4) + data[_HEADER.size :]):
        raise _bad("the checksum is wrong")
    return table


def table_from_memory(data: bytes) -> Table:
    """Returns a table as the C library composed it: without a checksum, in a buffer that may be longer.

    Raises:
        DataError: there is no table.
    """
    size = int.from_bytes(data[24:28], "little")
    return _read(data[:size])[0]


def _read(data: bytes) -> tuple[Table, int]:
    if not _HEADER.size <= len(data) <= _HEADER.size + MAX_ROWS * _ROW.size:
        raise _bad(f"{len(data)} bytes")
    magic, version, count, m, n, k, axes, span, modulus, size, checksum = _HEADER.unpack_from(data)
    if magic != MAGIC:
        raise _bad("it does not begin as one")
    if version != VERSION:
        raise _bad(f"its version is {version}, this one reads {VERSION}")
    if size != len(data) or size != _HEADER.size + count * _ROW.size:
        raise _bad(f"{count} rows and {size} bytes are said, {len(data)} bytes are there")
    rows = []
    for number in range(count):
        unit, tail, flags, repeat, *places = _ROW.unpack_from(data, _HEADER.size + number * _ROW.size)
        rows.append(Row(unit, tail, flags, repeat, (*places[:3],), (*places[3:],)))
    return Table((m, n, k), span, modulus, tuple(rows), axes), checksum


def serves(table: Table, m: int) -> bool:
    """Returns whether a table that `check_table` passes runs a first shape of M rows."""
    over = m - table.first[0]
    if table.range == Range.PART:
        return over >= 0 and over % table.modulus == 0
    return over == 0 or (
        table.range != Range.EXACT and -table.modulus < over <= (0 if table.range == Range.TAIL else over)
    )


def table_at(table: Table, m: int) -> Table:
    """Returns what a table that `serves` M rows is for them: the exact table.

    Raises:
        DataError: it does not serve them.
    """
    if not serves(table, m):
        raise DataError(f"a table of M {table.first[0]}, range kind {table.range}, does not serve {m} rows")
    more = max(0, -(-(m - table.first[0]) // (table.modulus or 1)))
    less = table.first[0] + more * table.modulus - m
    rows = []
    for row in table.rows:
        if row.unit in PACKING:
            length = (m, *row.length[1:]) if row.unit == PACK_INPUT else row.length
            rows.append(replace(row, length=length))
            continue
        grows, begins = row.flags & GROWS, row.offset[0] == 0
        offset = (row.offset[0] + (0 if begins else more * table.modulus), *row.offset[1:])
        length = (row.length[0] - (less if row.tail == Tail.VARIABLE else 0), *row.length[1:])
        repeat = row.repeat + (more if grows else 0)
        rows.append(replace(row, flags=row.flags & ~GROWS, repeat=repeat, offset=offset, length=length))
    return Table((m, *table.first[1:]), Range.EXACT, 0, tuple(rows), table.axes)


def check_table(table: Table, isa: Isa) -> None:
    """Passes a table of a matrix product that its interpreter may be given.

    Raises:
        DataError: a field is out of its range, or the blocks do not cover the first shape exactly.
    """
    m, n, k = table.first
    if table.axes != 3 or min(m, n, k) < 1:
        raise _bad(f"{table.axes} axes of {m} x {n} x {k}")
    products = _packing_checked(table)
    if not products:
        raise _bad("it has no unit that computes")
    if len({row.flags >> EPILOGUE_SHIFT for row in products}) > 1:
        raise _bad("its blocks end in different activations")
    zones = [list(rows) for _, rows in groupby(products, key=lambda row: (row.offset[1], row.length[1]))]
    _check_columns(zones, n, k, isa)
    for zone in zones:
        _check_rows(zone, table, isa)
    for zone in zones[1:]:
        if [_along_m(row) for row in zone] != [_along_m(row) for row in zones[0]]:
            raise _bad("its zones of columns are cut differently along M")
    _check_range(table, zones[0])


def _packing_checked(table: Table) -> list[Row]:
    """Returns the rows that compute; what packs stands before them, in order."""
    (m, n, k), rows = table.first, list(table.rows)
    if rows and rows[0].unit == PACK_WEIGHTS:
        row = rows.pop(0)
        begin, length = row.offset[1], row.length[1]
        if (
            row != Row(PACK_WEIGHTS, 0, 0, 1, (0, begin, 0), (0, length, k))
            or not 0 <= begin < n
            or begin + length != n
        ):
            raise _bad("the row that packs weights does not fit")
    if rows and rows[0].unit == PACK_INPUT:
        row = rows.pop(0)
        if row != Row(PACK_INPUT, 0, 0, row.repeat, (0, 0, 0), (m, 0, k)) or not 1 <= row.repeat <= _MOST_TILES_AT_ONCE:
            raise _bad("the row that packs the input does not fit")
    for row in rows:
        if row.unit not in NAMES or row.unit in PACKING:
            raise _bad(f"unit {row.unit} does not compute a product, or stands in a wrong place")
    return rows


def _check_columns(zones: list[list[Row]], n: int, k: int, isa: Isa) -> None:
    panel, at = isa.panel * isa.lanes, 0
    for zone in zones:
        begin, length = zone[0].offset[1], zone[0].length[1]
        if begin != at or length < 1 or at + length > n or begin % panel:
            raise _bad(f"columns {begin} to {begin + length} follow {at} of {n}")
        at += length
    if at != n or len(zones) > 2 or len(zones[0]) > _MOST_KINDS:
        raise _bad(f"{at} of {n} columns are covered by {len(zones)} zones")
    packed_as = [{_format(row.unit) for row in zone} for zone in zones]
    only = "thin" if k <= THIN_K else "dot" if n <= DOT_COLUMNS else ""
    if any(len(one) > 1 or (one & {"thin", "dot"}) != ({only} - {""}) for one in packed_as):
        raise _bad("units of one zone read different formats of weights")
    if only == "thin":
        if len(zones) > 1:
            raise _bad("thin blocks have all columns")
        return
    for zone, one in zip(zones, packed_as, strict=True):
        begin, length = zone[0].offset[1], zone[0].length[1]
        lane = n - (n % panel or panel) == begin and n - begin <= isa.lanes and n > DOT_COLUMNS
        if ("lane" in one) != (lane and length <= isa.lanes):
            raise _bad("the last columns and their unit's width do not fit")
        if "panel" in one and lane is False and zone is not zones[-1] and length % panel:
            raise _bad("a zone ends inside a panel")
        if "panel" in one and begin + length == n and 0 < n % panel <= isa.lanes:
            raise _bad("the last columns and their unit's width do not fit")


def _format(unit: int) -> str:
    """Returns in what form a unit reads weights."""
    return {THIN: "thin", DOT: "dot", LANE: "lane"}.get(unit, "panel")


def _check_rows(zone: list[Row], table: Table, isa: Isa) -> None:
    (m, n, k), at = table.first, 0
    has_packed = any(row.unit == PACK_INPUT for row in table.rows)
    for number, row in enumerate(zone):
        most = limits_of(row.unit, n, isa)
        if row.flags >> EPILOGUE_SHIFT >= len(ACTIVATIONS) or row.flags & 0b1100:
            raise _bad(f"flags {row.flags}")
        if (row.flags & GOES_ON == 0) != (number == len(zone) - 1):
            raise _bad("a row goes on where its zone ends, or the other way round")
        if not 1 <= row.length[0] <= most.rows or row.repeat < 1:
            raise _bad(f"{row.repeat} blocks of {row.length[0]} rows, {NAMES[row.unit]} takes 1 to {most.rows}")
        is_whole, last = row.length[0] == most.rows, number == len(zone) - 1
        if not ((row.tail == Tail.NONE and is_whole) or (row.tail == Tail.VARIABLE and (last or not is_whole))):
            raise _bad(f"tail mark {row.tail} for {row.length[0]} of {most.rows} rows")
        if row.offset[0] != at or row.offset[2] != 0 or row.length[2] != k:
            raise _bad(f"a block at {row.offset} of {row.length} follows row {at}")
        if has_packed and row.unit == THIN:
            raise _bad("thin blocks with an input that is packed")
        at += row.repeat * row.length[0]
    if at != m:
        raise _bad(f"{at} of {m} rows are covered")


def _along_m(row: Row) -> tuple[int, int, int, int]:
    return row.offset[0], row.length[0], row.repeat, row.flags & GROWS


def _check_range(table: Table, zone: list[Row]) -> None:
    """Checks that what a range makes longer or shorter is what its kind says."""
    if table.range not in list(Range):
        raise _bad(f"range kind {table.range}")
    growing = [row.length[0] for row in zone if row.flags & GROWS]
    if table.range in (Range.EXACT, Range.TAIL) and growing:
        raise _bad("a row grows in a table whose range does not")
    if table.range in (Range.WHOLE, Range.PART) and growing != [table.modulus]:
        raise _bad(f"rows that grow by {growing} in a table of every {table.modulus}th first shape")
    if (table.range == Range.EXACT) != (table.modulus == 0):
        raise _bad(f"modulus {table.modulus} for range kind {table.range}")
    if table.range in (Range.WHOLE, Range.TAIL) and not _gives_way(zone, table.modulus):
        raise _bad("no last block that can be shorter")


def _gives_way(zone: list[Row], modulus: int) -> bool:
    """Returns whether only the last block is variable, and long enough for every first shape of the range."""
    variable = [row for row in zone if row.tail == Tail.VARIABLE]
    return variable == zone[-1:] and zone[-1].repeat == 1 and zone[-1].length[0] >= modulus


def _bad(what: str) -> DataError:
    return DataError(f"not a table that can be run: {what}", hint="it is made again where it is missing")
