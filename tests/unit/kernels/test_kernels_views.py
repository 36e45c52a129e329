# SPDX-License-Identifier: Apache-2.0
"""Strided copies against NumPy: rows, matrices that are turned, elements that go together; what does not fit."""

from dataclasses import replace

import numpy as np
import pytest
from kernel_library import RefusedError, every_level, plan_of, run_plan
from nndeploy_native.steps.movement import Move, StridedCopy, View, ViewAt
from nndeploy_native.steps.step import NativeStep
from nndeploy_native.tensors import Array, Tensor

DTYPES = ("float32", "uint8", "int64")


def _copied(level: str, x: Array, view: View, shape: tuple[int, ...], threads: int) -> Array:
    out = Tensor("y", shape, element=view.base.element)
    return run_plan(level, plan_of([StridedCopy(out, view)], [view.base], [out]), [x], threads=threads)[0]


def _numbers(shape: tuple[int, ...], dtype: str) -> Array:
    return np.random.default_rng(sum(shape)).integers(0, 200, shape).astype(dtype)


def _view(x: Array) -> View:
    return View.of(Tensor("x", x.shape, element="fp32" if x.dtype == np.float32 else x.dtype.name))


@every_level
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "order"),
    [
        ((1, 1), (1, 0)),
        ((15, 17), (1, 0)),
        ((16, 16), (1, 0)),
        ((33, 64), (1, 0)),
        ((70, 90), (1, 0)),
        ((130, 700), (1, 0)),  # collected, in pieces
        ((700, 130), (1, 0)),
        ((3, 2, 500), (0, 2, 1)),
        ((2, 3, 100), (0, 2, 1)),
        ((2, 4, 33, 5), (0, 2, 3, 1)),
        ((2, 7, 300), (0, 2, 1)),
        ((3, 500, 2), (0, 2, 1)),
        ((2, 100, 3), (0, 2, 1)),
        ((2, 165, 4), (0, 2, 1)),
        ((2, 300, 7), (0, 2, 1)),
        ((20, 30, 4), (1, 0, 2)),
        ((40, 50, 2), (1, 0, 2)),
        ((40, 50, 3), (1, 0, 2)),
        ((19, 3, 3, 5), (0, 2, 1, 3)),
        ((3, 4, 5, 6), (3, 1, 2, 0)),
        ((2, 17, 3, 18), (2, 3, 0, 1)),
        ((2, 3, 2, 3, 2, 3), (5, 3, 1, 0, 2, 4)),
    ],
)
def test_axes_in_another_order(level: str, dtype: str, shape: tuple[int, ...], order: tuple[int, ...]) -> None:
    x = _numbers(shape, dtype)
    wanted = x.transpose(order)
    for threads in (1, 2):
        np.testing.assert_array_equal(_copied(level, x, _view(x).transposed(order), wanted.shape, threads), wanted)


@every_level
def test_views_of_all_kinds(level: str) -> None:
    rng = np.random.default_rng(5)
    for number in range(60):
        rank = int(rng.integers(1, 5))
        x = _numbers(tuple(int(one) for one in rng.integers(1, (4, 8, 40)[number % 3], rank)), DTYPES[number % 3])
        view, wanted = _view(x), x
        for axis in range(rank):
            size, step = x.shape[axis], int(rng.choice((-3, -2, -1, -1, 1, 1, 1, 2, 3)))
            first = int(rng.integers(0, size))
            count = 1 + (first if step < 0 else size - 1 - first) // abs(step)
            view = view.taken(axis, first, count, step)
            wanted = np.take(wanted, range(first, first + count * step, step), axis)
        order = tuple(int(one) for one in rng.permutation(rank))
        view, wanted = view.transposed(order), wanted.transpose(order)
        if number % 2:
            sizes = tuple(int(rng.integers(2, 20)) if size == 1 else size for size in wanted.shape)
            view, wanted = view.expanded(sizes), np.broadcast_to(wanted, sizes)
        np.testing.assert_array_equal(_copied(level, x, view, wanted.shape, 1 + number % 2), wanted)


@every_level
def test_views_of_many_axes(level: str) -> None:
    shape = (2, 1, 2, 3, 2, 2, 3, 2)
    x = _numbers(shape, "float32")
    sizes = tuple(size for one in shape for size in (2, one))
    strides = tuple(stride for one in _view(x).strides for stride in (0, one))
    found = _copied(level, x, View(_view(x).base, 0, sizes, strides), tuple(2 * one for one in shape), 2)
    np.testing.assert_array_equal(found, np.tile(x, [2] * 8))


@every_level
@pytest.mark.parametrize(
    ("offset", "sizes", "strides", "out"),
    [
        (0, (4, 6), (6, 1), (4, 6)),
        (-1, (3, 6), (6, 1), (3, 6)),
        (1, (3, 6), (6, 1), (3, 6)),
        (0, (3, 6), (-6, 1), (3, 6)),
        (0, (6, 3), (1, 7), (6, 3)),
        (0, (3, 6), (6, 1), (3, 5)),
        (0, (3, 6), (6, 1), (4, 6)),
        (0, (3, 6), (2**40, 2**40), (3, 6)),
        (0, (3, 6), (2**40, -(2**40)), (3, 6)),
        (0, (2**40, 2**40), (0, 0), (3, 6)),
    ],
)
def test_views_that_do_not_fit_are_refused(
    level: str, offset: int, sizes: tuple[int, ...], strides: tuple[int, ...], out: tuple[int, ...]
) -> None:
    x = _numbers((3, 6), "float32")
    with pytest.raises(RefusedError):
        _copied(level, x, View(_view(x).base, offset, sizes, strides), out, 1)


def _run(level: str, step: NativeStep, arrays: list[Array], threads: int) -> Array:
    return run_plan(level, plan_of([step], list(step.inputs), [step.output]), arrays, threads=threads)[0]


@every_level
@pytest.mark.parametrize("element", ["int32", "int64"])
def test_views_are_moved_by_numbers(level: str, element: str) -> None:
    rng = np.random.default_rng(7)
    limits = np.iinfo(np.dtype(element))
    for number in range(30):
        shape = tuple(int(one) for one in rng.integers(1, 20, 3))
        x = _numbers(shape, DTYPES[number % 3])
        starts = rng.choice([-3, -1, 0, 1, 2, 30, -30, limits.min, limits.max], 2).astype(element)
        view, wanted, moves = _view(x), x, []
        for which, axis in enumerate((0, 2)):
            size, step = shape[axis], int(rng.choice((-2, -1, 1, 2)))
            reach = abs(step) * (int(rng.integers(1, 1 + -(-size // abs(step)))) - 1)
            low, high = (0, size - 1 - reach) if step > 0 else (reach, size - 1)
            moves.append(Move(which, size, view.strides[axis], low, high))
            start = int(starts[which])
            first = min(max(start + size if start < 0 else start, low), high)
            count = reach // abs(step) + 1
            view = view.taken(axis, 0, count, step)
            wanted = np.take(wanted, [first + i * step for i in range(count)], axis)
        order = (1, 2, 0) if number % 2 else (0, 1, 2)
        view, wanted = view.transposed(order), wanted.transpose(order)
        step_ = ViewAt(
            Tensor("y", wanted.shape, element=view.base.element), view, Tensor("n", (2,), element=element), tuple(moves)
        )
        np.testing.assert_array_equal(_run(level, step_, [x, starts], 1 + number % 2), wanted)


@every_level
@pytest.mark.parametrize(
    ("sizes", "move"),
    [
        ((3, 3), Move(0, 6, 1, 0, 4)),
        ((3, 3), Move(0, 6, 1, -1, 3)),
        ((3, 3), Move(0, 6, 1, 3, 2)),
        ((3, 3), Move(0, 6, -1, 0, 1)),
        ((3, 3), Move(2, 6, 1, 0, 3)),
        ((3, 3), Move(0, 0, 1, 0, 3)),
        ((3, 3), Move(0, 6, 2**40, 0, 2**40)),
        ((3, 3), Move(0, 6, 2**40, -(2**39), 2**39)),
        ((3, 4), Move(0, 6, 1, 0, 3)),
    ],
)
def test_moves_that_do_not_fit_are_refused(level: str, sizes: tuple[int, ...], move: Move) -> None:
    x = _numbers((3, 6), "float32")
    view = View(_view(x).base, 0, sizes, (6, 1))
    step = ViewAt(Tensor("y", (3, 3)), view, Tensor("n", (2,), element="int64"), (move,))
    with pytest.raises(RefusedError):
        _run(level, step, [x, np.zeros(2, np.int64)], 1)
    right = replace(step, view=replace(view, sizes=(3, 3)), moves=(Move(0, 6, 1, 0, 3),))
    _run(level, right, [x, np.zeros(2, np.int64)], 1)
    floats = replace(right, numbers=Tensor("n", (2,)))
    with pytest.raises(RefusedError):
        _run(level, floats, [x, np.zeros(2, np.float32)], 1)
