# SPDX-License-Identifier: Apache-2.0
"""What a table of a convolution, of pooling or of a separable pair has to pass before it is run.

Its rows, in order: `pack-planes` (but for a convolution in place), blocks of rows (depthwise, pooling), tiles or
columns. Axis 0 of its first shape is vectors of positions where it has tiles, the pixels of a row (of a pair: of a
window) where it has columns, else rows of a window; a separable pair's is (that, rows of the window, channels), others'
(that, output channels, K).
Law: a table that passes covers its lengths exactly, each once, and no unit gets a block that it does not accept.
"""

from nndeploy.errors import DataError
from nndeploy_native.isa import Isa
from nndeploy_native.units.image_list import (
    BY_ROWS,
    COLUMNS,
    DEPTHWISE,
    IMAGE_UNITS,
    MOST_KINDS,
    MOST_WINDOW_ROWS,
    PACK_PLANES,
    PLANNED,
    TILES,
    block_rows,
    column_positions,
)
from nndeploy_native.units.table import EPILOGUE_SHIFT, GOES_ON, GROWS, MAX_ROWS, Range, Row, Table, Tail
from nndeploy_native.units.unit_list import ACTIVATIONS


def is_image_table(table: Table) -> bool:
    """Returns whether a table names units of images: `check_image_table` is then the one to ask."""
    return any(row.unit in IMAGE_UNITS for row in table.rows)


def check_image_table(table: Table, isa: Isa) -> None:
    """Passes a table that the interpreter of an image operator may be given.

    Raises:
        DataError: a field is out of its range, or the blocks do not cover their length exactly.
    """
    if table.axes != 3 or min(table.first) < 1 or not 1 <= len(table.rows) <= MAX_ROWS:
        raise _bad(f"{table.axes} axes of {table.first}, {len(table.rows)} rows")
    rows = list(table.rows)
    pack = rows.pop(0) if rows[0].unit == PACK_PLANES else None
    by_rows = [row for row in rows if row.unit in BY_ROWS]
    tiles = rows[len(by_rows) :]
    if rows[: len(by_rows)] != by_rows or not rows or not _is_one_kind(tiles):
        raise _bad(f"units {[row.unit for row in table.rows]}")
    if len({row.unit for row in by_rows}) > 1 or (by_rows and not pack):
        raise _bad(f"units {[row.unit for row in table.rows]} of one window")
    _check_order(table)
    _check_range(table, tiles)
    length, channels, k = table.first
    if not by_rows:
        _check_blocks(tiles, length, (channels, k), isa)
    elif not tiles:
        _check_blocks(by_rows, length, (channels, k), isa)
    else:
        _check_pair(table, by_rows, tiles, isa)
    window = channels if by_rows and tiles else length
    if pack and pack != Row(PACK_PLANES, 0, 0, 1, (0, 0, 0), (window, 0, rows[0].length[2])):
        raise _bad("the row that packs planes does not fit")


def _is_one_kind(rows: list[Row]) -> bool:
    """Returns whether all are tiles, or all columns."""
    return all(row.unit in TILES for row in rows) or all(row.unit == COLUMNS for row in rows)


def _most(unit: int, isa: Isa) -> int:
    """Returns the longest block of a unit; a tile has no other."""
    if unit in TILES:
        return unit - TILES.start + 1
    return column_positions(isa) if unit == COLUMNS else block_rows(isa)


def _check_pair(table: Table, by_rows: list[Row], tiles: list[Row], isa: Isa) -> None:
    """Checks a depthwise part and the pointwise one behind it."""
    vectors, window, channels = table.first
    taps, out_channels = by_rows[0].length[2], tiles[0].length[1]
    if by_rows[0].unit != DEPTHWISE or min(taps, out_channels) < 1:
        raise _bad(f"unit {by_rows[0].unit} of {taps} taps before {out_channels} channels")
    _check_blocks(by_rows, window, (channels, taps), isa)
    _check_blocks(tiles, vectors, (out_channels, channels), isa)


def _check_blocks(rows: list[Row], length: int, rest: tuple[int, int], isa: Isa) -> None:
    """Checks that blocks cover a length, one after the other; `rest` is what each has along the other axes."""
    at = 0
    if len(rows) > MOST_KINDS or (rows[0].unit in BY_ROWS and length > MOST_WINDOW_ROWS):
        raise _bad(f"{len(rows)} kinds of blocks along {length}")
    for number, row in enumerate(rows):
        most = _most(row.unit, isa)
        if not (most if row.unit in TILES else 1) <= row.length[0] <= most or row.repeat < 1:
            raise _bad(f"{row.repeat} blocks of {row.length[0]}, {IMAGE_UNITS[row.unit]} takes {most}")
        if row.offset != (at, 0, 0) or row.length[1:] != rest:
            raise _bad(f"a block at {row.offset} of {row.length} follows {at}")
        is_last = number + 1 == len(rows)
        if row.tail != (Tail.VARIABLE if is_last or row.length[0] < most else Tail.NONE):
            raise _bad(f"tail mark {row.tail} of row {number}")
        at += row.repeat * row.length[0]
    if at != length:
        raise _bad(f"{at} of {length} are covered")
    if len({row.flags >> EPILOGUE_SHIFT for row in rows}) > 1:
        raise _bad("its blocks end in different activations")


def _check_order(table: Table) -> None:
    """Checks flags: every row that computes goes on with the next."""
    for number, row in enumerate(table.rows):
        goes_on = row.unit != PACK_PLANES and number + 1 < len(table.rows)
        if row.flags >> EPILOGUE_SHIFT >= len(ACTIVATIONS) or row.flags & 0b1100:
            raise _bad(f"flags {row.flags}")
        if (row.flags & GOES_ON != 0) != goes_on:
            raise _bad("a row goes on where its table ends, or the other way round")


def _check_range(table: Table, tiles: list[Row]) -> None:
    growing = [row for row in table.rows if row.flags & GROWS]
    if table.range == Range.EXACT:
        if table.modulus or growing:
            raise _bad("a row grows in a table whose range does not")
        return
    if table.range != Range.PART or not tiles or growing != tiles[:1] or tiles[0].length[0] != table.modulus:
        raise _bad(f"range kind {table.range} of every {table.modulus}th length")
    if table.first[0] < PLANNED:
        raise _bad(f"a range from {table.first[0]} on")


def _bad(what: str) -> DataError:
    return DataError(f"not a table that can be run: {what}", hint="it is made again where it is missing")
