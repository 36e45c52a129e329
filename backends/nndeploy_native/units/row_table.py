# SPDX-License-Identifier: Apache-2.0
"""What a table of an element-wise chain or of a unit along the last axis has to pass before it is run.

Such a table's first shape is one block, (1, rows, columns); its range serves every A and M, and the N of its bucket.
Law: a table that passes covers every first shape of its bucket exactly, and no unit gets a block it does not accept.
"""

from nndeploy.errors import DataError
from nndeploy_native.isa import Isa
from nndeploy_native.units.row_list import ALONG, ALONG_VECTORS, ELEMENTWISE, NARROW, ONE_OPERAND, RUN_FLOATS
from nndeploy_native.units.table import EPILOGUE_SHIFT, GOES_ON, GROWS, MAX_ROWS, Range, Table, Tail


def check_row_table(table: Table, isa: Isa, num_operands: int) -> None:
    """Passes a table that the interpreter of chains, or of units along the last axis, may be given.

    Raises:
        DataError: a field is out of its range.
    """
    if table.axes != 3 or not 1 <= len(table.rows) <= MAX_ROWS:
        raise _bad(f"{table.axes} axes, {len(table.rows)} rows")
    is_along = table.rows[0].unit in ALONG.values()
    if is_along and len(table.rows) > 1:
        raise _bad("a unit along the last axis goes on with no other")
    is_long = table.range == Range.WHOLE
    if (table.first, table.modulus) not in _blocks(is_along, is_long, isa):
        raise _bad(f"first shapes {table.first}, {table.modulus} of them")
    if not is_long and table.range != Range.TAIL:
        raise _bad(f"range kind {table.range}")
    tails = ((Tail.VARIABLE if is_long else Tail.VARIABLE_TAIL),) if is_along else (Tail.OVERLAP, Tail.VARIABLE)
    for number, row in enumerate(table.rows):
        if row.unit not in (ALONG if is_along else ELEMENTWISE).values():
            raise _bad(f"unit {row.unit} in row {number}")
        if row.repeat != 1 or row.offset != (0, 0, 0) or row.length != table.first:
            raise _bad(f"row {number} is not the block {table.first}")
        if row.tail not in tails or row.tail != table.rows[0].tail:
            raise _bad(f"tail mark {row.tail} in row {number}")
        goes_on = GOES_ON if number + 1 < len(table.rows) else 0
        if row.flags & (1 << EPILOGUE_SHIFT) - 1 != goes_on | (GROWS if is_long else 0):
            raise _bad(f"flags {row.flags} in row {number}")
        operand = row.flags >> EPILOGUE_SHIFT
        if operand >= num_operands or (operand and (is_along or row.unit in ONE_OPERAND.values())):
            raise _bad(f"operand {operand} of {num_operands} in row {number}")


def _blocks(is_along: bool, is_long: bool, isa: Isa) -> list[tuple[tuple[int, int, int], int]]:
    """Returns every block with its bucket: how many N it serves that are not longer, or where the longer ones begin."""
    if is_along:
        vectors = [ALONG_VECTORS + 1] if is_long else range(1, ALONG_VECTORS + 1)
        return [((1, 1, isa.lanes * many), isa.lanes) for many in vectors]
    if is_long:
        return [((1, 1, RUN_FLOATS), RUN_FLOATS)]
    widths = [1 << bits for bits in range(NARROW.bit_length())]
    return [((1, RUN_FLOATS // width, width), width - width // 2) for width in widths]


def _bad(what: str) -> DataError:
    return DataError(f"not a table that can be run: {what}", hint="it is made again where it is missing")
