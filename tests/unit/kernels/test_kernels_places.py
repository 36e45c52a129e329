# SPDX-License-Identifier: Apache-2.0
"""Elements by tables of places, and what stands around views, against NumPy; what does not fit is refused."""

import numpy as np
import pytest
from kernel_library import RefusedError, every_level, plan_of, run_plan
from nndeploy_native.steps.indexed import Picked
from nndeploy_native.steps.movement import PAD_MODES, ZERO, Convert, Gather, PaddedAt, PaddedCopy, PaddedImage, View
from nndeploy_native.steps.step import NativeStep
from nndeploy_native.tensors import Array, Layout, Tensor, fixed_shape

from nndeploy.values.size import symbol


def _gathered(level: str, x: Array, places: Array, *, is_blocked: bool, threads: int = 1) -> Array:
    given, out = Tensor("x", x.shape), Tensor("y", places.shape)
    inner = Tensor("in", x.shape, Layout.BLOCKED)
    steps: list[NativeStep] = [Convert(inner, given)] if is_blocked else []
    steps.append(Gather(out, inner if is_blocked else given, places))
    return run_plan(level, plan_of(steps, [given], [out]), [x], [places.shape], threads=threads)[0]


def _tables(rng: np.random.Generator, shape: tuple[int, ...]) -> list[Array]:
    """Returns places of all kinds: any, with zeros, in long and short runs, of one channel, turned, one alone."""
    image = np.arange(np.prod(shape)).reshape(shape)
    any_of = rng.integers(0, image.size, (3, int(rng.integers(1, 99))))
    padded = np.pad(image, ((0, 0), (0, 0), (1, 2), (0, 3)), constant_values=ZERO)
    return [
        any_of,
        np.where(rng.random(any_of.shape) < 0.3, ZERO, any_of),
        padded,
        np.roll(image, (1, 2), (2, 3)),
        np.concatenate([image[:, -1:], image[:, :1, ::-1]], 1),
        image[:, :, :, ::-1].transpose(0, 3, 2, 1),
        np.repeat(image, 2, 3)[:, :, ::2],
        np.array([image.size - 1]),
        np.full((2, 30), ZERO),
    ]


@every_level
@pytest.mark.parametrize("is_blocked", [False, True])
def test_elements_are_moved_by_their_places(level: str, is_blocked: bool) -> None:
    rng = np.random.default_rng(21)
    for number in range(4):
        shape = tuple(int(one) for one in rng.integers(1, (3, 37, 9, 23)))
        x = rng.integers(-99, 99, shape).astype(np.float32)
        for places in _tables(rng, shape):
            found = _gathered(level, x, places, is_blocked=is_blocked, threads=1 + number % 2)
            wanted = np.where(places < 0, 0.0, x.reshape(-1)[np.maximum(places, 0)])
            np.testing.assert_array_equal(found, wanted)


@every_level
@pytest.mark.parametrize("is_blocked", [False, True])
@pytest.mark.parametrize("place", [-2, 5 * 6 * 7, 2**31 - 1, -(2**31)])
def test_a_place_that_is_none_is_refused(level: str, is_blocked: bool, place: int) -> None:
    x, places = np.zeros((1, 5, 6, 7), np.float32), np.array([0, 3, 1, place, 5])
    with pytest.raises(RefusedError, match="place"):
        _gathered(level, x, places, is_blocked=is_blocked)


@every_level
def test_rows_of_a_constant(level: str) -> None:
    table = np.arange(12, dtype=np.float32).reshape(4, 3)
    numbers, out = Tensor("n", (2,), element="int64"), Tensor("y", (2, 3))
    plan = plan_of([Picked("gather", out, Tensor("t", (4, 3)), numbers, 0)], [numbers], [out], {"t": table})
    (found,) = run_plan(level, plan, [np.array([3, -4], np.int64)], [(2, 3)])
    np.testing.assert_array_equal(found, table[[3, 0]])


def _padded(
    level: str,
    x: Array,
    view: View,
    widths: list[tuple[int, int]],
    threads: int = 1,
    symbols: tuple[int, ...] = (),
    mode: str = "constant",
    value: Array | None = None,
) -> Array:
    shape = tuple(size + begin + end for size, (begin, end) in zip(view.sizes, widths, strict=True))
    out = Tensor("y", shape, element=view.base.element)
    plan = plan_of([PaddedCopy(out, view, tuple(begin for begin, _ in widths), mode, value)], [view.base], [out])
    known = (
        tuple(sum(pair) + size for pair, size in zip(widths, x.shape, strict=True)) if symbols else fixed_shape(shape)
    )
    return run_plan(level, plan, [x], [known], symbols=symbols, threads=threads)[0]


@every_level
def test_zeros_around_views(level: str) -> None:
    rng = np.random.default_rng(23)
    for number in range(25):
        rank = int(rng.integers(1, 6))
        x = rng.standard_normal([int(one) for one in rng.integers(1, 7, rank)]).astype(np.float32)
        widths = [(int(a), int(b)) for a, b in rng.integers(0, 3, (rank, 2)) * (rng.random((rank, 1)) < 0.6)]
        order = tuple(int(one) for one in rng.permutation(rank)) if number % 2 else tuple(range(rank))
        view = View.of(Tensor("x", x.shape)).transposed(order)
        found = _padded(level, x, view, widths, 1 + number % 2)
        np.testing.assert_array_equal(found, np.pad(x.transpose(order), widths))
        axis = int(rng.integers(0, rank))
        if number % 3 == 0:
            backwards = View.of(Tensor("x", x.shape)).taken(axis, x.shape[axis] - 1, x.shape[axis], -1)
            found = _padded(level, x, backwards, widths)
            np.testing.assert_array_equal(found, np.pad(np.flip(x, axis), widths))


@every_level
@pytest.mark.parametrize("mode", PAD_MODES)
def test_what_stands_around_views(level: str, mode: str) -> None:
    rng = np.random.default_rng(24)
    for number in range(24):
        dtype, rank = ("float32", "int64", "bool")[number % 3], int(rng.integers(1, 5))
        x: Array = rng.integers(0, 2 if dtype == "bool" else 99, rng.integers(1, 7, rank)).astype(dtype)
        widths = [(int(a), int(b)) for a, b in rng.integers(0, 20 if rank == 1 else 6, (rank, 2))]
        widths = [(0, 0) if rng.random() < 0.4 else pair for pair in widths]
        order = tuple(int(one) for one in rng.permutation(rank)) if number % 2 else tuple(range(rank))
        view = View.of(Tensor("x", x.shape, element="fp32" if dtype == "float32" else dtype)).transposed(order)
        value = np.array(1 if dtype == "bool" else 7).astype(dtype)
        options = {"constant_values": value} if mode == "constant" else {}
        found = _padded(level, x, view, widths, 1 + number % 2, mode=mode, value=value)
        np.testing.assert_array_equal(found, np.pad(x.transpose(order), widths, mode, **options))


@every_level
@pytest.mark.parametrize("mode", PAD_MODES)
@pytest.mark.parametrize("element", ["int32", "int64"])
def test_numbers_say_what_stands_around_views(level: str, mode: str, element: str) -> None:
    rng = np.random.default_rng(26)
    limits = np.iinfo(np.dtype(element))
    for number in range(12):
        rank = int(rng.integers(1, 4))
        x: Array = rng.integers(0, 99, rng.integers(1, 7, rank)).astype(np.float32)
        sizes = tuple(int(one) for one in rng.integers(1, 12, rank))
        which = tuple(None if rng.random() < 0.3 else axis for axis in range(rank))
        numbers = rng.choice([0, 1, 2, -1, -2, 50, -50, limits.max, limits.min], 2 * rank).astype(element)
        kept, widths = x, []
        for axis, size in enumerate(sizes):
            begin = 0 if which[axis] is None else min(max(int(numbers[axis]), 1 - x.shape[axis]), size - 1)
            first, before = max(0, -begin), max(0, begin)
            count = min(x.shape[axis] - first, size - before)
            kept = np.take(kept, range(first, first + count), axis)
            widths.append((before, size - before - count))
        options = {"constant_values": 7.0} if mode == "constant" else {}
        wanted = np.pad(kept, widths, mode, **options)
        given = [Tensor("x", x.shape), Tensor("n", numbers.shape, element=element)]
        out = Tensor("y", sizes)
        step = PaddedAt(out, View.of(given[0]), given[1], which, mode, np.array(7.0))
        found = run_plan(level, plan_of([step], given, [out]), [x, numbers], threads=1 + number % 2)[0]
        np.testing.assert_array_equal(found, wanted)


@every_level
@pytest.mark.parametrize("mode", PAD_MODES)
def test_what_stands_around_images(level: str, mode: str) -> None:
    rng = np.random.default_rng(25)
    for number in range(8):
        shape = tuple(int(one) for one in rng.integers(1, (3, 37, 9, 23)))
        x: Array = rng.integers(-99, 99, shape).astype(np.float32)
        rows, columns = ((int(rng.integers(0, 5)), int(rng.integers(0, size))) for size in shape[2:])
        counts = [int(rng.integers(1, shape[2] - rows[1] + 1)), int(rng.integers(1, shape[3] - columns[1] + 1))]
        behind = rng.integers(0, 5, 2)
        kept = x[:, :, rows[1] : rows[1] + counts[0], columns[1] : columns[1] + counts[1]]
        around = [(0, 0), (0, 0), (rows[0], int(behind[0])), (columns[0], int(behind[1]))]
        value, options = np.float32(2.5), {"constant_values": 2.5} if mode == "constant" else {}
        wanted = np.pad(kept, around, mode, **options)
        given, image = Tensor("x", shape), Tensor("in", shape, Layout.BLOCKED)
        made, out = Tensor("out", wanted.shape, Layout.BLOCKED), Tensor("y", wanted.shape)
        step = PaddedImage(made, image, (*rows, counts[0]), (*columns, counts[1]), mode, np.array(value))
        plan = plan_of([Convert(image, given), step, Convert(out, made)], [given], [out])
        np.testing.assert_array_equal(run_plan(level, plan, [x], threads=1 + number % 2)[0], wanted)


@every_level
@pytest.mark.parametrize(
    ("rows", "columns", "out"),
    [
        ((0, 0, 4), (0, 0, 5), (1, 3, 4, 5)),
        ((0, 1, 3), (0, 0, 5), (1, 3, 4, 5)),
        ((0, -1, 3), (0, 0, 5), (1, 3, 4, 5)),
        ((-1, 0, 3), (0, 0, 5), (1, 3, 4, 5)),
        ((2, 0, 3), (0, 0, 5), (1, 3, 4, 5)),
        ((0, 0, 3), (9, 0, 5), (1, 3, 4, 5)),
        ((0, 0, 3), (0, 0, 0), (1, 3, 4, 5)),
        ((0, 0, 3), (0, 0, 5), (1, 4, 4, 5)),
        ((0, 0, 3), (0, 0, 5), (2, 3, 4, 5)),
    ],
)
def test_images_that_do_not_fit_are_refused(
    level: str, rows: tuple[int, ...], columns: tuple[int, ...], out: tuple[int, ...]
) -> None:
    given, image = Tensor("x", (1, 3, 3, 5)), Tensor("in", (1, 3, 3, 5), Layout.BLOCKED)
    made, last = Tensor("out", out, Layout.BLOCKED), Tensor("y", out)
    plan = plan_of(
        [Convert(image, given), PaddedImage(made, image, rows, columns), Convert(last, made)], [given], [last]
    )
    with pytest.raises(RefusedError):
        run_plan(level, plan, [np.zeros((1, 3, 3, 5), np.float32)])


@every_level
@pytest.mark.parametrize(
    ("offset", "sizes", "strides", "which", "out", "element"),
    [
        (0, (4, 6), (6, 1), (0, 1), (4, 6), "int64"),
        (1, (3, 6), (6, 1), (0, 1), (4, 6), "int64"),
        (0, (3, 6), (6, 2**40), (0, 1), (4, 6), "int64"),
        (0, (3, 6), (6, 1), (0, 4), (4, 6), "int64"),
        (0, (3, 6), (6, 1), (0, 1), (4, 6), "fp32"),
    ],
)
def test_views_that_numbers_pad_and_that_do_not_fit_are_refused(
    level: str,
    offset: int,
    sizes: tuple[int, ...],
    strides: tuple[int, ...],
    which: tuple[int, ...],
    out: tuple[int, ...],
    element: str,
) -> None:
    given, numbers = Tensor("x", (3, 6)), Tensor("n", (4,), element=element)
    step = PaddedAt(Tensor("y", out), View(given, offset, sizes, strides), numbers, which)
    arrays = [np.zeros((3, 6), np.float32), np.zeros(4, np.float32 if element == "fp32" else np.int64)]
    with pytest.raises(RefusedError):
        run_plan(level, plan_of([step], [given, numbers], [step.output]), arrays)


@every_level
def test_zeros_around_a_size_that_comes_with_the_call(level: str) -> None:
    view = View.of(Tensor("x", (2, symbol("n", 1), 3)))
    for size in (1, 4, 9):
        x = np.arange(6 * size, dtype=np.float32).reshape(2, size, 3) + 1
        found = _padded(level, x, view, [(0, 1), (2, 0), (1, 1)], symbols=(size,))
        np.testing.assert_array_equal(found, np.pad(x, [(0, 1), (2, 0), (1, 1)]))


@every_level
@pytest.mark.parametrize(
    ("offset", "sizes", "strides", "begins", "out"),
    [
        (0, (4, 6), (6, 1), (0, 0), (4, 6)),  # a row too many
        (-1, (3, 6), (6, 1), (0, 0), (3, 6)),
        (0, (3, 6), (6, 2), (0, 0), (3, 6)),
        (0, (3, 6), (-6, 1), (0, 0), (3, 6)),
        (0, (3, 6), (6, 1), (1, 0), (3, 6)),  # no room for the zeros
        (0, (3, 6), (6, 1), (-1, 0), (4, 6)),
        (0, (1, 1), (2**40, 2**40), (2**40, 0), (3, 6)),
        (0, (3, 6), (2**40, 2**40), (0, 0), (3, 6)),
    ],
)
def test_views_that_do_not_fit_are_refused(
    level: str,
    offset: int,
    sizes: tuple[int, ...],
    strides: tuple[int, ...],
    begins: tuple[int, ...],
    out: tuple[int, ...],
) -> None:
    given = Tensor("x", (3, 6))
    plan = plan_of(
        [PaddedCopy(Tensor("y", out), View(given, offset, sizes, strides), begins)], [given], [Tensor("y", out)]
    )
    with pytest.raises(RefusedError):
        run_plan(level, plan, [np.zeros((3, 6), np.float32)], [out])


@every_level
def test_tables_that_do_not_fit_are_refused(level: str) -> None:
    x, numbers = Tensor("x", (1, 3, 4, 1)), Tensor("n", (2,), element="int32")
    image = Tensor("in", x.shape, Layout.BLOCKED)
    places = np.array([3, 1, 2, 11, 7, 0])
    wrong: list[tuple[list[NativeStep], list[Tensor]]] = [
        ([Convert(image, x), Gather(Tensor("y", (5,)), image, places)], [x]),
        ([Convert(image, x), Gather(Tensor("y", (7,)), image, places)], [x]),
        ([Convert(image, x), Picked("gather", Tensor("y", (2, 12)), image, numbers, 0)], [x, numbers]),
    ]
    arrays = {"x": np.zeros(x.shape, np.float32), "n": np.zeros(2, np.int32)}
    for steps, given in wrong:
        words = plan_of(steps, given, [steps[-1].output])
        with pytest.raises(RefusedError):
            run_plan(level, words, [arrays[one.name] for one in given], [fixed_shape(steps[-1].output.shape)])
