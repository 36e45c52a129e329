# SPDX-License-Identifier: Apache-2.0
"""Steps that indices lead, against NumPy; indices out of range are told, and what does not fit is refused."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from kernel_library import OutOfRangeError, RefusedError, every_level, plan_of, run_plan
from nndeploy_native.steps.indexed import PICKS, REDUCTIONS, OneHot, Picked, ReverseSequence, Scattered, Triangle
from nndeploy_native.steps.step import NativeStep
from nndeploy_native.tensors import Array, Tensor

ELEMENTS = ("int32", "int64")


def _numbers(rng: np.random.Generator, shape: Sequence[int], sizes: Sequence[int] | int, element: str) -> Array:
    """Returns places of an axis, or of the axes of tuples: some from the end."""
    return rng.integers(-np.array(sizes), np.array(sizes), tuple(shape)).astype(element)


def _strange(numbers: Array, sizes: Sequence[int] | int, *, from_end: bool = True) -> list[tuple[int, int, int]]:
    """Returns (number of an element, index out of its range, size of the axis): near and far, before and behind."""
    limits = np.iinfo(numbers.dtype)
    all_sizes, places = np.broadcast_to(sizes, numbers.shape).reshape(-1), (0, numbers.size // 2, numbers.size - 1)
    return [
        (at, int(index), int(all_sizes[at]))
        for at in places
        for index in (all_sizes[at], -all_sizes[at] * from_end - 1, limits.max, limits.min)
    ]


def _assert_told(
    level: str, step: NativeStep, arrays: Sequence[Array], which: int, strange: Sequence[tuple[int, int, int]]
) -> None:
    """Asserts that each index out of range is told; of two the first, on any number of threads."""
    for number, (at, index, size) in enumerate(strange):
        numbers = arrays[which].copy()
        numbers.reshape(-1)[[at, -1]] = index
        with pytest.raises(OutOfRangeError) as caught:
            _run(level, step, [*arrays[:which], numbers, *arrays[which + 1 :]], 1 + number % 2)
        assert caught.value.args[:3] == (0, at, index)
        assert at == numbers.size - 1 or caught.value.args[3] == size


def _run(level: str, step: NativeStep, arrays: Sequence[Array], threads: int) -> Array:
    plan = plan_of([step], list(step.inputs), [step.output])
    return run_plan(level, plan, arrays, threads=threads)[0]


def _tensor(name: str, array: Array) -> Tensor:
    return Tensor(name, array.shape, element="fp32" if array.dtype == np.float32 else array.dtype.name)


def _given(**arrays: Array) -> list[Tensor]:
    return [_tensor(name, array) for name, array in arrays.items()]


def _data(rng: np.random.Generator, shape: Sequence[int], dtype: str) -> Array:
    """Returns small whole numbers, so that sums and products are exact."""
    return rng.integers(0 if dtype in ("bool", "uint8") else -3, 2 if dtype == "bool" else 4, shape).astype(dtype)


def _picked(kind: str, data: Array, numbers: Array, axis: int) -> Array:
    """Returns what ONNX says."""
    if kind == "GatherND":
        found = np.empty((*numbers.shape[:-1], *data.shape[axis + numbers.shape[-1] :]), data.dtype)
        for at in np.ndindex(numbers.shape[:-1]):
            found[at] = data[(*at[:axis], *numbers[at])]
        return found
    if kind == "Gather":
        return np.take(data, numbers, axis)
    near = data[tuple(slice(None) if i == axis else slice(one) for i, one in enumerate(numbers.shape))]
    return np.take_along_axis(near, numbers, axis)


@every_level
@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize(
    ("kind", "data", "numbers", "axis"),
    [
        ("Gather", (1, 1), (2, 9), 0),
        ("Gather", (40, 65), (2, 9), 0),
        ("Gather", (3, 17, 5), (4,), 1),
        ("Gather", (3, 5, 17), (2, 33), 2),
        ("Gather", (3, 5, 1), (), 1),
        ("Gather", (6, 4), (3,), 0),
        ("GatherElements", (7,), (12,), 0),
        ("GatherElements", (3, 17), (3, 33), 1),
        ("GatherElements", (5, 33), (9, 33), 0),
        ("GatherElements", (4, 5, 6), (3, 8, 2), 1),
        ("GatherElements", (4, 5, 6), (4, 8, 6), 1),
        ("GatherElements", (2, 3, 4, 5), (2, 2, 7, 4), 2),
        ("GatherND", (7,), (5, 1), 0),
        ("GatherND", (4, 5, 6), (3, 3), 0),
        ("GatherND", (4, 5, 6), (2, 3, 2), 0),
        ("GatherND", (4, 5, 17), (4, 9, 1), 1),
        ("GatherND", (2, 4, 5, 3), (2, 4, 3, 1), 2),
    ],
)
def test_numbers_pick(
    level: str, element: str, kind: str, data: tuple[int, ...], numbers: tuple[int, ...], axis: int
) -> None:
    rng = np.random.default_rng(len(data) + axis)
    sizes = data[axis : axis + numbers[-1]] if kind == "GatherND" else data[axis]
    n = _numbers(rng, numbers, sizes, element)
    for threads, dtype in ((1, "float32"), (2, "float32"), (2, "int64"), (1, "bool")):
        x = _data(rng, data, dtype)
        wanted = _picked(kind, x, n, axis)
        step = Picked(PICKS[kind], _tensor("y", wanted), *_given(x=x, n=n), axis)
        np.testing.assert_array_equal(_run(level, step, [x, n], threads), wanted)
    _assert_told(level, step, [x, n], 1, _strange(n, sizes))


def _combined(a: Array, b: Array, reduction: str) -> Array:
    functions = {"none": lambda a, b: b, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
    return functions[reduction](a, b)


def _scattered(data: Array, numbers: Array, updates: Array, reduction: str, axis: int | None) -> Array:
    found = data.copy()
    for at in np.ndindex(numbers.shape if axis is not None else numbers.shape[:-1]):
        tuple_ = [int(one) for one in np.atleast_1d(numbers[at])]
        place = tuple(tuple_) if axis is None else (*at[:axis], tuple_[0], *at[axis + 1 :])
        found[place] = _combined(found[place], updates[at], reduction)
    return found


@every_level
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(
    ("data", "numbers", "axis"),
    [
        ((7,), (40,), 0),
        ((3, 17), (3, 33), 1),
        ((5, 133), (9, 133), 0),
        ((5, 133), (9, 70), 0),
        ((4, 5, 6), (3, 8, 2), 1),
        ((4, 5, 6), (4, 8, 6), 1),
        ((2, 1, 3, 5), (1, 1, 7, 5), 2),
        ((3, 1, 4), (2, 5, 4), 1),
        ((2, 3, 4), (2, 2, 4), 0),
        ((5, 133), (0, 133), 0),
        ((4, 5, 6), (4, 8, 0), 1),
        ((7,), (25, 1), None),
        ((4, 5, 6), (9, 3), None),
        ((4, 5, 33), (3, 4, 1), None),
        ((9, 2, 3), (30, 2), None),
        ((9, 2, 3), (0, 2), None),
    ],
)
def test_updates_are_put_where_numbers_say(
    level: str, reduction: str, data: tuple[int, ...], numbers: tuple[int, ...], axis: int | None
) -> None:
    rng = np.random.default_rng(len(data))
    sizes = data[: numbers[-1]] if axis is None else data[axis]
    shape = numbers if axis is not None else (*numbers[:-1], *data[numbers[-1] :])
    for turn, dtype in enumerate(("float32", "int32", "int64", "uint8", "int8")):
        x, u = _data(rng, data, dtype), _data(rng, shape, dtype)
        if dtype == "float32":
            u.reshape(-1)[:2], x.reshape(-1)[-2:] = np.nan, np.nan
        n = _numbers(rng, numbers, sizes, ELEMENTS[turn % 2])
        step = Scattered(_tensor("y", x), *_given(x=x, n=n, u=u), reduction, axis)
        wanted = _scattered(x, n, u, reduction, axis)
        for threads in (1, 2):
            np.testing.assert_array_equal(_run(level, step, [x, n, u], threads), wanted)
    if n.size:
        _assert_told(level, step, [x, n, u], 1, _strange(n, sizes))


@every_level
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("element", ELEMENTS)
def test_rows_of_one_number_are_put_whole(level: str, reduction: str, element: str) -> None:
    rng = np.random.default_rng(0)
    x, u = _data(rng, (5, 3, 67), "float32"), _data(rng, (4, 3, 67), "float32")
    n = np.array([3, -1, 2, 3], element)[:, None, None] + np.zeros(u.shape, element)
    n[0, 1, 65] = 0  # one piece of one row that is not of one number
    step = Scattered(_tensor("y", x), *_given(x=x, n=n, u=u), reduction, 0)
    for threads in (1, 2):
        found = _run(level, step, [x, n, u], threads)
        np.testing.assert_array_equal(found, _scattered(x, n, u, reduction, 0))
    n[2] = 7
    _assert_told(level, step, [x, n, u], 1, [(2 * n[0].size, 7, 5)])


@every_level
@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize(
    ("numbers", "depth", "axis"), [((), 5, 0), ((3, 4), 17, 2), ((33,), 9, 1), ((3, 4), 2, 0), ((2, 5, 17), 3, 1)]
)
def test_one_is_on(level: str, element: str, numbers: tuple[int, ...], depth: int, axis: int) -> None:
    rng = np.random.default_rng(depth)
    n = _numbers(rng, numbers, 2 * depth, element)  # what is out of range is on nowhere
    places = np.expand_dims(np.where(n < 0, n.astype(np.int64) + depth, n), axis)
    steps = np.arange(depth).reshape([depth if i == axis else 1 for i in range(places.ndim)])
    for threads, dtype in ((1, "float32"), (2, "int64"), (2, "bool")):
        values = np.array([0, 1] if dtype == "bool" else [3, -7]).astype(dtype)
        wanted = np.where(places == steps, values[1], values[0])
        step = OneHot(_tensor("y", wanted), *_given(n=n, v=values), axis)
        np.testing.assert_array_equal(_run(level, step, [n, values], threads), wanted)


@every_level
@pytest.mark.parametrize(("shape", "element"), [((7, 3), "int32"), ((1, 5), "int64"), ((9, 2, 5, 3), "int64")])
def test_beginnings_come_backwards(level: str, shape: tuple[int, ...], element: str) -> None:
    rng = np.random.default_rng(len(shape))
    for turn in range(4):
        x, is_time_first = _data(rng, shape, ("float32", "bool")[turn // 2]), turn % 2
        time, batch = (0, 1) if is_time_first else (1, 0)
        lengths = rng.integers(0, shape[time] + 1, shape[batch]).astype(element)
        wanted, view = x.copy(), np.moveaxis(x, batch, 0)
        for each, length in enumerate(lengths):
            np.moveaxis(wanted, batch, 0)[each][:length] = view[each][:length][::-1]
        step = ReverseSequence(_tensor("y", x), *_given(x=x, n=lengths), bool(is_time_first))
        np.testing.assert_array_equal(_run(level, step, [x, lengths], 1 + turn // 2), wanted)
        _assert_told(level, step, [x, lengths], 1, _strange(lengths, shape[time] + 1, from_end=False))


@every_level
@pytest.mark.parametrize("diagonal", [None, 0, 1, -1, 5, -5, 40, 2**62, -(2**63)])
def test_triangles(level: str, diagonal: int | None) -> None:
    rng = np.random.default_rng(0)
    number = np.array([diagonal or 0])
    for turn, shape in enumerate(((3, 4), (2, 17, 5), (1, 1), (2, 2, 5, 33))):
        x = _data(rng, shape, ("float32", "int64", "bool")[turn % 3])
        given = _given(x=x, n=number)
        step = Triangle(_tensor("y", x), given[0], 0 if diagonal is None else given[1], turn % 2 == 0)
        wanted = (np.triu if turn % 2 == 0 else np.tril)(x, max(-99, min(99, diagonal or 0)))
        np.testing.assert_array_equal(_run(level, step, [x, number][: len(step.inputs)], 1 + turn % 2), wanted)


def _steps_that_do_not_fit() -> list[NativeStep]:
    x, n, u, f = Tensor("x", (3, 4, 5)), Tensor("n", (2, 2), element="int32"), Tensor("u", (2, 2)), Tensor("f", (2, 2))
    three, y = Tensor("m", (3, 9, 5), element="int64"), Tensor("y", (3, 4, 5))
    return [
        Picked("gather", Tensor("y", (3, 2, 2, 5)), x, f, 1),
        Picked("gather", Tensor("y", (3, 2, 2, 4)), x, n, 1),
        Picked("gather", Tensor("y", (3, 2, 2, 5)), x, n, 3),
        Picked("gather_elements", Tensor("y", (2, 2)), x, n, 1),
        Picked("gather_elements", Tensor("y", (3, 9, 5)), x, three, 0),
        Picked("gather_elements", Tensor("y", (3, 9, 4)), x, three, 1),
        Picked("gather_elements", Tensor("y", (3, 9, 5)), x, three, 3),
        Picked("gather_nd", Tensor("y", (2, 4)), x, n, 0),
        Picked("gather_nd", Tensor("y", (2, 5)), x, n, 1),
        Picked("gather_nd", Tensor("y", (2,)), x, n, 2),
        Picked("gather_nd", Tensor("y", (3, 9, 4)), x, three, 1),
        Scattered(y, x, n, u, "none", 1),
        Scattered(y, x, three, Tensor("u", (3, 9, 4)), "none", 1),
        Scattered(y, x, three, Tensor("u", (3, 9, 5)), "none", 0),
        Scattered(Tensor("y", (3, 4, 4)), x, three, Tensor("u", (3, 9, 5)), "none", 1),
        Scattered(y, x, n, u, "add", None),
        Scattered(y, x, f, Tensor("u", (2, 5)), "add", None),
        Scattered(y, x, three, u, "add", None),
        Scattered(Tensor("y", (3, 4)), x, n, Tensor("u", (2, 5)), "add", None),
        Scattered(y, x, three, Tensor("u", (3, 9, 5), element="int32"), "none", 1),
        OneHot(Tensor("y", (2, 7, 3)), n, Tensor("v", (2,)), 1),
        OneHot(Tensor("y", (2, 7, 2)), n, Tensor("v", (1,)), 1),
        OneHot(Tensor("y", (2, 7, 2)), n, Tensor("v", (2,)), 3),
        OneHot(Tensor("y", (2, 7, 2)), f, Tensor("v", (2,)), 1),
        ReverseSequence(y, x, Tensor("n", (5,), element="int64"), is_time_first=True),
        ReverseSequence(Tensor("y", (3, 4)), x, Tensor("n", (4,), element="int64"), is_time_first=True),
        ReverseSequence(y, x, Tensor("n", (4,)), is_time_first=True),
        Triangle(Tensor("y", (3, 4)), x, 0, is_upper=True),
        Triangle(y, x, n, is_upper=True),
        Triangle(y, x, Tensor("n", (1,)), is_upper=True),
        Triangle(Tensor("y", (7,)), Tensor("x", (7,)), 0, is_upper=True),
        Scattered(
            replace(y, element="bool"),
            replace(x, element="bool"),
            three,
            Tensor("u", (3, 9, 5), element="bool"),
            "add",
            1,
        ),
    ]


@every_level
def test_steps_that_do_not_fit_are_refused(level: str) -> None:
    types = {"fp32": np.float32, "int32": np.int32, "int64": np.int64, "bool": np.bool_}
    for step in _steps_that_do_not_fit():
        arrays = [np.zeros([int(one) for one in tensor.shape], types[tensor.element]) for tensor in step.inputs]
        with pytest.raises(RefusedError):
            _run(level, step, arrays, 1)
