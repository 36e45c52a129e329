# SPDX-License-Identifier: Apache-2.0
"""Parameter tables as bytes: round trip, every wrong field is refused, nothing that is read is trusted."""

from dataclasses import replace

import numpy as np
import pytest
from nndeploy_native.isa import ISAS
from nndeploy_native.units.form import Form, check_form
from nndeploy_native.units.picture import picture_of
from nndeploy_native.units.table import (
    GOES_ON,
    GROWS,
    Range,
    Row,
    Table,
    Tail,
    check_table,
    table_from_bytes,
    table_from_memory,
    table_to_bytes,
)
from nndeploy_native.units.unit_list import DOT, LANE, PACK_INPUT, PACK_WEIGHTS, THIN, WIDE_1, WIDE_2

from nndeploy.errors import DataError

V4 = ISAS[0]
RELU = 1 << 4


def _product(unit: int, rows: int, repeat: int, at: int, columns: tuple[int, int], flags: int = 0) -> Row:
    most = {WIDE_1: 14, WIDE_2: 7, LANE: 14, DOT: 4, THIN: 24}[unit]
    tail = Tail.VARIABLE if rows < most else Tail.NONE
    return Row(unit, tail, flags | RELU, repeat, (at, columns[0], 0), (rows, columns[1] - columns[0], 100))


def _pack(m: int) -> Row:
    return Row(PACK_INPUT, 0, 0, 8, (0, 0, 0), (m, 0, 100))


EXACT = Table(
    (33, 40, 100), Range.EXACT, 0,
    (
        _pack(33),
        _product(WIDE_1, 14, 2, 0, (0, 32), GOES_ON), _product(WIDE_1, 5, 1, 28, (0, 32)),
        _product(LANE, 14, 2, 0, (32, 40), GOES_ON), _product(LANE, 5, 1, 28, (32, 40)),
    ),
)  # fmt: skip
PART = Table(
    (33, 64, 100), Range.PART, 14,
    (_pack(33), _product(WIDE_1, 14, 2, 0, (0, 64), GOES_ON | GROWS), _product(WIDE_1, 5, 1, 28, (0, 64))),
)  # fmt: skip
TAIL = Table(
    (4, 6, 100), Range.TAIL, 4,
    (Row(PACK_WEIGHTS, 0, 0, 1, (0, 0, 0), (0, 6, 100)), replace(_product(DOT, 4, 1, 0, (0, 6)), tail=Tail.VARIABLE)),
)  # fmt: skip
THIN_ONE = Table(
    (48, 40, 8), Range.WHOLE, 24,
    (
        Row(THIN, 0, GOES_ON | GROWS | RELU, 1, (0, 0, 0), (24, 40, 8)),
        Row(THIN, Tail.VARIABLE, RELU, 1, (24, 0, 0), (24, 40, 8)),
    ),
)  # fmt: skip
EACH = pytest.mark.parametrize("table", [EXACT, PART, TAIL, THIN_ONE], ids=["exact", "part", "tail", "thin"])


@EACH
def test_a_table_passes_and_comes_back_as_it_was(table: Table) -> None:
    check_table(table, V4)
    assert table_from_bytes(table_to_bytes(table)) == table


@EACH
def test_a_changed_bit_is_found(table: Table) -> None:
    data = table_to_bytes(table)
    for place in range(8 * len(data)):
        changed = bytearray(data)
        changed[place // 8] ^= 1 << place % 8
        with pytest.raises(DataError):
            table_from_bytes(bytes(changed))


@EACH
def test_a_cut_or_longer_table_is_refused(table: Table) -> None:
    data = table_to_bytes(table)
    for length in range(len(data)):
        with pytest.raises(DataError):
            table_from_bytes(data[:length])
    with pytest.raises(DataError):
        table_from_bytes(data + b"\0")


def _row_changes(row: Row) -> list[Row]:
    """Returns the row with each field changed alone."""
    found = [replace(row, unit=unit) for unit in range(12) if unit != row.unit]
    found += [replace(row, tail=tail) for tail in range(7) if tail != row.tail]
    found += [replace(row, repeat=repeat) for repeat in (0, row.repeat + 1, 2**32 - 1)]
    found += [replace(row, flags=row.flags ^ flag) for flag in (GOES_ON, GROWS, 4, 8, 128)]
    for axis in range(3):
        for change in (-1, 1, 2**30):
            at, length = list(row.offset), list(row.length)
            at[axis] += change
            length[axis] += change
            found += [replace(row, offset=tuple(at)), replace(row, length=tuple(length))]
    return found


@EACH
def test_every_field_of_a_row_that_is_changed_alone_is_refused(table: Table) -> None:
    for number, row in enumerate(table.rows):
        for changed in _row_changes(row):
            rows = (*table.rows[:number], changed, *table.rows[number + 1 :])
            if row.unit == PACK_INPUT and changed == replace(row, repeat=9):
                continue  # tiles at once: another choice, as right
            if changed == replace(row, unit=changed.unit) and {row.unit, changed.unit} == {WIDE_1, WIDE_2}:
                continue  # another width for as few rows
            with pytest.raises(DataError):
                check_table(replace(table, rows=rows), V4)


@EACH
def test_every_field_of_the_header_that_is_changed_alone_is_refused(table: Table) -> None:
    m, n, k = table.first
    wrong = [replace(table, axes=2), replace(table, range=4), replace(table, modulus=table.modulus + 1)]
    serves_as_well = {Range.WHOLE: Range.PART}.get(Range(table.range))  # fewer first shapes, each as right
    wrong += [replace(table, range=kind) for kind in Range if kind not in (table.range, serves_as_well)]
    wrong += [replace(table, first=first) for first in ((m + 1, n, k), (m, n - 1, k), (m, n, k + 1), (0, 0, 0))]
    wrong += [replace(table, rows=table.rows[:-1]), replace(table, rows=())]
    for one in wrong:
        with pytest.raises(DataError):
            check_table(one, V4)


def test_what_passes_covers_each_element_once_whatever_bytes_it_came_from() -> None:
    random, passed = np.random.default_rng(1), 0
    tables = (EXACT, PART, TAIL, THIN_ONE)
    for number in range(20000):
        data = bytearray(table_to_bytes(tables[number % 4]))
        for place in random.integers(8, len(data), random.integers(1, 4)):
            data[place] = random.choice((0, 1, 2, 5, 14, 28, 32, 33, 40, 64, 255))
        try:
            table = table_from_bytes(table_to_bytes(table_from_memory(bytes(data))))
            check_table(table, V4)
        except DataError:
            continue
        passed += 1
        m, n, _ = table.first
        times = np.zeros((m, n), int)
        for row in table.rows:
            if row.unit >= WIDE_1:
                times[row.offset[0] :][: row.repeat * row.length[0], row.offset[1] :][:, : row.length[1]] += 1
        assert (times == 1).all()
    assert passed > 10


@pytest.mark.parametrize(
    ("table", "form", "constant"),
    [
        (EXACT, Form(100, 41, "relu"), True),
        (EXACT, Form(101, 40, "relu"), True),
        (EXACT, Form(100, 40, "none"), True),
        (EXACT, Form(100, 40, "relu"), False),
        (PART, Form(100, 64, "relu", weights_are_strided=True), False),
        (TAIL, Form(100, 6, "relu"), True),
        (TAIL, Form(100, 6, "relu", input_is_strided=True), False),
        (THIN_ONE, Form(8, 40, "relu", weights_are_strided=True), False),
    ],
)
def test_a_table_of_another_product_is_refused(table: Table, form: Form, constant: bool) -> None:
    with pytest.raises(DataError):
        check_form(table, form, constant_weights=constant, isa=V4)


def test_a_table_of_the_product_passes() -> None:
    check_form(EXACT, Form(100, 40, "relu", input_is_strided=True), constant_weights=True, isa=V4)
    check_form(PART, Form(0, 0, "relu"), constant_weights=False, isa=V4)
    check_form(TAIL, Form(100, 6, "relu"), constant_weights=False, isa=V4)
    check_form(THIN_ONE, Form(0, 0, "relu", input_is_strided=True), constant_weights=False, isa=V4)
    check_form(THIN_ONE, Form(8, 40, "relu"), constant_weights=True, isa=V4)


def test_a_picture_shows_each_block_where_it_lies() -> None:
    lines = picture_of(EXACT).splitlines()
    assert lines[0] == "M 33 x N 40 x K 100, this M alone"
    drawing = [line.strip() for line in lines if set(line.strip()) <= set("ABCD")]
    assert drawing[0] == "A" * 32 + "C" * 8
    assert drawing[-1] == "B" * 32 + "D" * 8
    assert "2 x 14 rows from 0 on, columns 0 to 32, relu" in lines[2]
