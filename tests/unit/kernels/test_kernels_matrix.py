# SPDX-License-Identifier: Apache-2.0
"""Products of matrices and LSTMs of the kernel library, against NumPy at odd shapes; what does not fit is refused."""

from collections.abc import Sequence

import numpy as np
import pytest
from kernel_library import RefusedError, assert_close, every_level, plan_of, run_plan
from nndeploy_native.expressions import operand
from nndeploy_native.steps.matmul import Product
from nndeploy_native.steps.movement import View
from nndeploy_native.steps.recurrent import Recurrent, States
from nndeploy_native.steps.step import PLAIN, Epilogue, NativeStep, Words, Written
from nndeploy_native.tensors import Array, Tensor

from nndeploy.values.size import symbol

SHAPES = (
    (1, 3, 5), (1, 70, 131), (2, 300, 97), (3, 17, 2), (4, 33, 33), (7, 40, 300), (9, 16, 16), (14, 45, 64),
    (15, 31, 1), (29, 1, 40), (64, 129, 50), (131, 65, 4), (211, 301, 66), (1, 1, 1), (3, 1100, 40), (40, 1100, 35),
)  # fmt: skip
"""Rows, inner, columns."""


def _random(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


def _whole(name: str, shape: tuple[int, ...]) -> View:
    return View.of(Tensor(name, shape))


def _run(level: str, step: NativeStep, arrays: dict[str, Array], *, threads: int = 1) -> Array:
    inputs = [Tensor(name, array.shape) for name, array in arrays.items()]
    shape = tuple(int(size) for size in step.output.shape if isinstance(size, int))
    return run_plan(level, plan_of([step], inputs, [step.output]), [*arrays.values()], [shape], threads=threads)[0]


@every_level
@pytest.mark.parametrize("threads", [1, 2])
def test_fully_connected(level: str, threads: int) -> None:
    """Weights in panels, of few columns along k, and stored turned."""
    rng = np.random.default_rng(1)
    for number, (rows, inner, columns) in enumerate(SHAPES):
        x, weights, bias = _random(rng, rows, inner), _random(rng, inner, columns), _random(rng, columns)
        given = weights if number % 2 else np.ascontiguousarray(weights.T).T
        step = Product(Tensor("y", (rows, columns)), _whole("x", x.shape), given, bias if number % 3 else None)
        found = _run(level, step, {"x": x}, threads=threads)
        assert_close(found, x.astype(np.float64) @ weights + (bias if number % 3 else 0), level)


@every_level
def test_ends_of_fully_connected(level: str) -> None:
    """Bounds, residuals that are added, and programs of the residual and of a number a column."""
    rng, sums, added = np.random.default_rng(2), operand(0), operand(1)
    for rows, inner, columns in SHAPES[1:12]:
        x, weights, bias = _random(rng, rows, inner), _random(rng, inner, columns), _random(rng, columns)
        residual, numbers = _random(rng, rows, columns), _random(rng, columns)
        whole = x.astype(np.float64) @ weights + bias
        other = Tensor("r", residual.shape)
        bounded = ("min", ("max", sums, ("const", -1.0)), ("const", 2.0))
        plus = ("add", sums, added)
        ends = (
            (Epilogue(("relu", sums)), np.maximum(whole, 0)),
            (Epilogue(bounded), np.clip(whole, -1, 2)),
            (Epilogue(plus, other), whole + residual),
            (Epilogue(("relu", plus), other), np.maximum(whole + residual, 0)),
            (Epilogue(("mul", ("tanh", sums), added), other), np.tanh(whole) * residual),
            (Epilogue(("mul", sums, operand(2)), None, numbers), whole * numbers),
        )
        for end, wanted in ends:
            step = Product(Tensor("y", residual.shape), _whole("x", x.shape), weights, bias, end)
            arrays = {"x": x} if end.residual is None else {"x": x, "r": residual}
            assert_close(_run(level, step, arrays), wanted, level)


BATCHES = (((), ()), ((3,), ()), ((2, 3), (2, 3)), ((2, 1), (3,)), ((1,), (2,)))
"""Batches that both have, that one of them has, and that are broadcast on both sides."""


def _batched(name: str, array: Array, batch: tuple[int, ...]) -> View:
    return _whole(name, array.shape).expanded((*batch, *array.shape[-2:]))


@every_level
@pytest.mark.parametrize("threads", [1, 2])
def test_product(level: str, threads: int) -> None:
    rng = np.random.default_rng(3)
    for rows, inner, columns in SHAPES:
        for of_a, of_b in BATCHES:
            if rows * inner * columns > 1 << 20 and len(of_a) > 1:
                continue
            a, b = _random(rng, *of_a, rows, inner), _random(rng, *of_b, inner, columns)
            wanted = a.astype(np.float64) @ b
            views = (_batched("a", a, wanted.shape[:-2]), _batched("b", b, wanted.shape[:-2]))
            step = Product(Tensor("y", wanted.shape), *views)
            assert_close(_run(level, step, {"a": a, "b": b}, threads=threads), wanted, level)


@every_level
def test_product_by_a_batch_of_weights(level: str) -> None:
    """Weights of more than two axes, as they are and stored turned, by operands with and without a batch."""
    rng = np.random.default_rng(7)
    for number, (rows, inner, columns) in enumerate(SHAPES[:14]):
        for of_a, of_b in (((3,), (3,)), ((), (2,)), ((2, 1), (3,)), ((2, 3), (1,))):
            a, weights = _random(rng, *of_a, rows, inner), _random(rng, *of_b, inner, columns)
            given = weights if number % 2 else np.ascontiguousarray(weights.swapaxes(-1, -2)).swapaxes(-1, -2)
            wanted = a.astype(np.float64) @ weights
            step = Product(Tensor("y", wanted.shape), _batched("a", a, wanted.shape[:-2]), given)
            assert_close(_run(level, step, {"a": a}, threads=1 + number % 2), wanted, level)


@every_level
def test_product_of_strides(level: str) -> None:
    """Operands that are turned, or lie inside of others: heads of one projection, without a copy."""
    rng = np.random.default_rng(4)
    for number, (rows, inner, columns) in enumerate(SHAPES):
        a, b = _random(rng, inner, rows), _random(rng, columns, inner)
        plain, y = np.ascontiguousarray(a.T), Tensor("y", (rows, columns))
        turned, other = (_whole(name, one.shape).transposed((1, 0)) for name, one in (("a", a), ("b", b)))
        assert_close(_run(level, Product(y, turned, other), {"a": a, "b": b}), a.T.astype(np.float64) @ b.T, level)
        weights = b.T if number % 2 else np.ascontiguousarray(b.T)
        assert_close(_run(level, Product(y, turned, weights), {"a": a}), a.T.astype(np.float64) @ b.T, level)
        step = Product(y, _whole("a", plain.shape), other)
        assert_close(_run(level, step, {"a": plain, "b": b}), plain.astype(np.float64) @ b.T, level)
    for rows, columns in ((1, 5), (5, 1), (16, 33), (9, 70)):
        a, b = _random(rng, 2, rows, 1), _random(rng, 2, 1, columns)
        views = [View(Tensor(name, one.shape), 0, one.shape, tuple(by if size > 1 else 0 for size, by in
                      zip(one.shape, _whole(name, one.shape).strides, strict=True)))
                 for name, one in (("a", a), ("b", b))]  # fmt: skip
        step = Product(Tensor("y", (2, rows, columns)), *views)  # nothing goes on along an axis of one element
        assert_close(_run(level, step, {"a": a, "b": b}), a.astype(np.float64) @ b, level)
    for heads, length, each in ((3, 37, 21), (2, 1, 40), (5, 4, 16)):
        both = _random(rng, length, 2, heads, each)  # queries and keys of all heads
        parts = [_whole("a", both.shape).taken(1, part, 1, 1) for part in range(2)]
        queries, keys = (View(one.base, one.offset, one.sizes[:1] + one.sizes[2:], one.strides[:1] + one.strides[2:])
                         for one in parts)  # fmt: skip
        step = Product(Tensor("y", (heads, length, length)), queries.transposed((1, 0, 2)), keys.transposed((1, 2, 0)))
        wide = both.astype(np.float64).transpose(1, 2, 0, 3)
        assert_close(_run(level, step, {"a": both}), wide[0] @ wide[1].transpose(0, 2, 1), level)


@every_level
def test_product_that_is_stored_in_another_order(level: str) -> None:
    """Heads side by side in a row, as the layer behind attention reads them; batches behind the rows."""
    rng = np.random.default_rng(8)
    for rows, inner, columns in SHAPES[:14]:
        a, b, bias = _random(rng, 2, 3, rows, inner), _random(rng, 2, 3, inner, columns), _random(rng, columns)
        strides = (3 * rows * columns, columns, 3 * columns, 1)
        step = Product(Tensor("y", (2, rows, 3, columns)), _whole("a", a.shape), _whole("b", b.shape), bias,
                       Epilogue(("relu", operand(0))), strides)  # fmt: skip
        wanted = np.maximum(a.astype(np.float64) @ b + bias, 0).transpose(0, 2, 1, 3)
        assert_close(_run(level, step, {"a": a, "b": b}, threads=2), wanted, level)
        step = Product(Tensor("y", (rows, 2, 3, columns)), _whole("a", a.shape), b[0, 0], None, PLAIN,
                       (3 * columns, columns, 6 * columns, 1))  # fmt: skip
        wanted = (a.astype(np.float64) @ b[0, 0]).transpose(2, 0, 1, 3)
        assert_close(_run(level, step, {"a": a}, threads=2), wanted, level)


@every_level
@pytest.mark.parametrize("rows", [1, 8, 40])
def test_long_sums_round_little(level: str, rows: int) -> None:
    """Products of 8192 terms, whose sums grow to 80: parts are added up, not one term after the other."""
    rng = np.random.default_rng(10)
    a, b = np.abs(_random(rng, rows, 8192)), _random(rng, 8192, 40)
    wanted, y = a.astype(np.float64) @ b, Tensor("y", (rows, 40))
    turned = np.ascontiguousarray(b.T)
    cases = ((b, {}), (_whole("b", b.shape), {"b": b}), (_whole("b", turned.shape).transposed((1, 0)), {"b": turned}))
    for factor, more in cases:
        found = _run(level, Product(y, _whole("a", a.shape), factor), {"a": a, **more})
        assert float(np.sqrt(np.mean((found - wanted) ** 2))) < 1.2e-4


@every_level
def test_ends_of_products(level: str) -> None:
    """The ends of products of two values, in place, by dots and streamed, and a bias."""
    rng, sums, added = np.random.default_rng(9), operand(0), operand(1)
    for rows, inner, columns in SHAPES[:12]:
        for is_turned in (False, True):
            a, b = _random(rng, 2, rows, inner), _random(rng, 2, *((columns, inner) if is_turned else (inner, columns)))
            bias, numbers, residual = _random(rng, columns), _random(rng, columns), _random(rng, 2, rows, columns)
            whole = a.astype(np.float64) @ (b.transpose(0, 2, 1) if is_turned else b) + bias
            other = Tensor("r", residual.shape)
            line = ("max", ("sub", ("mul", sums, ("const", 0.125)), ("const", 0.5)), ("const", -1.0))
            ends = (
                (Epilogue(line), np.maximum(whole * 0.125 - 0.5, -1)),
                (Epilogue(("add", sums, added), other), whole + residual),
                (Epilogue(("hardswish", ("add", sums, added)), other), _hardswish(whole + residual)),
                (Epilogue(("mul", ("tanh", ("add", sums, operand(2))), added), other, numbers),
                 np.tanh(whole + numbers) * residual),
            )  # fmt: skip
            for end, wanted in ends:
                view = _whole("b", b.shape).transposed((0, 2, 1)) if is_turned else _whole("b", b.shape)
                step = Product(Tensor("y", residual.shape), _whole("a", a.shape), view, bias, end)
                arrays = {"a": a, "b": b} if end.residual is None else {"a": a, "b": b, "r": residual}
                assert_close(_run(level, step, arrays), wanted, level)


def _hardswish(x: Array) -> Array:
    result: Array = x * np.clip(x / 6 + 0.5, 0, 1)
    return result


@every_level
def test_lstm(level: str) -> None:
    """One and two directions, first states, last states, more sequences than meet the weights at once."""
    rng = np.random.default_rng(5)
    for steps, batch, directions, hidden in ((1, 1, 1, 5), (4, 2, 1, 16), (3, 9, 2, 21), (5, 1, 2, 40), (2, 7, 1, 33)):
        weights = _random(rng, directions, 4 * hidden, hidden) / np.float32(hidden**0.5)
        gates = _random(rng, steps, batch, directions, 4, hidden)
        for threads, keeps, has_first in ((1, True, True), (2, False, False), (2, True, False)):
            first = _random(rng, 2, directions, batch, hidden)
            wanted = _lstm(gates, weights, first if has_first else 0 * first, is_reverse=directions == 1 and keeps)
            shape = (steps + 2 * keeps, batch, directions, hidden)
            h, c = (Tensor(name, first.shape[1:]) if has_first else None for name in ("h", "c"))
            states, backwards = States(h, c), directions == 1 and keeps
            step = Recurrent("lstm", Tensor("y", shape), Tensor("g", gates.shape), weights, states, None, backwards)
            arrays = {"g": gates, **({"h": first[0], "c": first[1]} if has_first else {})}
            assert_close(_run(level, step, arrays, threads=threads), wanted[: shape[0]], level)


def _lstm(gates: Array, weights: Array, first: Array, *, is_reverse: bool) -> Array:
    """Returns the outputs of all steps, then the last h and the last c."""
    steps, batch, directions, _, hidden = gates.shape
    out = np.zeros((steps + 2, batch, directions, hidden))
    for direction in range(directions):
        h, c = first[:, direction].astype(np.float64)
        order = range(steps)
        for t in reversed(order) if is_reverse or direction else order:
            sums = gates[t, :, direction].reshape(batch, -1) + h @ weights[direction].T
            i, o, f, new = np.split(sums, 4, 1)
            c = c / (1 + np.exp(-f)) + np.tanh(new) / (1 + np.exp(-i))
            h = np.tanh(c) / (1 + np.exp(-o))
            out[t, :, direction] = h
        out[steps, :, direction], out[steps + 1, :, direction] = h, c
    return out


@every_level
def test_sizes_that_depend_on_inputs(level: str) -> None:
    """One plan for any number of rows."""
    rng, m = np.random.default_rng(6), symbol("m")
    weights = _random(rng, 50, 37)
    x, y = Tensor("x", (m, 50)), Tensor("y", (m, 37))
    plan = plan_of([Product(y, View.of(x), weights)], [x], [y])
    for rows in (1, 6, 15, 100):
        a = _random(rng, rows, 50)
        found = run_plan(level, plan, [a], [(rows, 37)], symbols=[rows])[0]
        assert_close(found, a.astype(np.float64) @ weights, level)


@every_level
@pytest.mark.parametrize(
    ("numbers", "axes"),
    [
        ((3, 4, 5, 4, 1, 4, 1, 0, 5, 1, 5), ()),  # a ends before its last row
        ((3, 4, 5, 4, 0, 4, 1, 1, 5, 1, 5), ()),  # and b
        ((3, 4, 5, 4, -1, 4, 1, 0, 5, 1, 5), ()),
        ((3, 4, 5, 4, 0, 4, 1, 0, 5, -1, 5), ()),
        ((3, 4, 5, 4, 0, 4, 0, 0, 5, 1, 5), ()),  # sums over one element
        ((3, 4, 5, 4, 0, 1 << 39, 1, 0, 5, 1, 5), ()),
        ((3, 5, 5, 5, 0, 4, 1, 0, 5, 1, 5), ()),
        ((3, 3, 5, 4, 0, 4, 1, 0, 5, 1, 5), ()),  # sums of other lengths
        ((3, 4, 5, 4, 0, 4, 1, 0, 5, 1, 4), ()),  # rows of the output that overlap
        ((3, 4, 5, 4, 0, 4, 1, 0, 5, 1, 6), ()),  # or lie apart
        ((5, 4, 3, 4, 0, 1, 1, 0, 1, 1, 3), (2, 0, 0, 15)),  # twice as many elements as the output holds
        ((3, 4, 0, 4, 0, 4, 1, 0, 5, 1, 5), ()),
        ((3, 4, 5, 4, 0, 4, 1, 0, 5, 1, 5), (0, 0, 0, 0)),
        ((1, 4, 5, 4, 0, 4, 1, 0, 5, 1, 5), (3, 4, 0, 0)),  # all rows in one place
        ((1, 4, 5, 4, 0, 4, 1, 0, 5, 1, 5), (3, 5, 0, 5)),  # the last row begins behind a
    ],
)
def test_matrices_that_do_not_fit_are_refused(level: str, numbers: tuple[int, ...], axes: tuple[int, ...]) -> None:
    """No step reaches beyond its operand, whatever a plan says."""
    inputs, y = [Tensor("a", (3, 4)), Tensor("b", (4, 5))], Tensor("y", (3, 5))
    arrays = [np.zeros((3, 4), np.float32), np.zeros((4, 5), np.float32)]
    with pytest.raises(RefusedError, match="product"):
        run_plan(level, plan_of([_Product(inputs, y, numbers, axes)], inputs, [y]), arrays, [(3, 5)])
    rules = (3, 4, 5, 4, 0, 4, 1, 0, 5, 1, 5)
    run_plan(level, plan_of([_Product(inputs, y, rules, ())], inputs, [y]), arrays, [(3, 5)])  # fits


class _Product:
    """A product by the numbers of its step: rows to the step of the output's rows, then the batch axes."""

    def __init__(self, inputs: Sequence[Tensor], y: Tensor, numbers: tuple[int, ...], axes: tuple[int, ...]) -> None:
        self.inputs, self.output = tuple(inputs), y
        self._numbers, self._axes = numbers, tuple(zip(*(axes[k::4] for k in range(4)), strict=True))

    def written(self) -> Written:
        (a, b), numbers = self.inputs, self._numbers
        of_out = (numbers[10], self._axes, self.output)
        words = Words(a=a, b=b, bias=None, epilogue=PLAIN, sizes=numbers[:7], of_b=numbers[7:10], of_out=of_out)
        return Written("product", "product", words)


@every_level
def test_weights_that_do_not_fit_are_refused(level: str) -> None:
    """Rows of another length, a residual of another size, an LSTM whose states are others."""
    weights, x = np.zeros((4, 5), np.float32), np.zeros((3, 4), np.float32)
    short = Epilogue(("add", operand(0), operand(1)), Tensor("r", (3, 4)))
    y = Tensor("y", (3, 5))
    with pytest.raises(RefusedError):
        _run(level, Product(y, _whole("x", (3, 4)), weights.T.reshape(2, 10), None), {"x": x})
    with pytest.raises(RefusedError):
        _run(level, Product(y, _whole("x", (3, 4)), weights, None, short), {"x": x, "r": x})
    with pytest.raises(RefusedError):
        _run(level, Product(y, _whole("x", (3, 4)), weights, np.zeros(4, np.float32)), {"x": x})
    recurrent, gates = np.zeros((1, 16, 4), np.float32), np.zeros((2, 3, 1, 4, 4), np.float32)
    given = Tensor("g", gates.shape)
    with pytest.raises(RefusedError):
        _run(level, Recurrent("lstm", Tensor("y", (3, 3, 1, 4)), given, recurrent), {"g": gates})
    state = Tensor("h", (1, 2, 4))
    step = Recurrent("lstm", Tensor("y", (2, 3, 1, 4)), given, recurrent, States(state))
    with pytest.raises(RefusedError):
        _run(level, step, {"g": gates, "h": np.zeros((1, 2, 4), np.float32)})
