# SPDX-License-Identifier: Apache-2.0
"""Static units put together by tables: right at any first shape, stride and epilogue; tables cover exactly."""

import math
import threading
from typing import Any

import numpy as np
import pytest
from native_models import Array, needs_zig, runnable_isas
from nndeploy_native.isa import Isa
from nndeploy_native.units.compile_units import build_units
from nndeploy_native.units.form import Form, check_form
from nndeploy_native.units.runtime import Product, UnitLibrary
from nndeploy_native.units.table import check_table, table_at, table_from_memory
from nndeploy_native.units.unit_list import ACTIVATIONS

from nndeploy.errors import InputError

HERE = runnable_isas()
MARGIN = 64


@pytest.fixture(scope="module", params=HERE or [None], ids=lambda isa: isa.name if isa else "none")
def units(request: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Isa, UnitLibrary]:
    needs_zig()
    return request.param, UnitLibrary(build_units(request.param, tmp_path_factory.mktemp("units")))


def activated(values: Array, activation: str) -> Array:
    erf = np.vectorize(math.erf, otypes=[np.float64])
    sigmoid = 1 / (1 + np.exp(-values))
    return {
        "none": values,
        "relu": np.maximum(values, 0),
        "sigmoid": sigmoid,
        "tanh": np.tanh(values),
        "silu": values * sigmoid,
        "hardswish": values * np.clip(values / 6 + 0.5, 0, 1),
        "gelu": values * (1 + erf(values / math.sqrt(2))) / 2,
    }[activation]


def between_nans(random: np.random.Generator, rows: int, columns: int, transposed: bool, gap: int) -> Array:
    """Returns a view (rows, columns) of random numbers with NaN all around; `gap` floats between its rows."""
    rows, columns = (columns, rows) if transposed else (rows, columns)
    raw = np.full(rows * (columns + gap) + 2 * MARGIN, np.nan, np.float32)
    inner = raw[MARGIN:][: rows * (columns + gap)].reshape(rows, columns + gap)[:, :columns]
    inner[:] = random.standard_normal((rows, columns)) / 4
    return inner.T if transposed else inner


@pytest.mark.parametrize("seed", range(6))
def test_a_product_equals_float64_at_any_shape_and_stride(seed: int, units: tuple[Isa, UnitLibrary]) -> None:
    isa, library = units
    random = np.random.default_rng(seed)
    for number in range(60):
        most = (90, 20 if number % 3 == 0 else 150, 12 if number % 4 == 0 else 90)
        m, n, k = (int(size) for size in random.integers(1, most))
        strided_x, strided_w = (bool(one) for one in random.random(2) < 0.3)
        x = between_nans(random, m, k, strided_x, int(random.integers(0, 5)))
        weights = between_nans(random, k, n, strided_w, int(random.integers(0, 5)))
        bias = random.standard_normal(n).astype(np.float32) if number % 4 else None
        activation = ACTIVATIONS[number % len(ACTIVATIONS)]
        constant = bool(number % 2)
        form = (
            Form(k, n, activation, strided_x, strided_w)
            if constant or bias is not None
            else Form(0, 0, activation, strided_x, strided_w)
        )
        product = Product(library, form, weights if constant else None, bias)
        sums = x.astype(np.float64) @ weights.astype(np.float64) + (0 if bias is None else bias)
        wanted = activated(sums, activation)
        raw = np.full((m + 2, n + 2 * MARGIN), 7.0, np.float32)
        for memory in (product.table_memory(m, n, k), product.quick_memory(m, n, k), None):
            out = raw[1:-1, MARGIN:-MARGIN]
            out[:] = np.nan
            product(x, None if constant else weights, out, table=memory)
            where = f"{m} x {n} x {k} {activation} constant {constant}"
            assert np.isfinite(out).all(), f"{where}: read outside its inputs, or left something out"
            assert np.abs(out - wanted).max() <= 5e-6 * max(1.0, np.abs(wanted).max()), where
            outside = np.concatenate([raw[0], raw[-1], raw[:, :MARGIN].ravel(), raw[:, -MARGIN:].ravel()])
            assert (outside == 7.0).all(), f"{where}: wrote outside its output"
            if memory is not None:
                table = table_from_memory(bytes(memory))
                check_table(table, isa)
                check_form(table, form, constant_weights=constant, isa=isa)


@pytest.mark.parametrize("n", [1, 6, 7, 16, 17, 32, 40, 96, 1000])
def test_tables_of_every_m_cover_it_and_few_are_enough(n: int, units: tuple[Isa, UnitLibrary]) -> None:
    isa, library = units
    product = Product(library, Form(300, n), np.zeros((300, n), np.float32))
    tables = {bytes(product.table_memory(m, n, 300)) for m in range(1, 2001)}
    for one in tables:
        check_table(table_from_memory(one), isa)
    assert sum(int.from_bytes(one[24:28], "little") for one in tables) <= 32 * 1024
    for m in range(1, 2001):
        check_table(table_at(product.table(m), m), isa)


def test_threads_share_a_product_of_any_size_and_its_cache_is_bounded(units: tuple[Isa, UnitLibrary]) -> None:
    product, wrong = Product(units[1], Form()), list[tuple[int, ...]]()

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        for _ in range(400):
            m, n, k = (int(size) for size in random.integers(1, 30, 3))
            x, weights = random.standard_normal((m, k)).astype(np.float32), np.ones((k, n), np.float32)
            if np.abs(product(x, weights) - x.sum(1, dtype=np.float64)[:, None]).max() > 1e-4:
                wrong.append((m, n, k))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong


@pytest.mark.parametrize(
    ("x", "weights", "says"),
    [
        (np.zeros((2, 4), np.float32), None, "needs float32 weights"),
        (np.zeros((2, 4), np.float32), np.zeros((5, 3), np.float32), r"x \(2, 4\)"),
        (np.zeros((2, 4)), np.zeros((4, 3), np.float32), "float64"),
        (np.zeros((4, 2), np.float32).T, np.zeros((4, 3), np.float32), "strides"),
        (np.zeros((2, 4), np.float32), np.zeros((3, 4), np.float32).T, "strides"),
        (np.zeros((2, 0), np.float32), np.zeros((0, 3), np.float32), r"x \(2, 0\)"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_runs(
    x: Array, weights: Array | None, says: str, units: tuple[Isa, UnitLibrary]
) -> None:
    with pytest.raises(InputError, match=says):
        Product(units[1], Form())(x, weights)


def test_no_rows_give_no_rows(units: tuple[Isa, UnitLibrary]) -> None:
    product = Product(units[1], Form(4, 3), np.ones((4, 3), np.float32))
    assert product(np.zeros((0, 4), np.float32)).shape == (0, 3)


def test_measured_costs_give_right_tables_too(units: tuple[Isa, UnitLibrary]) -> None:
    isa, library = units
    library.measure_costs()
    product = Product(library, Form(64, 70), np.ones((64, 70), np.float32))
    for m in range(1, 300):
        check_table(table_at(product.table(m), m), isa)
