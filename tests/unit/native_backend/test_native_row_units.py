# SPDX-License-Identifier: Apache-2.0
"""Element-wise chains and units along the last axis: right at any shape, stride and broadcast; tables checked."""

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from native_models import Array, needs_zig, runnable_isas
from native_programs import run_command, zig
from nndeploy_native.isa import ISAS, Isa
from nndeploy_native.units.compile_units import build_units
from nndeploy_native.units.row_list import (
    ALONG,
    ALONG_VECTORS,
    NARROW,
    ONE_OPERAND,
    ROW_UNITS,
    RUN_FLOATS,
    TWO_OPERANDS,
)
from nndeploy_native.units.row_table import check_row_table
from nndeploy_native.units.rows import RowStep, RowUnits
from nndeploy_native.units.runtime import UnitLibrary
from nndeploy_native.units.table import Table, table_from_bytes, table_to_bytes

from nndeploy.errors import DataError, InputError

HERE = runnable_isas()
MARGIN = 64
TOLERANCE = 2e-6
SIZES = (1, 2, 3, 5, 7, 8, 13, 16, 17, 31, 61, 64, 100, 127, 128, 129, 251, 256, 257, 509, 1021)
erf = np.vectorize(math.erf, otypes=[np.float64])


def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


ONE: dict[str, Callable[[Array], Array]] = {
    "relu": lambda x: np.maximum(x, 0), "neg": np.negative, "abs": np.abs, "sqrt": np.sqrt, "reciprocal": np.reciprocal,
    "floor": np.floor, "ceil": np.ceil, "exp": np.exp, "log": np.log, "erf": erf, "sigmoid": sigmoid, "tanh": np.tanh,
    "silu": lambda x: x * sigmoid(x), "hardswish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "gelu": lambda x: x * (1 + erf(x / math.sqrt(2))) / 2, "softplus": lambda x: np.log1p(np.exp(x)),
}  # fmt: skip
TWO: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "max": np.maximum, "min": np.minimum,
    "sub_from": lambda x, y: y - x, "div_into": lambda x, y: y / x,
}  # fmt: skip


@pytest.fixture(scope="module", params=HERE or [None], ids=lambda isa: isa.name if isa else "none")
def units(request: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Isa, UnitLibrary]:
    needs_zig()
    return request.param, UnitLibrary(build_units(request.param, tmp_path_factory.mktemp("units")))


def between_nans(random: np.random.Generator, shape: tuple[int, ...], strided: bool = False) -> Array:
    """Returns random numbers in 0.5..2 with NaN all around; strided: axes in any order, two floats apart."""
    order = random.permutation(len(shape)) if strided else np.arange(len(shape))
    step = 2 if strided else 1
    raw = np.full(math.prod(shape) * step + 2 * MARGIN, np.nan, np.float32)
    flat = raw[MARGIN : MARGIN + math.prod(shape) * step : step].reshape([shape[axis] for axis in order])
    view = flat.transpose(np.argsort(order))
    view[...] = random.uniform(0.5, 2, shape)
    return view


def in_margins(shape: tuple[int, ...], gap: int = 0) -> tuple[Array, Array]:
    """Returns an output of NaN inside memory of 7, and all of that memory; `gap` floats between its rows."""
    *outer, last = shape or (1,)
    raw = np.full((*outer, last + gap) if gap else (*outer, last), 7.0, np.float32)
    memory = np.full(raw.size + 2 * MARGIN, 7.0, np.float32)
    out = memory[MARGIN : MARGIN + raw.size].reshape(raw.shape)[..., :last].reshape(shape or ())
    out[...] = np.nan
    return out, memory


def assert_right(out: Array, memory: Array, wanted: Array, where: str) -> None:
    assert np.isfinite(out).all(), f"{where}: read outside its operands, or left something out"
    assert np.abs(out - wanted).max(initial=0) <= TOLERANCE * max(1.0, np.abs(wanted).max(initial=0)), where
    assert (memory == 7.0).sum() >= memory.size - out.size, f"{where}: wrote outside its output"


def random_shape(random: np.random.Generator, most_axes: int) -> tuple[int, ...]:
    sizes = [int(random.choice(SIZES[: 7 if axis else None])) for axis in range(int(random.integers(1, most_axes + 1)))]
    return tuple(reversed(sizes))


def part_of(random: np.random.Generator, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns a shape that is broadcast to another."""
    kept = tuple(size if random.random() < 0.6 else 1 for size in shape)
    return kept[int(random.integers(0, len(kept) + 1)) :]


@pytest.mark.parametrize("name", list(ONE))
def test_an_operator_equals_float64_at_any_length(name: str, units: tuple[Isa, UnitLibrary]) -> None:
    random, program = np.random.default_rng(1), RowUnits(units[1], [name])
    for size in (*range(1, 40), *SIZES, 2047, 5003):
        x = between_nans(random, (size,))
        out, memory = in_margins((size,))
        program(x, out=out)
        assert_right(out, memory, ONE[name](x.astype(np.float64)), f"{name} of {size}")


@pytest.mark.parametrize("seed", range(4))
def test_a_chain_of_broadcast_operands_equals_float64(seed: int, units: tuple[Isa, UnitLibrary]) -> None:
    random = np.random.default_rng(seed)
    for number in range(150):
        shape = random_shape(random, 3)
        operands = [between_nans(random, shape, bool(random.random() < 0.2))]
        operands += [between_nans(random, part_of(random, shape), bool(random.random() < 0.2)) for _ in range(2)]
        well_conditioned = ([*TWO], [name for name in TWO if name != "div_into"], ["add", "mul", "max", "min"])
        names = [str(random.choice(some)) for some in well_conditioned]
        middle = str(random.choice(["relu", "tanh", "sigmoid"]))
        steps: list[RowStep] = [(names[0], 1), middle, (names[1], 2), (names[2], 0)]
        x, *rest = (one.astype(np.float64) for one in operands)
        wanted = TWO[names[2]](TWO[names[1]](ONE[middle](TWO[names[0]](x, rest[0])), rest[1]), x)
        out, memory = in_margins(shape, gap=3 if number % 5 == 0 else 0)
        RowUnits(units[1], steps)(*operands, out=out)
        assert_right(out, memory, wanted, f"{steps} of {[one.shape for one in operands]}")


def test_an_output_may_be_an_operand_itself(units: tuple[Isa, UnitLibrary]) -> None:
    random = np.random.default_rng(5)
    for shape in ((1,), (129,), (1000,), (37, 13), (5, 300), (3, 200)):
        x, b = between_nans(random, shape), between_nans(random, shape[-1:])
        wanted = np.tanh(x.astype(np.float64) + b) * x
        RowUnits(units[1], [("add", 1), "tanh", ("mul", 0)])(x, b, out=x)
        assert np.abs(x - wanted).max() <= TOLERANCE * 4, shape
        soft = np.exp(x.astype(np.float64))
        RowUnits(units[1], ["softmax"])(x, out=x)
        assert np.abs(x - soft / soft.sum(-1, keepdims=True)).max() <= TOLERANCE, shape


@pytest.mark.parametrize("seed", range(3))
def test_units_along_the_last_axis_equal_float64(seed: int, units: tuple[Isa, UnitLibrary]) -> None:
    random, epsilon = np.random.default_rng(seed), 1e-3
    programs = {name: RowUnits(units[1], [name], epsilon) for name in ALONG}
    for number in range(120):
        shape = (*part_of(random, (3, 7)), int(random.choice(SIZES)))
        x = between_nans(random, shape, number % 5 == 0)
        scale, shift = (between_nans(random, shape[-1:], number % 7 == 0) for _ in range(2))
        double = x.astype(np.float64)
        powers = np.exp(double - double.max(-1, keepdims=True))
        mean = double.mean(-1, keepdims=True)
        normal = (double - mean) / np.sqrt(double.var(-1, keepdims=True) + epsilon)
        for name, wanted, rest in (
            ("softmax", powers / powers.sum(-1, keepdims=True), ()),
            ("sum", double.sum(-1, keepdims=True), ()),
            ("mean", mean, ()),
            ("largest", double.max(-1, keepdims=True), ()),
            ("layer_norm", normal * scale + shift, (scale, shift)),
            ("layer_norm", normal, ()),
        ):
            out, memory = in_margins(wanted.shape)
            programs[name](x, *rest, out=out)
            where = f"{name} of {shape}, strides {x.strides}"
            assert_right(out, memory, wanted, where)


def test_softmax_keeps_to_its_ends(units: tuple[Isa, UnitLibrary]) -> None:
    infinity = np.float32(np.inf)
    for size in (3, 16, 100, 500):
        x = np.zeros((4, size), np.float32)
        x[0, 0], x[1, 0], x[2, 0], x[3, 0] = -infinity, 1000, -1000, np.nan
        out = RowUnits(units[1], ["softmax"])(x)
        assert (out[:3, 0] == [0, 1, 0]).all()
        assert out[0, 1:] == pytest.approx(1 / (size - 1), rel=1e-6)
        assert (out[1, 1:] == 0).all()
        assert np.isnan(out[3]).all()


def test_what_does_not_fit_is_refused_and_nothing_is_written(units: tuple[Isa, UnitLibrary]) -> None:
    library = units[1]
    x, add = np.ones((4, 6), np.float32), RowUnits(library, [("add", 1)])
    for operands, out, words in (
        ((x,), None, "2 to 2"),
        ((x, np.ones(5, np.float32)), None, "cannot be broadcast"),
        ((x, x.astype(np.float64)), None, "float32"),
        ((x, x), np.ones((4, 5), np.float32), r"\(4, 6\) expected"),
        ((x, x), np.broadcast_to(x[:1], (4, 6)), "cannot be written"),
        ((x, x), np.ones((6, 4), np.float32).T, "not contiguous along its last axis"),
        ((x[:, :5], x[:, 1:].copy()), x[:, 1:], "shares memory"),
        ((np.ones((3, 5, 7, 9), np.float32), np.ones((5, 1, 9), np.float32)), None, "more than three axes"),
    ):
        before = None if out is None else out.copy()
        with pytest.raises(InputError, match=words):
            add(*operands, out=out)
        assert out is None or np.array_equal(out, before)
    for steps in ([], ["no such"], ["add"], [("relu", 0)], ["softmax", "relu"], ["relu"] * 9, [("add", 16)]):
        with pytest.raises(InputError):
            RowUnits(library, steps)  # type: ignore[arg-type]
    assert add(np.ones((0, 6), np.float32), x[0]).shape == (0, 6)


def test_few_tables_serve_every_shape_and_pass_the_check(units: tuple[Isa, UnitLibrary]) -> None:
    isa, library = units
    for steps in ([("mul", 1), ("add", 2), "relu"], ["softmax"], ["mean"]):
        program, seen = RowUnits(library, steps), set()
        for n in range(1, 2500):
            for single in (False, True):
                table = program.table(n, single)
                check_row_table(table, isa, 3)
                longest = table.first[2]
                assert longest - table.modulus < n
                assert n <= longest or table.range == 1
                assert table_from_bytes(table_to_bytes(table)) == table
                seen.add(table_to_bytes(table))
        assert sum(map(len, seen)) <= 2048


def test_a_changed_field_is_refused(units: tuple[Isa, UnitLibrary]) -> None:
    isa, library = units
    chain = RowUnits(library, [("mul", 1), "relu"])
    along = RowUnits(library, ["softmax"])
    for table in (chain.table(20), chain.table(3000), along.table(20), along.table(3000)):
        check_row_table(table, isa, 2)
        row = table.rows[0]
        changed = [dataclasses.replace(table, **change) for change in _table_changes(table)]
        for field, value in (
            ("unit", 1), ("unit", 200), ("tail", 0), ("tail", 7), ("flags", row.flags ^ 1), ("flags", row.flags ^ 2),
            ("flags", row.flags | 8), ("flags", row.flags | 0xF0), ("repeat", 2), ("offset", (0, 0, 1)),
            ("length", (1, 1, 3)),
        ):  # fmt: skip
            changed.append(
                dataclasses.replace(table, rows=(dataclasses.replace(row, **{field: value}), *table.rows[1:]))
            )
        for one in changed:
            with pytest.raises(DataError):
                check_row_table(one, isa, 2)


def _table_changes(table: Table) -> list[dict[str, Any]]:
    one, rows, columns = table.first
    return [
        {"axes": 2}, {"rows": ()}, {"rows": table.rows * 5}, {"range": 0}, {"range": table.range ^ 2}, {"modulus": 0},
        {"modulus": table.modulus + 1}, {"first": (2, rows, columns)}, {"first": (one, rows + 1, columns)},
        {"first": (one, rows, columns + 1)},
    ]  # fmt: skip


def test_bytes_at_random_never_pass(units: tuple[Isa, UnitLibrary]) -> None:
    program, random = RowUnits(units[1], [("mul", 1), "relu"]), np.random.default_rng(3)
    good = table_to_bytes(program.table(20))
    for _ in range(500):
        data = bytearray(good)
        data[int(random.integers(0, len(data)))] ^= int(random.integers(1, 256))
        with pytest.raises(DataError):
            table_from_bytes(bytes(data))


@pytest.mark.parametrize("isa", ISAS[:3], ids=lambda isa: isa.name)
def test_numbers_are_those_of_the_headers(isa: Isa, tmp_path: Path) -> None:
    needs_zig()
    constants = {"RUN_FLOATS": RUN_FLOATS, "NARROW": NARROW, "ALONG_VECTORS": ALONG_VECTORS}
    constants |= {name.upper(): number for name, number in ALONG.items()}
    asserts = [f'_Static_assert(NND_{name} == {value}, "{name}");' for name, value in constants.items()]
    asserts += [
        f'_Static_assert(NUMBER_{name} == {ROW_UNITS[name]}, "{name}");' for name in (*ONE_OPERAND, *TWO_OPERANDS)
    ]
    numbers = "#define NUMBERED(number, name, function) NUMBER_##name = number,\n"
    listed = "enum { NND_ONE_OPERAND_UNITS(NUMBERED) NND_TWO_OPERAND_UNITS(NUMBERED) };\n"
    (tmp_path / "numbers.c").write_text('#include "units/rows.h"\n' + numbers + listed + "\n".join(asserts) + "\n")
    run_command(zig(isa, "numbers.c", "-o", "numbers.so"), tmp_path)
