# SPDX-License-Identifier: Apache-2.0
"""Pooling and resizing of the kernel library, against NumPy at odd shapes; what does not fit is refused."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from kernel_library import RefusedError, assert_close, every_level, plan_of, run_plan
from nndeploy_native.steps.convolution import Window
from nndeploy_native.steps.movement import Convert
from nndeploy_native.steps.pooling import Pooling
from nndeploy_native.steps.resize import Repeat, Resize
from nndeploy_native.steps.step import NativeStep
from nndeploy_native.tensors import Array, Layout, Tensor, fixed_shape

from nndeploy.values.size import fixed, symbol


def _through_blocks(step: NativeStep, x: Tensor) -> list[NativeStep]:
    """Returns a step from "in" to "out" with the conversions around it."""
    plain = Tensor("y", step.output.shape)
    return [Convert(Tensor("in", x.shape, Layout.BLOCKED), x), step, Convert(plain, step.output)]


def _run(level: str, step: NativeStep, x: Array, threads: int = 1) -> Array:
    given, shape = Tensor("x", x.shape), fixed_shape(step.output.shape)
    plan = plan_of(_through_blocks(step, given), [given], [Tensor("y", shape)])
    return run_plan(level, plan, [x], [shape], threads=threads)[0]


def _two(numbers: Iterable[Any]) -> tuple[int, int]:
    first, second = numbers
    return int(first), int(second)


def _pooled(x: Array, step: Pooling) -> Array:
    """Returns what ONNX says, window by window."""
    window, (_, _, height, width) = step.window, x.shape
    out = np.empty(step.output.shape, np.float64)
    for at in np.ndindex(*out.shape[2:]):
        taps, counted = [], 1
        for i, size in enumerate((height, width)):
            first = at[i] * window.strides[i] - window.pads[i]
            places = [first + tap * window.dilations[i] for tap in range(fixed(window.kernel[i]))]
            taps.append([place for place in places if 0 <= place < size])
            counted *= len([place for place in places if place < size + step.end_pads[i]])
        part = x[:, :, taps[0]][:, :, :, taps[1]].astype(np.float64)
        if step.kind == "max":
            out[:, :, *at] = part.max((2, 3), initial=-np.inf)
        else:
            count = counted if step.includes_padding else len(taps[0]) * len(taps[1])
            out[:, :, *at] = part.sum((2, 3)) / count
    return out


def _pooling(
    shape: tuple[int, ...],
    kernel: tuple[int, int],
    strides: tuple[int, int],
    pads: tuple[int, int],
    end_pads: tuple[int, int],
    dilations: tuple[int, int] = (1, 1),
    kind: str = "max",
    includes_padding: bool = False,
) -> Pooling:
    out = tuple(
        (shape[2 + i] + pads[i] + end_pads[i] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(2)
    )
    output = Tensor("out", (*shape[:2], *out), Layout.BLOCKED)
    x = Tensor("in", shape, Layout.BLOCKED)
    return Pooling(output, x, Window(kernel, strides, pads, dilations), end_pads, kind, includes_padding)


@every_level
@pytest.mark.parametrize("kind", ["max", "mean", "mean with padding"])
def test_pooling_is_that_of_onnx(level: str, kind: str) -> None:
    rng = np.random.default_rng(7)
    for number in range(24):
        kernel = (3, 3) if number % 3 == 0 else _two(rng.integers(1, 7, 2))
        dilations = _two(rng.integers(1, 3, 2)) if number % 4 == 3 else (1, 1)
        spans = [(kernel[i] - 1) * dilations[i] + 1 for i in range(2)]
        sizes = _two(rng.integers(span, span + 20) for span in spans)
        shape = (int(rng.integers(1, 3)), int(rng.integers(1, 37)), *sizes)
        pads, ends = (_two(rng.integers(0, one) for one in kernel) for _ in range(2))
        strides = _two(rng.integers(1, 4, 2)) if number % 3 else (1 + number % 2, 1 + number % 2)
        step = _pooling(shape, kernel, strides, pads, ends, dilations, kind[:4].strip(), "padding" in kind)
        x = rng.standard_normal(shape).astype(np.float32)
        assert_close(_run(level, step, x, 1 + number % 2), _pooled(x, step), level)


@every_level
@pytest.mark.parametrize("kind", ["max", "mean"])
@pytest.mark.parametrize(
    ("kernel", "strides"), [((2, 2), (2, 2)), ((3, 3), (2, 2)), ((3, 3), (1, 1)), ((5, 5), (1, 1)), ((1, 3), (1, 2))]
)
def test_the_usual_windows(level: str, kind: str, kernel: tuple[int, int], strides: tuple[int, int]) -> None:
    rng = np.random.default_rng(8)
    for width in (1, 2, 3, 4, 7, 9, 30):
        pads = _two(one // 2 if max(kernel) > 2 else 0 for one in kernel)
        shape = (1, 19, 7, max(width, kernel[1] - 2 * pads[1]))
        step = _pooling(shape, kernel, strides, pads, pads, kind=kind)
        x = rng.standard_normal(shape).astype(np.float32)
        assert_close(_run(level, step, x), _pooled(x, step), level)


@every_level
@pytest.mark.parametrize("kind", ["max", "mean"])
def test_whole_images_of_any_size(level: str, kind: str) -> None:
    height, width = symbol("h", 1), symbol("w", 1)
    given = Tensor("x", (2, 21, height, width))
    inner, output = Tensor("in", given.shape, Layout.BLOCKED), Tensor("out", (2, 21, 1, 1), Layout.BLOCKED)
    step = Pooling(output, inner, Window((height, width)), (0, 0), kind)
    plan = plan_of(_through_blocks(step, given), [given], [Tensor("y", (2, 21, 1, 1))])
    rng = np.random.default_rng(9)
    for sizes in ((1, 1), (1, 5), (7, 7), (13, 3), (20, 31)):
        x = rng.standard_normal((2, 21, *sizes)).astype(np.float32)
        (found,) = run_plan(level, plan, [x], [(2, 21, 1, 1)], symbols=sizes)
        wanted = x.max((2, 3), keepdims=True) if kind == "max" else x.mean((2, 3), keepdims=True)
        assert_close(found, wanted, level)


@every_level
def test_a_maximum_keeps_what_is_no_number(level: str) -> None:
    rng = np.random.default_rng(10)
    for kernel, strides in (((2, 2), (2, 2)), ((3, 3), (1, 1)), ((3, 3), (2, 2)), ((5, 4), (1, 3)), ((11, 13), (1, 1))):
        step = _pooling((1, 18, 11, 13), kernel, strides, (0, 0), (0, 0))
        x = rng.integers(-9, 9, (1, 18, 11, 13)).astype(np.float32)
        x[rng.random(x.shape) < 0.02] = np.nan
        x[rng.random(x.shape) < 0.02] = -np.nan
        x[rng.random(x.shape) < 0.05] = -np.inf
        np.testing.assert_array_equal(_run(level, step, x), _pooled(x, step))


def _resized(x: Array, rows: tuple[Array, Array], columns: tuple[Array, Array]) -> Array:
    part = (x[:, :, rows[0]].astype(np.float64) * rows[1][:, :, None]).sum(3)
    return np.asarray((part[:, :, :, columns[0]] * columns[1]).sum(4))


def _table(rng: np.random.Generator, size: int, out_size: int, taps: int) -> tuple[Array, Array]:
    weights = rng.random((out_size, taps)) + 0.1
    weights[:, 1:][rng.random((out_size, taps - 1)) < 0.3] = 0.0
    return rng.integers(0, size, (out_size, taps)), weights / weights.sum(1, keepdims=True)


def _resize(shape: tuple[int, ...], rows: tuple[Array, Array], columns: tuple[Array, Array]) -> Resize:
    output = Tensor("out", (*shape[:2], len(rows[0]), len(columns[0])), Layout.BLOCKED)
    return Resize(output, Tensor("in", shape, Layout.BLOCKED), rows, columns)


@every_level
def test_resizing_sums_what_its_tables_say(level: str) -> None:
    rng = np.random.default_rng(11)
    for number in range(20):
        shape = tuple(int(one) for one in rng.integers(1, (3, 40, 12, 14)))
        taps = (1, 2, 2, 4, 3)[number % 5]
        rows = _table(rng, shape[2], int(rng.integers(1, 20)), taps)
        columns = _table(rng, shape[3], int(rng.integers(1, 30)), (taps, 2)[number % 2])
        x = rng.standard_normal(shape).astype(np.float32)
        step = _resize(shape, rows, columns)
        assert_close(_run(level, step, x, 1 + number % 2), _resized(x, rows, columns), level)


@every_level
def test_a_weight_of_zero_takes_nothing_from_an_infinity(level: str) -> None:
    shape, places = (1, 3, 2, 2), np.array([[0, 1], [1, 0]])
    table = (places, np.array([[1.0, 0.0], [0.0, 1.0]]))
    x = np.arange(12, dtype=np.float32).reshape(shape)
    x[0, 1] = [[np.inf, 1], [-np.inf, 2]]
    found = _run(level, _resize(shape, table, table), x)
    np.testing.assert_array_equal(found, x[:, :, ::1, ::1][:, :, [0, 0]][:, :, :, [0, 0]])


@every_level
@pytest.mark.parametrize("places", [-1, 5, 2**30])
def test_a_place_beyond_the_image_is_refused(level: str, places: int) -> None:
    inside = (np.array([[0], [4]]), np.ones((2, 1)))
    outside = (np.array([[0], [places]]), np.ones((2, 1)))
    x = np.zeros((1, 3, 5, 5), np.float32)
    for rows, columns in ((inside, outside), (outside, inside)):
        with pytest.raises(RefusedError, match=r"place|beyond"):
            _run(level, _resize(x.shape, rows, columns), x)


@every_level
@pytest.mark.parametrize("times", [(2, 2), (1, 3), (3, 1), (2, 4)])
def test_every_pixel_is_repeated(level: str, times: tuple[int, int]) -> None:
    rng = np.random.default_rng(12)
    for number, shape in enumerate(((1, 5, 1, 1), (2, 17, 3, 5), (1, 33, 6, 7))):
        x = rng.integers(-9, 9, shape).astype(np.float32)
        out = (*shape[:2], shape[2] * times[0], shape[3] * times[1])
        step = Repeat(Tensor("out", out, Layout.BLOCKED), Tensor("in", shape, Layout.BLOCKED), times)
        found = _run(level, step, x, 1 + number % 2)
        np.testing.assert_array_equal(found, x.repeat(times[0], 2).repeat(times[1], 3))


@every_level
def test_images_that_do_not_fit_are_refused(level: str) -> None:
    x = np.zeros((1, 3, 4, 4), np.float32)
    given, wrong = Tensor("in", x.shape, Layout.BLOCKED), Tensor("out", (1, 3, 8, 9), Layout.BLOCKED)
    other = Tensor("out", (1, 4, 4, 4), Layout.BLOCKED)
    table = (np.zeros((9, 1), np.int64), np.ones((9, 1)))
    steps: list[NativeStep] = [
        Repeat(wrong, given, (2, 2)),
        Resize(wrong, given, table, table),
        Pooling(other, given, Window((1, 1)), (0, 0), "max"),
        Pooling(given_as(other, x.shape), given, Window((1, 1), pads=(-1, 0)), (0, 0), "max"),
        Pooling(given_as(other, x.shape), given, Window((0, 1)), (0, 0), "mean"),
    ]
    for step in steps:
        with pytest.raises(RefusedError):
            _run(level, step, x)


@every_level
def test_windows_that_lie_in_padding_alone_read_nothing(level: str) -> None:
    x = np.ones((1, 3, 2, 2), np.float32)
    given, out = Tensor("in", x.shape, Layout.BLOCKED), Tensor("out", (1, 3, 9, 9), Layout.BLOCKED)
    for kernel in (1, 2, 3, 7):
        for pads in ((5, 40), (1 << 30, 1)):
            _run(level, Pooling(out, given, Window((kernel, kernel), (4, 3), pads, (1, 2)), (0, 9), "max"), x)


def given_as(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Returns a blocked tensor of another shape."""
    return Tensor(tensor.name, shape, Layout.BLOCKED)
