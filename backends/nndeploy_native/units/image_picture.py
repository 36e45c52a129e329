# SPDX-License-Identifier: Apache-2.0
"""A table of image units as text."""

from nndeploy_native.units.image_list import BY_ROWS, COLUMNS, IMAGE_UNITS, PACK_PLANES, TILES
from nndeploy_native.units.table import GROWS, Range, Row, Table, Tail

_WIDTH = 48
_LETTERS = "ABCDEFGH"


def image_picture(table: Table) -> str:
    """Returns the rows of a checked table in words, and each of its lengths as a line of its blocks."""
    by_rows = [row for row in table.rows if row.unit in BY_ROWS]
    tiles = [row for row in table.rows if row.unit in TILES or row.unit == COLUMNS]
    lines = [_title(table, bool(by_rows), bool(tiles))]
    lines += [f"  {IMAGE_UNITS[row.unit]}: of {row.length[0]}" for row in table.rows if row.unit == PACK_PLANES]
    names = iter(_LETTERS)
    named = [(next(names), row) for row in (*by_rows, *tiles)]
    lines += [f"{name} {_words(row)}" for name, row in named]
    return "\n".join((*lines, *(f"  {_line(named, zone)}" for zone in (by_rows, tiles) if zone)))


def _title(table: Table, has_rows: bool, has_tiles: bool) -> str:
    one, two, three = table.first
    which = "this length alone" if table.range == Range.EXACT else f"every {table.modulus}th length from here on"
    has_columns = any(row.unit == COLUMNS for row in table.rows)
    if has_rows and has_tiles:
        what = "pixels" if has_columns else "vectors of pixels"
        return f"windows of {two} rows, {one} {what}, {three} channels, {which}"
    if has_rows:
        return f"windows of {one} rows x {two} channels x {three} taps, {which}"
    what = "pixels of a row" if has_columns else "vectors of positions"
    return f"{one} {what} x {two} output channels x K {three}, {which}"


def _words(row: Row) -> str:
    what = "rows" if row.unit in BY_ROWS else "pixels" if row.unit == COLUMNS else "vectors"
    rest = [] if row.activation == "none" else [row.activation]
    rest += ["grows"] if row.flags & GROWS else []
    rest += ["tail: variable"] if row.tail == Tail.VARIABLE else []
    many = f"{row.repeat} x {row.length[0]} {what} from {row.offset[0]} on, {row.length[1]} channels"
    return ", ".join((f"{IMAGE_UNITS[row.unit]}: {many}", *rest))


def _line(named: list[tuple[str, Row]], zone: list[Row]) -> str:
    """Returns one character for each part of a length."""
    length = sum(row.repeat * row.length[0] for row in zone)
    width, line = min(length, _WIDTH), ""
    for cell in range(width):
        at = (2 * cell + 1) * length // (2 * width)
        line += next(
            name for name, row in named if row in zone and 0 <= at - row.offset[0] < row.repeat * row.length[0]
        )
    return line
