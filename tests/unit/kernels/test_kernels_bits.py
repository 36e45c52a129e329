# SPDX-License-Identifier: Apache-2.0
"""Products by weights of 4 and 8 bits in blocks, and of float16: odd shapes, all ways to lie, and ends."""

from dataclasses import replace

import numpy as np
import pytest
from kernel_library import every_level, plan_of, run_plan
from nndeploy_native.expressions import const, operand
from nndeploy_native.steps.matmul import BitWeights, OfBlocks, Product
from nndeploy_native.steps.movement import View
from nndeploy_native.steps.step import Epilogue
from nndeploy_native.tensors import Array, Tensor

SHAPES = (
    (1, 32, 32, 16), (1, 70, 131, 16), (2, 300, 97, 32), (3, 17, 2, 16), (4, 33, 33, 64), (5, 1, 3, 8),
    (8, 512, 20, 256), (9, 129, 40, 128), (13, 2100, 33, 32), (40, 96, 64, 96), (131, 65, 4, 24),
    (1, 4097, 5, 4097), (20, 257, 7, 257),
)  # fmt: skip
"""Rows, inner, columns, block."""


def _packed(numbers: Array, bits: int) -> Array:
    flat = numbers.reshape(-1).astype(np.uint8) & (2**bits - 1)
    if bits == 8:
        return flat
    flat = np.append(flat, np.zeros(flat.size % 2, np.uint8))
    return flat[0::2] | flat[1::2] << 4


def _made(
    rng: np.random.Generator, sizes: tuple[int, int, int], bits: int, way: int
) -> tuple[BitWeights, "np.ndarray[tuple[int, ...], np.dtype[np.float64]]"]:
    """Returns weights in one of several forms, and what they are in float64, (inner, columns)."""
    inner, columns, block = sizes
    if bits == 16:
        halves = (rng.standard_normal((inner, columns)) * 2.0 ** (-15 * (way % 2))).astype(np.float16)
        stored, steps = (halves.T, (1, inner)) if way % 3 else (halves, (columns, 1))
        flat = np.ascontiguousarray(stored).reshape(-1)
        return BitWeights(flat, 16, False, inner, columns, steps, inner, None), halves.astype(np.float64)
    blocks, is_signed, by_columns = -(-inner // block), way % 2 == 1, way % 3 != 1
    low = -(2 ** (bits - 1)) if is_signed else 0

    def of_blocks(array: Array) -> OfBlocks:
        """Returns numbers of (blocks, columns), in rows or in columns, packed where they are whole."""
        flat = array.T if by_columns else array
        steps = (1, blocks) if by_columns else (columns, 1)
        return OfBlocks(
            np.ascontiguousarray(flat).reshape(-1) if flat.dtype == np.float32 else _packed(flat, bits), *steps
        )

    numbers = rng.integers(low, low + 2**bits, (inner, columns))
    scales = (rng.random((blocks, columns)) / 50 + 1e-3).astype(np.float32)
    zeros: Array = rng.integers(low, low + 2**bits, (blocks, columns))
    of_zeros, zero = None, 0
    if way % 4 == 0:
        zero, zeros = int(zeros[0, 0]) & (2**bits - 1), np.full_like(zeros, zeros[0, 0])
    else:
        zeros = (zeros + rng.random(zeros.shape)).astype(np.float32) if way % 4 == 1 else zeros
        of_zeros = of_blocks(zeros)
    packed, steps = (_packed(numbers.T, bits), (1, inner)) if by_columns else (_packed(numbers, bits), (columns, 1))
    weights = BitWeights(packed, bits, is_signed, inner, columns, steps, block, of_blocks(scales), of_zeros, zero)
    factors, shifts = (np.repeat(one.astype(np.float64), block, 0)[:inner] for one in (scales, zeros))
    return weights, (numbers - shifts) * factors


def _run(level: str, step: Product, arrays: dict[str, Array], threads: int = 1, *, plain: bool = False) -> Array:
    inputs = [Tensor(name, array.shape) for name, array in arrays.items()]
    plan = plan_of([step], inputs, [step.output])
    return run_plan(level, plan, [*arrays.values()], threads=threads, plain_bytes=plain)[0]


def _rounded(x: Array, piece: int) -> "np.ndarray[tuple[int, ...], np.dtype[np.float64]]":
    """Returns rows whose pieces were made bytes, of which 127 is the largest of a piece."""
    made = np.empty(x.shape)
    for begin in range(0, x.shape[1], piece):
        part = x[:, begin : begin + piece]
        most = np.abs(part).max(axis=1, keepdims=True)
        bytes_ = np.rint(part * (np.float32(127) / most))
        made[:, begin : begin + piece] = bytes_ * (most / np.float32(127)).astype(np.float64)
    return made


@every_level
@pytest.mark.parametrize("bits", [4, 8, 16])
@pytest.mark.parametrize("threads", [1, 2])
def test_products(level: str, bits: int, threads: int) -> None:
    """Signed or not, in rows or columns, with zero points of every kind; rows that lie apart, too."""
    rng = np.random.default_rng(1)
    for number, (rows, inner, columns, block) in enumerate(SHAPES):
        weights, wanted = _made(rng, (inner, columns, block), bits, number)
        x = rng.standard_normal((inner, rows) if number % 3 == 2 else (rows, inner)).astype(np.float32)
        view = View.of(Tensor("x", x.shape))
        view, x64 = (view.transposed((1, 0)), x.T) if number % 3 == 2 else (view, x)
        found = _run(level, Product(Tensor("y", (rows, columns)), view, weights), {"x": x}, threads)
        size = np.abs(x64).astype(np.float64) @ np.abs(wanted)
        assert np.all(np.abs(found - x64.astype(np.float64) @ wanted) <= 3e-6 * size + 1e-30), SHAPES[number]


@every_level
@pytest.mark.parametrize("threads", [1, 2])
def test_rows_may_be_rounded(level: str, threads: int) -> None:
    """Exactly so by processors that multiply four bytes at once, and not at all by others; a row of a NaN is one."""
    rng = np.random.default_rng(6)
    for number, (rows, inner, columns, block) in enumerate((*SHAPES, (300, 2080, 20, 32))):
        weights, wanted = _made(rng, (inner, columns, block), 4, number)
        x = rng.standard_normal((rows, inner)).astype(np.float32)
        step = Product(
            Tensor("y", (rows, columns)), View.of(Tensor("x", x.shape)), replace(weights, rounds_rows=True)
        )  # fmt: skip
        size = 3e-6 * np.abs(x).astype(np.float64) @ np.abs(wanted) + 1e-30
        found, plain = (_run(level, step, {"x": x}, threads, plain=plain) for plain in (False, True))
        apart, exact = (np.abs(found - made @ wanted) for made in (_rounded(x, min(block, 128)), x.astype(np.float64)))
        assert np.all(apart <= size) or np.all(exact <= size), SHAPES[number]
        assert np.all(np.abs(plain - x.astype(np.float64) @ wanted) <= size), SHAPES[number]
        x[0, inner // 2] = np.nan
        assert np.isnan(_run(level, step, {"x": x}, threads)[0]).all()


@every_level
@pytest.mark.parametrize("rows", [1, 6, 30])
def test_ends(level: str, rows: int) -> None:
    """A bias, a residual, a number a column and a program, of which no level reads too much."""
    rng = np.random.default_rng(2)
    weights, wanted = _made(rng, (100, 45, 32), 4, 2)
    x, r = (rng.standard_normal(shape).astype(np.float32) for shape in ((rows, 100), (rows, 45)))
    bias, numbers = (rng.standard_normal(45).astype(np.float32) for _ in range(2))
    expression = ("max", ("add", ("mul", operand(0), operand(2)), operand(1)), const(0))
    end = Epilogue(expression, Tensor("r", r.shape), numbers)
    step = Product(Tensor("y", (rows, 45)), View.of(Tensor("x", x.shape)), weights, bias, end)
    sums = (x.astype(np.float64) @ wanted + bias) * numbers + r
    np.testing.assert_allclose(_run(level, step, {"x": x, "r": r}), np.maximum(sums, 0), rtol=1e-5, atol=1e-5)
