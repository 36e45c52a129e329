# SPDX-License-Identifier: Apache-2.0
"""Pooling of the kernel library, against NumPy at odd shapes; what does not fit is refused."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from kernel_library import RefusedError, assert_close, every_level, plan_of, run_plan
from nndeploy_native.steps.convolution import Window, Windows
from nndeploy_native.steps.movement import Convert
from nndeploy_native.steps.pooling import PooledPlaces, Pooling
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
    window, depth = step.window, fixed(step.depth)
    x = x.reshape(*x.shape[:2], depth, -1, x.shape[3])
    out = np.empty((*x.shape[:3], fixed(step.output.shape[2]) // depth, fixed(step.output.shape[3])), np.float64)
    for at in np.ndindex(*out.shape[3:]):
        taps, counted = [], 1
        for i, size in enumerate(x.shape[3:]):
            first = at[i] * window.strides[i] - fixed(window.pads[i])
            places = [first + tap * window.dilations[i] for tap in range(fixed(window.kernel[i]))]
            taps.append([place for place in places if 0 <= place < size])
            counted *= len([place for place in places if place < size + fixed(step.end_pads[i])])
        part = x[:, :, :, taps[0]][:, :, :, :, taps[1]].astype(np.float64)
        if step.kind == "max":
            out[:, :, :, *at] = part.max((3, 4), initial=-np.inf)
        else:
            count = counted if step.includes_padding else len(taps[0]) * len(taps[1])
            out[:, :, :, *at] = part.sum((3, 4)) / (1 if step.kind == "sum" else count)
    return out.reshape(fixed_shape(step.output.shape))


def _pooling(
    shape: tuple[int, ...],
    kernel: tuple[int, int],
    strides: tuple[int, int],
    pads: tuple[int, int],
    end_pads: tuple[int, int],
    dilations: tuple[int, int] = (1, 1),
    kind: str = "max",
    includes_padding: bool = False,
    depth: int = 1,
) -> Pooling:
    """Returns a step over `depth` images of `shape` below each other."""
    height, width = (
        (shape[2 + i] + pads[i] + end_pads[i] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(2)
    )
    output = Tensor("out", (*shape[:2], depth * height, width), Layout.BLOCKED)
    x = Tensor("in", (*shape[:2], depth * shape[2], shape[3]), Layout.BLOCKED)
    return Pooling(output, x, Window(kernel, strides, pads, dilations), end_pads, kind, includes_padding, depth)


@every_level
@pytest.mark.parametrize("kind", ["max", "mean", "mean with padding", "sum"])
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
        depth = 1 + number % 3 // 2
        step = _pooling(shape, kernel, strides, pads, ends, dilations, kind[:4].strip(), "padding" in kind, depth)
        x = rng.standard_normal(fixed_shape(step.x.shape)).astype(np.float32)
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
@pytest.mark.parametrize("kind", ["max", "mean", "sum"])
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
        wanted = {"max": x.max, "mean": x.mean, "sum": x.sum}[kind]((2, 3), keepdims=True)
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


@every_level
def test_images_that_do_not_fit_are_refused(level: str) -> None:
    x = np.zeros((1, 3, 4, 4), np.float32)
    given, other = Tensor("in", x.shape, Layout.BLOCKED), Tensor("out", (1, 4, 4, 4), Layout.BLOCKED)
    steps: list[NativeStep] = [
        Pooling(other, given, Window((1, 1)), (0, 0), "max"),
        Pooling(given_as(other, x.shape), given, Window((1, 1), pads=(-1, 0)), (0, 0), "max"),
        Pooling(given_as(other, x.shape), given, Window((0, 1)), (0, 0), "mean"),
        Pooling(given_as(other, x.shape), given, Window((1, 1)), (0, 0), "max", depth=3),
        Pooling(given_as(other, x.shape), given, Window((1, 1)), (0, 0), "max", depth=0),
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


def _places(x: Array, windows: Windows, sizes: tuple[int, ...], *, is_column_major: bool) -> Array:
    """Returns where the largest element of each window lies, the first of equal ones, a NaN before all others."""
    rank, found = len(sizes), np.empty((*x.shape[:2], *sizes), np.int64)
    order = tuple(reversed(range(rank))) if is_column_major else tuple(range(rank))
    of_image = [x.shape[2 + axis] for axis in order]
    for plane in np.ndindex(*x.shape[:2]):
        for at in np.ndindex(*sizes):
            first = [at[i] * windows.strides[i] - fixed(windows.begins[i]) for i in range(rank)]
            taps = [[first[i] + tap * windows.dilations[i] for tap in range(windows.kernel[i])] for i in range(rank)]
            inside = [[one for one in taps[i] if 0 <= one < x.shape[2 + i]] for i in range(rank)]
            part = x[plane][np.ix_(*inside)]
            best = np.unravel_index(np.argmax(part), part.shape)
            place = [inside[axis][best[axis]] for axis in order]
            number = np.ravel_multi_index(place, of_image)
            found[(*plane, *at)] = np.ravel_multi_index(plane, x.shape[:2]) * np.prod(x.shape[2:]) + number
    return found


@every_level
@pytest.mark.parametrize("is_column_major", [False, True])
def test_places_of_the_largest(level: str, is_column_major: bool) -> None:
    rng = np.random.default_rng(14)
    for number in range(9):
        rank = 1 + number % 3
        kernel, strides = (tuple(int(one) for one in rng.integers(1, 4, rank)) for _ in range(2))
        dilations = tuple(int(one) for one in rng.integers(1, 3, rank))
        spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
        shape = (2, 3, *(int(rng.integers(span, span + 6)) for span in spans))
        begins = tuple(int(rng.integers(0, k)) for k in kernel)
        windows = Windows(kernel, strides, dilations, begins, (0,) * rank)
        sizes = tuple((shape[2 + i] + begins[i] - spans[i]) // strides[i] + 1 for i in range(rank))
        x = rng.integers(-3, 3, shape).astype(np.float32)
        x[rng.random(shape) < 0.05] = np.nan
        x[rng.random(shape) < 0.1] = -np.inf
        given, output = Tensor("x", shape), Tensor("y", (*shape[:2], *sizes), element="int64")
        plan = plan_of([PooledPlaces(output, given, windows, is_column_major)], [given], [output])
        (found,) = run_plan(level, plan, [x], threads=1 + number % 2)
        np.testing.assert_array_equal(found, _places(x, windows, sizes, is_column_major=is_column_major))


@every_level
def test_places_that_do_not_fit_are_refused(level: str) -> None:
    x, numbers = Tensor("x", (1, 3, 4, 4)), Tensor("y", (1, 3, 3, 3), element="int64")
    windows = Windows((2, 2), (1, 1), (1, 1), (0, 0), (0, 0))
    steps = [
        PooledPlaces(replace(numbers, shape=(2, 3, 3, 3)), x, windows, False),
        PooledPlaces(replace(numbers, shape=(1, 3, 9)), x, windows, False),
        PooledPlaces(replace(numbers, element="int32"), x, windows, False),
        PooledPlaces(numbers, x, replace(windows, kernel=(0, 2)), False),
        PooledPlaces(numbers, x, replace(windows, begins=(-1, 0)), False),
        PooledPlaces(numbers, x, replace(windows, strides=(0, 1)), False),
    ]
    for step in steps:
        with pytest.raises(RefusedError):
            run_plan(level, plan_of([step], [x], [step.output]), [np.zeros((1, 3, 4, 4), np.float32)])
