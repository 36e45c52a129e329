# SPDX-License-Identifier: Apache-2.0
"""A table as text: what `nndeploy inspect --tables` shows."""

from typing import Any

from nndeploy_native.isa import Isa
from nndeploy_native.units.image_list import IMAGE_UNITS
from nndeploy_native.units.image_picture import image_picture
from nndeploy_native.units.image_table import is_image_table
from nndeploy_native.units.table import GOES_ON, GROWS, Range, Row, Table, Tail
from nndeploy_native.units.tables_file import tables_from_bytes
from nndeploy_native.units.unit_list import NAMES, PACKING

_WIDTH, _HEIGHT = 48, 12
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def tables_to_show(data: bytes) -> list[tuple[dict[str, Any], str]]:
    """Returns each table of a file of tables: as plain data, and in words with its picture.

    Raises:
        DataError: it is no such file, or a table in it cannot be run.
    """
    isa, tables = tables_from_bytes(data)
    return [(table_to_json(table, isa), f"{isa.name}: {picture_of(table)}") for table in tables]


def table_to_json(table: Table, isa: Isa) -> dict[str, Any]:
    """Returns a checked table as plain data, units and marks by their names."""
    return {
        "isa": isa.name,
        "first": list(table.first),
        "range": Range(table.range).name.lower(),
        "modulus": table.modulus,
        "rows": [
            {
                "unit": (NAMES | IMAGE_UNITS)[row.unit],
                "tail": Tail(row.tail).name.lower(),
                "goes_on": bool(row.flags & GOES_ON),
                "grows": bool(row.flags & GROWS),
                "activation": row.activation,
                "repeat": row.repeat,
                "offset": list(row.offset),
                "length": list(row.length),
            }
            for row in table.rows
        ],
    }


def picture_of(table: Table) -> str:
    """Returns the rows of a table in words, and its tiling as a drawing: M downwards, N to the right.

    Lengths of image units are one line each.
    """
    if is_image_table(table):
        return image_picture(table)
    m, n, k = table.first
    lines = [f"M {m} x N {n} x K {k}, {_range_words(table)}"]
    letter = iter(_LETTERS)
    products = [(next(letter), row) for row in table.rows if row.unit not in PACKING]
    lines += [f"  {_words(row)}" for row in table.rows if row.unit in PACKING]
    lines += [f"{name} {_words(row)}" for name, row in products]
    return "\n".join((*lines, *_drawing(products, m, n)))


def _range_words(table: Table) -> str:
    return {
        Range.EXACT: "this M alone",
        Range.WHOLE: f"any M above {table.first[0] - table.modulus}",
        Range.PART: f"every {table.modulus}th M from here on",
        Range.TAIL: f"the {table.modulus} M up to here",
    }[Range(table.range)]


def _words(row: Row) -> str:
    name = NAMES[row.unit]
    if row.unit in PACKING:
        first = row.offset[1]
        return f"{name}: {row.repeat} tiles at once" if not row.length[1] else f"{name}: columns from {first} on"
    begin, end = row.offset[1], row.offset[1] + row.length[1]
    rest = [] if row.activation == "none" else [row.activation]
    rest += [] if row.tail == Tail.NONE else [f"tail: {Tail(row.tail).name.lower().replace('_', ' ')}"]
    many = f"{row.repeat} x {row.length[0]} rows from {row.offset[0]} on, columns {begin} to {end}"
    return ", ".join((f"{name}: {many}", *rest))


def _drawing(products: list[tuple[str, Row]], m: int, n: int) -> list[str]:
    """Returns one character for each cell of the block that covers its middle."""
    height, width = min(m, _HEIGHT), min(n, _WIDTH)
    cells = []
    for y in range(height):
        row_at = (2 * y + 1) * m // (2 * height)
        line = ""
        for x in range(width):
            column_at = (2 * x + 1) * n // (2 * width)
            line += next((name for name, row in products if _covers(row, row_at, column_at)), "?")
        cells.append(f"  {line}")
    return cells


def _covers(row: Row, at: int, column: int) -> bool:
    rows, columns = at - row.offset[0], column - row.offset[1]
    return 0 <= rows < row.repeat * row.length[0] and 0 <= columns < row.length[1]
