# SPDX-License-Identifier: Apache-2.0
"""Convolution, separable pairs and pooling by static units: right at any shape and stride; their tables checked."""

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from native_models import Array, needs_zig, runnable_isas
from native_programs import run_command, zig
from nndeploy_native.isa import ISAS, Isa
from nndeploy_native.units.compile_units import build_units
from nndeploy_native.units.form import Form, check_form
from nndeploy_native.units.image_list import (
    COLUMNS,
    DEPTHWISE,
    IMAGE_UNITS,
    MOST_WINDOW_ROWS,
    PACK_PLANES,
    PLANNED,
    POOL_MAX,
    POOL_MEAN,
    TILES,
    block_rows,
    column_positions,
    tile_channels,
)
from nndeploy_native.units.image_table import check_image_table, is_image_table
from nndeploy_native.units.images import Convolution, ImageUnits, Pooling, Separable
from nndeploy_native.units.picture import picture_of
from nndeploy_native.units.runtime import UnitLibrary
from nndeploy_native.units.table import Table, serves, table_from_bytes, table_to_bytes
from nndeploy_native.units.tables_file import tables_from_bytes, tables_to_bytes

from nndeploy.errors import DataError, InputError

HERE = runnable_isas()
TOLERANCE = 1e-5
SIZES = (1, 2, 3, 5, 7, 8, 13, 14, 16, 17, 31, 40)
CHANNELS = (1, 2, 3, 7, 14, 15, 16, 17, 33)


@pytest.fixture(scope="module", params=HERE or [None], ids=lambda isa: isa.name if isa else "none")
def units(request: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Isa, UnitLibrary]:
    needs_zig()
    return request.param, UnitLibrary(build_units(request.param, tmp_path_factory.mktemp("units")))


@dataclasses.dataclass(frozen=True)
class Window:
    """How a kernel moves."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    pads: tuple[int, ...]
    dilations: tuple[int, ...]

    @property
    def moves(self) -> dict[str, tuple[int, ...]]:
        return {"strides": self.strides, "pads": self.pads, "dilations": self.dilations}


def windows_of(x: Array, window: Window, fill: float) -> Array:
    """Returns (N, C, rows, columns, kernel rows, kernel columns) in float64."""
    top, left, bottom, right = window.pads
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=fill)
    reach = [(k - 1) * d + 1 for k, d in zip(window.kernel, window.dilations, strict=True)]
    every = np.lib.stride_tricks.sliding_window_view(padded, reach, (2, 3))
    return every[:, :, :: window.strides[0], :: window.strides[1], :: window.dilations[0], :: window.dilations[1]]


def convolved(x: Array, weights: Array, bias: Array, window: Window, groups: int = 1) -> Array:
    """Returns the convolution in float64."""
    parts = zip(np.split(x, groups, 1), np.split(weights.astype(np.float64), groups), strict=True)
    found = [np.einsum("nchwij,ocij->nohw", windows_of(part, window, 0), one, optimize=True) for part, one in parts]
    return np.asarray(np.concatenate(found, 1) + bias[:, None, None])


def drawn_window(random: np.random.Generator, *, dilated: bool = True) -> Window:
    if random.random() < 0.5:  # the kernels that units know
        size, stride = int(random.choice([1, 3, 5])), int(random.integers(1, 3))
        return Window((size, size), (stride, stride), (size // 2,) * 4, (1, 1))
    kernel = tuple(random.integers(1, 6, 2).tolist())
    pads = tuple(int(random.integers(0, kernel[axis % 2])) for axis in range(4))
    dilations = tuple(random.integers(1, 4 if dilated else 2, 2).tolist())
    return Window(kernel, tuple(random.integers(1, 4, 2).tolist()), pads, dilations)


def drawn_input(random: np.random.Generator, window: Window, channels: int) -> Array:
    """Returns an input at random strides, NaN around it, that the window fits into."""
    least = [
        max(1, (window.kernel[axis] - 1) * window.dilations[axis] + 1 - window.pads[axis] - window.pads[axis + 2])
        for axis in (0, 1)
    ]
    sizes = [max(low, int(random.choice(SIZES))) for low in least]
    shape = (int(random.integers(1, 3)), channels, *sizes)
    order = random.permutation(4) if random.random() < 0.3 else np.arange(4)
    step = int(random.integers(1, 4)) if random.random() < 0.3 else 1
    raw = np.full((*(shape[axis] for axis in order[:-1]), shape[order[-1]] * step + 5), np.nan, np.float32)
    view: Array = raw[..., 2 : 2 + shape[order[-1]] * step : step].transpose(np.argsort(order))
    view[...] = random.standard_normal(shape)
    return view


def normal(random: np.random.Generator, *shape: int) -> Array:
    return random.standard_normal(shape).astype(np.float32)


def assert_right(program: ImageUnits, x: Array, wanted: Array, where: str) -> None:
    """Checks the result in memory of 7 around an output whose planes lie apart."""
    n, c, h, w = wanted.shape
    memory = np.full((n, c, h * w + 19), 7.0, np.float32)
    out = memory[:, :, 3 : 3 + h * w].reshape(n, c, h, w)
    assert np.shares_memory(out, memory)
    out[...] = np.nan
    program(x, out)
    assert np.isfinite(out).all(), f"{where}: read outside its input, or left something out"
    assert np.abs(out - wanted).max() <= TOLERANCE * max(1.0, np.abs(wanted).max()), where
    assert (memory == 7.0).sum() == memory.size - out.size, f"{where}: wrote outside its output"


@pytest.mark.parametrize("seed", range(4))
def test_a_convolution_equals_float64_at_any_shape(seed: int, units: tuple[Isa, UnitLibrary]) -> None:
    random = np.random.default_rng(seed)
    for _ in range(40):
        window, groups = drawn_window(random), int(random.choice([1, 1, 1, 2, 3]))
        depth, each = int(random.choice(CHANNELS)), int(random.choice(CHANNELS))
        weights, bias = normal(random, groups * each, depth, *window.kernel), normal(random, groups * each)
        x = drawn_input(random, window, depth * groups)
        wanted = convolved(x, weights, bias, window, groups)
        relu = bool(random.random() < 0.5)
        program = Convolution(
            units[1], weights, bias, groups=groups, activation="relu" if relu else "none", **window.moves
        )
        assert_right(program, x, np.maximum(wanted, 0) if relu else wanted, f"{x.shape}, {weights.shape}, {window}")


@pytest.mark.parametrize("seed", range(3))
def test_a_separable_pair_equals_float64_at_any_shape(seed: int, units: tuple[Isa, UnitLibrary]) -> None:
    random = np.random.default_rng(seed)
    for _ in range(40):
        window = drawn_window(random)
        channels, out_channels = (int(one) for one in random.choice(CHANNELS, 2))
        weights, bias = normal(random, channels, 1, *window.kernel), normal(random, channels)
        point, point_bias = normal(random, out_channels, channels), normal(random, out_channels)
        x = drawn_input(random, window, channels)
        first = np.maximum(convolved(x, weights, bias, window, channels), 0)
        wanted = np.einsum("nchw,oc->nohw", first, point) + point_bias[:, None, None]
        program = Separable(units[1], weights, bias, point, point_bias, activation="relu", **window.moves)
        assert_right(program, x, wanted, f"{x.shape} to {out_channels}, {window}")


@pytest.mark.parametrize("seed", range(3))
def test_pooling_and_depthwise_equal_float64_at_any_shape(seed: int, units: tuple[Isa, UnitLibrary]) -> None:
    random = np.random.default_rng(seed)
    for _ in range(40):
        window, channels = drawn_window(random, dilated=False), int(random.choice(CHANNELS))
        x = drawn_input(random, window, channels)
        inside, all_ones = windows_of(x, window, 0), windows_of(np.ones(x.shape, np.float32), window, 0)
        for counts, taps in ((False, all_ones.sum((-1, -2))), (True, np.prod(window.kernel))):
            pool = Pooling(units[1], "mean", channels, window.kernel, counts_padding=counts, **window.moves)
            assert_right(pool, x, inside.sum((-1, -2)) / taps, f"mean of {x.shape}, {window}")
        pool = Pooling(units[1], "max", channels, window.kernel, **window.moves)
        assert_right(pool, x, windows_of(x, window, -np.inf).max((-1, -2)), f"largest of {x.shape}, {window}")
        weights, bias = normal(random, channels, 1, *window.kernel), normal(random, channels)
        program = Convolution(units[1], weights, bias, groups=channels, **window.moves)
        assert_right(program, x, convolved(x, weights, bias, window, channels), f"depthwise {x.shape}, {window}")


@pytest.mark.parametrize(
    ("height", "width", "channels"), [(97, 131, 5), (67, 90, 24), (200, 33, 40), (5, 1021, 64), (1, 300, 600)]
)
def test_images_of_several_windows(height: int, width: int, channels: int, units: tuple[Isa, UnitLibrary]) -> None:
    random, window = np.random.default_rng(7), Window((3, 3), (1, 1), (1, 1, 1, 1), (1, 1))
    x = normal(random, 2, channels, height, width)
    weights, bias, point = normal(random, channels, 1, 3, 3), normal(random, channels), normal(random, 20, channels)
    first = convolved(x, weights, bias, window, channels)
    assert_right(Convolution(units[1], weights, bias, groups=channels, **window.moves), x, first, "depthwise")
    assert_right(Convolution(units[1], point[:, :, None, None]), x, np.einsum("nchw,oc->nohw", x, point), "pointwise")
    pair = Separable(units[1], weights, bias, point, **window.moves)
    assert_right(pair, x, np.einsum("nchw,oc->nohw", first, point), "pair")
    largest = Pooling(units[1], "max", channels, (3, 3), **window.moves)
    assert_right(largest, x, windows_of(x, window, -np.inf).max((-1, -2)), "largest")
    dense, bias = normal(random, 20, channels, 3, 3), normal(random, 20)
    assert_right(Convolution(units[1], dense, bias, **window.moves), x, convolved(x, dense, bias, window), "dense")


@pytest.mark.parametrize("activation", ["none", "relu", "sigmoid", "tanh", "silu", "hardswish", "gelu"])
def test_every_activation_is_that_of_a_product(activation: str, units: tuple[Isa, UnitLibrary]) -> None:
    random = np.random.default_rng(3)
    x, weights, bias = normal(random, 1, 6, 9, 23), normal(random, 17, 6, 1, 1), normal(random, 17)
    plain = Convolution(units[1], weights, bias)(x).astype(np.float64)
    power = 1 / (1 + np.exp(-plain))
    wanted = {
        "none": plain, "relu": np.maximum(plain, 0), "sigmoid": power, "tanh": np.tanh(plain), "silu": plain * power,
        "hardswish": plain * np.clip(plain / 6 + 0.5, 0, 1),
    }  # fmt: skip
    found = Convolution(units[1], weights, bias, activation=activation)(x)
    if activation == "gelu":
        at = [float(value) for value in found[np.abs(plain) > 6]]
        assert at == pytest.approx(np.maximum(plain[np.abs(plain) > 6], 0), abs=1e-5)
        return
    assert np.abs(found - wanted[activation]).max() <= 1e-5
    first = Convolution(units[1], np.eye(6, dtype=np.float32)[:, :, None, None])(x)
    one = np.ones((6, 1, 1, 1), np.float32)
    assert np.array_equal(first, x)
    depthwise = Convolution(units[1], one, groups=6, activation=activation)(x)
    assert np.abs(depthwise - Convolution(units[1], np.eye(6, dtype=np.float32)[:, :, None, None],
                                          activation=activation)(x)).max() <= 1e-6  # fmt: skip


@pytest.mark.parametrize("shape", [(3, 64, 5, 2), (3, 64, 50, 2), (5, 20, 1, 1), (2, 16, 3, 13)])
@pytest.mark.parametrize("stride", [1, 2])
def test_narrow_images_share_blocks(shape: tuple[int, ...], stride: int, units: tuple[Isa, UnitLibrary]) -> None:
    random, window = np.random.default_rng(5), Window((3, 3), (stride, stride), (1, 1, 1, 1), (1, 1))
    x, weights, bias = normal(random, *shape), normal(random, 40, shape[1], 3, 3), normal(random, 40)
    assert_right(Convolution(units[1], weights, bias, **window.moves), x, convolved(x, weights, bias, window), "dense")
    point, point_window = normal(random, 40, shape[1], 1, 1), Window((1, 1), (stride, stride), (0,) * 4, (1, 1))
    wanted = convolved(x, point, bias, point_window)
    assert_right(Convolution(units[1], point, bias, **point_window.moves), x, wanted, "pointwise")


@pytest.mark.parametrize(("kernel", "stride"), [(2, 1), (2, 2), (3, 1), (3, 2), (4, 3)])
@pytest.mark.parametrize("channels", [2, 16])
def test_a_nan_stays_in_its_windows(kernel: int, stride: int, channels: int, units: tuple[Isa, UnitLibrary]) -> None:
    """Infinities beside it; 2 channels lie in planes, 16 of few columns in blocks."""
    width = 60 if channels == 2 else 21
    x = np.zeros((1, channels, 9, width), np.float32)
    x[0, 1, 4, width - 3] = np.nan
    x[0, 0, 2, 3], x[0, 0, 6, 5] = np.inf, -np.inf
    window = Window((kernel, kernel), (stride, stride), (0, 0, 0, 0), (1, 1))
    every = windows_of(x, window, 0)
    for how in ("max", "mean"):
        found = Pooling(units[1], how, channels, window.kernel, strides=window.strides)(x)
        wanted = every.max((-1, -2)) if how == "max" else every.mean((-1, -2))
        assert np.array_equal(np.isnan(found), np.isnan(wanted)), how
        assert how == "mean" or np.array_equal(found, wanted, equal_nan=True)


def test_what_does_not_fit_is_refused_and_nothing_is_written(units: tuple[Isa, UnitLibrary]) -> None:
    library = units[1]
    x = np.ones((1, 4, 6, 8), np.float32)
    program = Convolution(library, np.ones((5, 4, 3, 3), np.float32))
    shared = np.ones((1, 10, 6, 8), np.float32)
    for one, out, words in (
        (np.ones((1, 3, 6, 8), np.float32), None, r"\(N, 4, H, W\) expected"),
        (np.ones((4, 6, 8), np.float32), None, "expected"),
        (np.ones((1, 4, 2, 8), np.float32), None, "a window of 3 does not fit"),
        (np.ones((1, 4, 0, 8), np.float32), None, "does not fit"),
        (x.astype(np.float64), None, "float32"),
        (x, np.ones((1, 5, 4, 7), np.float32), r"\(1, 5, 4, 6\) expected"),
        (x, np.ones((1, 5, 6, 4), np.float32).transpose(0, 1, 3, 2), "do not follow each other"),
        (x, np.broadcast_to(np.float32(0), (1, 5, 4, 6)), "cannot be written"),
        (shared[:, :4], shared[:, 4:9, :3].reshape(-1)[:120].reshape(1, 5, 4, 6), None),
        (shared[:, :4], shared.reshape(-1)[100:220].reshape(1, 5, 4, 6), "shares memory"),
    ):
        if words is None:
            assert np.array_equal(program(one, out), program(one))
            continue
        before = None if out is None else out.copy()
        with pytest.raises(InputError, match=words):
            program(one, out)
        assert out is None or np.array_equal(out, before)
    assert program(np.ones((0, 4, 6, 8), np.float32)).shape == (0, 5, 4, 6)
    kernel = np.ones((4, 1, 3, 3), np.float32)
    for wrong in (
        {"strides": (0, 1)}, {"pads": (0, 0, 0)}, {"pads": (0, 0, -1, 0)}, {"dilations": (256, 1)}, {"groups": 3},
        {"activation": "no such"}, {"bias": np.ones(3, np.float32)}, {"weights": np.ones((4, 3, 3), np.float32)},
    ):  # fmt: skip
        with pytest.raises(InputError):
            Convolution(library, **{"weights": kernel, **wrong})  # type: ignore[arg-type]
    with pytest.raises(InputError, match="then"):
        Separable(library, kernel, None, np.ones((5, 3), np.float32))
    with pytest.raises(InputError, match="smaller ones"):
        Pooling(library, "max", 4, (2, 2), pads=(2, 0, 0, 0))
    with pytest.raises(InputError, match="max or mean"):
        Pooling(library, "median", 4, (2, 2))


def every_table(units: UnitLibrary, channels: int) -> list[Table]:
    """Returns tables of each kind of operator, quick and optimal."""
    kernel, point = np.ones((channels, 1, 3, 3), np.float32), np.ones((channels + 3, channels), np.float32)
    dense = Convolution(units, np.ones((channels, 5, 3, 3), np.float32), activation="relu")
    pair, pool = Separable(units, kernel, None, point), Pooling(units, "max", channels, (2, 2))
    tables = []
    for quick in (False, True):
        for length in (*range(1, 130), 5000, 5001, 5002, 5003):
            tables.append(dense.table(length, in_place=length % 3 == 0, quick=quick))
            tables.append(dense.table(length, columns=True, in_place=length % 5 == 0, quick=quick))
            rows = 1 + length % MOST_WINDOW_ROWS
            tables += [pair.table(length, rows, columns=columns, quick=quick) for columns in (False, True)]
            if length <= MOST_WINDOW_ROWS:
                tables.append(pool.table(length, quick=quick))
    return tables


@pytest.mark.parametrize("channels", [1, 16, 65])
def test_tables_pass_the_check_and_few_serve_every_length(channels: int, units: tuple[Isa, UnitLibrary]) -> None:
    isa, library = units
    for table in every_table(library, channels):
        check_image_table(table, isa)
        assert is_image_table(table)
        assert table_from_bytes(table_to_bytes(table)) == table
        assert "?" not in picture_of(table)
    dense = Convolution(library, np.ones((channels, 5, 3, 3), np.float32))
    seen = set()
    for length, columns in itertools.product(range(1, 3000), (False, True)):
        table = dense.table(length, columns=columns)
        assert serves(table, length)
        seen.add(table_to_bytes(table))
    assert sum(map(len, seen)) <= 16384


def test_every_table_computes_the_same(units: tuple[Isa, UnitLibrary]) -> None:
    random = np.random.default_rng(11)
    weights = normal(random, 37, 6, 3, 3)
    for height, width in ((3, 4), (9, 17), (40, 61)):
        x = normal(random, 1, 6, height, width)
        program = Convolution(units[1], weights)
        vectors = -(-((height - 3) * width + width - 2) // units[0].lanes)
        for quick, columns in itertools.product((False, True), repeat=2):
            table = program.table_memory(width - 2 if columns else vectors, columns=columns, quick=quick)
            found = program.run(table, x)
            assert np.array_equal(found, program(x)), "the order of sums does not depend on the table"


def passes(table: Table, isa: Isa) -> bool:
    try:
        check_image_table(table, isa)
    except DataError:
        return False
    return True


def test_a_changed_field_is_refused(units: tuple[Isa, UnitLibrary]) -> None:
    isa, library = units
    for table in every_table(library, 16)[::17]:
        changed = [dataclasses.replace(table, **change) for change in _table_changes(table)]
        for number, row in enumerate(table.rows):
            for field, value in _row_changes(row):
                if field == "length" and number + 1 == len(table.rows) and value[1] != row.length[1]:
                    continue  # a pair's output channels stand in its tiles alone
                rows = list(table.rows)
                rows[number] = dataclasses.replace(row, **{field: value})
                changed.append(dataclasses.replace(table, rows=tuple(rows)))
        for one in changed:
            assert not passes(one, isa), f"{one}, of {table}"


def _table_changes(table: Table) -> list[dict[str, Any]]:
    one, two, three = table.first
    return [
        {"axes": 2}, {"rows": ()}, {"rows": table.rows[1:] + table.rows[:1]} if len(table.rows) > 1 else {"axes": 1},
        {"rows": table.rows * 5}, {"range": 1}, {"range": 2 - table.range}, {"modulus": table.modulus + 1},
        {"first": (one + 1, two, three)}, {"first": (0, two, three)}, {"first": (one, two + 1, three)},
        {"first": (one, two, three + 1)},
    ]  # fmt: skip


def _row_changes(row: Any) -> list[tuple[str, Any]]:
    return [
        ("unit", 3), ("unit", 200), ("unit", PACK_PLANES if row.unit != PACK_PLANES else POOL_MEAN), ("tail", 1),
        ("tail", 3 - row.tail if row.tail in (0, 3) else 0), ("flags", row.flags ^ 1), ("flags", row.flags ^ 2),
        ("flags", row.flags | 8), ("flags", row.flags | 0xF0), ("repeat", row.repeat + 1), ("repeat", 0),
        ("offset", (row.offset[0] + 1, 0, 0)), ("offset", (row.offset[0], 0, 1)),
        ("length", (row.length[0] + 1, *row.length[1:])), ("length", (row.length[0], row.length[1] + 1, row.length[2])),
        ("length", (*row.length[:2], row.length[2] + 1)), ("length", (0, *row.length[1:])),
    ]  # fmt: skip


def test_a_file_of_tables_holds_them_and_a_product_refuses_them(units: tuple[Isa, UnitLibrary]) -> None:
    isa, library = units
    tables = every_table(library, 16)[:40]
    assert tables_from_bytes(tables_to_bytes(isa, tables)) == (isa, tables)
    wrong = dataclasses.replace(tables[0], modulus=1)
    with pytest.raises(DataError, match="table 0"):
        tables_from_bytes(tables_to_bytes(isa, [wrong]))
    _, n, k = tables[0].first
    with pytest.raises(DataError, match="no product"):
        check_form(tables[0], Form(k, n, "relu"), constant_weights=True, isa=isa)


@pytest.mark.parametrize("isa", ISAS[:3], ids=lambda isa: isa.name)
def test_numbers_are_those_of_the_headers(isa: Isa, tmp_path: Path) -> None:
    needs_zig()
    numbers = {
        "COLUMNS": COLUMNS, "COLUMN_POSITIONS": column_positions(isa), "PACK_PLANES": PACK_PLANES,
        "TILE + 1": TILES.start, "TILE + NND_TILE_VECTORS": TILES.stop - 1, "DEPTHWISE": DEPTHWISE,
        "POOL_MAX": POOL_MAX, "POOL_MEAN": POOL_MEAN, "BLOCKS_PLANNED": PLANNED, "WINDOW_ROWS": MOST_WINDOW_ROWS,
        "BLOCK_ROWS": block_rows(isa), "TILE_CHANNELS": tile_channels(isa),
    }  # fmt: skip
    asserts = [f'_Static_assert(NND_{name} == {value}, "{name}");' for name, value in numbers.items()]
    (tmp_path / "numbers.c").write_text('#include "units/images.h"\n' + "\n".join(asserts) + "\n")
    run_command(zig(isa, "numbers.c", "-o", "numbers.so"), tmp_path)
    assert len(IMAGE_UNITS) == len(set(itertools.chain(IMAGE_UNITS, TILES)))
