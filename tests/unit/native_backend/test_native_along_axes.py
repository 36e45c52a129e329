# SPDX-License-Identifier: Apache-2.0
"""Reductions and softmax along axes against NumPy in float64: any axes, odd sizes, every level, one and two threads."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from native_models import Array, built, dynamic, each_float_level, model_of, reals, run

from nndeploy.values.types import DimRange

Reduction = Callable[[Array, tuple[int, ...], bool], Array]


def _log_sum_exp(x: Array, axes: tuple[int, ...], keeps: bool) -> Array:
    most = x.max(axes, keepdims=True)
    shift = np.where(np.isfinite(most), most, 0.0)
    result = np.log(np.exp(x - shift).sum(axes, keepdims=True)) + shift
    return result if keeps else result.squeeze(axes)


REDUCTIONS: dict[str, Reduction] = {
    "ReduceL1": lambda x, axes, keeps: np.abs(x).sum(axes, keepdims=keeps),
    "ReduceL2": lambda x, axes, keeps: np.sqrt((x * x).sum(axes, keepdims=keeps)),
    "ReduceLogSum": lambda x, axes, keeps: np.log(x.sum(axes, keepdims=keeps)),
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceMax": lambda x, axes, keeps: x.max(axes, keepdims=keeps),
    "ReduceMean": lambda x, axes, keeps: x.mean(axes, keepdims=keeps),
    "ReduceMin": lambda x, axes, keeps: x.min(axes, keepdims=keeps),
    "ReduceProd": lambda x, axes, keeps: x.prod(axes, keepdims=keeps),
    "ReduceSum": lambda x, axes, keeps: x.sum(axes, keepdims=keeps),
    "ReduceSumSquare": lambda x, axes, keeps: (x * x).sum(axes, keepdims=keeps),
}
SHAPES = ((1, 1), (15, 16), (3, 17), (2, 5, 33), (3, 70, 2), (2, 3, 5, 21), (2, 67, 3, 31))


def _text(operator: str, shape: tuple[int | str, ...], rank: int, axes: tuple[int, ...], more: str = "") -> str:
    given, out = ",".join(map(str, shape)), ",".join(f"o{axis}" for axis in range(rank))
    constant = f"<int64[{len(axes)}] axes = {{{','.join(map(str, axes))}}}>" if axes else ""
    node = f"{operator}{more}({'x, axes' if axes else 'x'})"
    return f"g (float[{given}] x) => (float[{out}] y) {constant} {{ y = {node} }}"


@each_float_level
@pytest.mark.parametrize("operator", REDUCTIONS)
def test_reductions_over_any_axes(level: str, operator: str) -> None:
    for number, shape in enumerate(SHAPES):
        x = reals(*shape, seed=number)
        x = np.abs(x) + 0.5 if operator in ("ReduceLogSum", "ReduceProd") else x
        x = 1 + x / 200 if operator == "ReduceProd" else x  # products of thousands stay finite
        for count in range(1, len(shape) + 1):
            for axes in itertools.combinations(range(len(shape)), count):
                keeps = (number + count) % 2
                rank = len(shape) if keeps else len(shape) - count
                text = _text(operator, shape, rank, axes, f"<keepdims={keeps}>")
                found = run(built(model_of(text)), {"x": x}, level, threads=1 + number % 2)["y"]
                wanted = REDUCTIONS[operator](x.astype(np.float64), axes, bool(keeps))
                assert found.shape == wanted.shape
                scale = max(1.0, float(np.abs(wanted).max()))
                np.testing.assert_allclose(found, wanted, rtol=5e-6, atol=2e-6 * scale, err_msg=f"{shape} {axes}")


@each_float_level
@pytest.mark.parametrize("operator", REDUCTIONS)
def test_many_values_of_few_results_are_shared_by_threads(level: str, operator: str) -> None:
    x = (1 + 0.0001 * reals(3, 2 * 9349)).astype(np.float32)
    for axes in ((1,), (0, 1)):
        artifact = built(model_of(_text(operator, x.shape, 2, axes)))
        assert artifact.log.count("reduce_") == 2 * 2, "two steps, each with its operator and label"
        alone, shared = (run(artifact, {"x": x}, level, threads=threads)["y"] for threads in (1, 2))
        np.testing.assert_array_equal(alone, shared)
        wanted = REDUCTIONS[operator](x.astype(np.float64), axes, True)
        np.testing.assert_allclose(alone, wanted, rtol=1e-5 if operator != "ReduceProd" else 1e-3)


def test_every_element_without_axes_or_none() -> None:
    x = np.abs(reals(3, 5)) + 0.5
    for operator, reduction in REDUCTIONS.items():
        found = run(built(model_of(_text(operator, x.shape, 2, ()))), {"x": x})["y"]
        np.testing.assert_allclose(found, reduction(x.astype(np.float64), (0, 1), True), rtol=1e-5)
        found = run(built(model_of(_text(operator, x.shape, 2, (), "<noop_with_empty_axes=1>"))), {"x": x})["y"]
        wanted = reduction(x[..., None].astype(np.float64), (2,), False)  # of each element by itself
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


@each_float_level
@pytest.mark.parametrize("operator", REDUCTIONS)
def test_reductions_over_sizes_of_the_call(level: str, operator: str) -> None:
    ranges = {"n": DimRange(1, 40, 1), "w": DimRange(1, 90, 1)}
    for axes in ((2,), (0,), (0, 2), (1, 2), (0, 1, 2)):
        artifact = built(dynamic(_text(operator, ("n", 3, "w"), 3, axes), ranges), ranges)
        for n, w in ((1, 1), (2, 16), (33, 15), (5, 83)):
            x = 1 + 0.1 * reals(n, 3, w)
            wanted = REDUCTIONS[operator](x.astype(np.float64), axes, True)
            found = run(artifact, {"x": x}, level, threads=1 + n % 2)["y"]
            np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-6)


@each_float_level
def test_what_nothing_comes_to(level: str) -> None:
    wanted = {
        "ReduceL1": 0, "ReduceL2": 0, "ReduceLogSum": -np.inf, "ReduceLogSumExp": -np.inf, "ReduceMax": -np.inf,
        "ReduceMean": np.nan, "ReduceMin": np.inf, "ReduceProd": 1, "ReduceSum": 0, "ReduceSumSquare": 0,
    }  # fmt: skip
    for operator, axes in itertools.product(REDUCTIONS, ((0,), (0, 2), (1,))):
        artifact = built(dynamic(_text(operator, ("n", "m", 20), 3, axes), {}))
        x = np.zeros((0, 3, 20) if 0 in axes else (3, 0, 20), np.float32)
        found = run(artifact, {"x": x}, level, threads=2)["y"]
        np.testing.assert_array_equal(found, np.full(found.shape, wanted[operator], np.float32))
        assert found.size
    whole = dynamic("g (int64[n,3] x) => (int64[1,3] y) <int64[1] a = {0}> { y = ReduceMean(x, a) }", {})
    np.testing.assert_array_equal(run(built(whole), {"x": np.zeros((0, 3), np.int64)}, level)["y"], [[0, 0, 0]])


@each_float_level
@pytest.mark.parametrize("shape", [(2, 40), (40, 2), (3, 19), (19, 37)])
def test_what_is_no_number_stays_none(level: str, shape: tuple[int, ...]) -> None:
    for bad in (np.nan, np.inf, -np.inf):
        x = reals(*shape)
        x[0, 0] = x[-1, -1] = bad
        for operator in REDUCTIONS:
            for axis in (0, 1):
                with np.errstate(all="ignore"):
                    wanted = REDUCTIONS[operator](x.astype(np.float64), (axis,), True)
                found = run(built(model_of(_text(operator, shape, 2, (axis,)))), {"x": x}, level)["y"]
                np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5, err_msg=f"{operator} {bad} {axis}")


def _softmax(x: Array, axis: int, *, is_log: bool) -> Array:
    with np.errstate(all="ignore"):
        below = (x - x.max(axis, keepdims=True)).astype(np.float64)  # which rounds: an exponent of 40 is 2e-6 off
        log_sum = np.log(np.exp(below).sum(axis, keepdims=True))
    return below - log_sum if is_log else np.exp(below - log_sum)


@each_float_level
@pytest.mark.parametrize("shape", [(37, 2), (3, 85), (40, 3), (7, 33), (2, 16), (2, 15), (2, 19, 70), (3, 4, 81)])
def test_softmax_along_any_axis(level: str, shape: tuple[int, ...]) -> None:
    x = 9 * reals(*shape)
    for axis, operator in itertools.product(range(len(shape)), ("Softmax", "LogSoftmax")):
        text = _text(operator, shape, len(shape), (), f"<axis={axis - len(shape)}>")
        artifact = built(model_of(text))
        alone, shared = (run(artifact, {"x": x}, level, threads=threads)["y"] for threads in (1, 2))
        np.testing.assert_array_equal(alone, shared)
        wanted = _softmax(x, axis, is_log=operator == "LogSoftmax")
        np.testing.assert_allclose(alone, wanted, rtol=2e-6, atol=2e-6 if operator == "LogSoftmax" else 1e-37)


@each_float_level
@pytest.mark.parametrize("shape", [(4, 40), (40, 4), (20, 37)])
def test_softmax_of_masked_and_wide_values(level: str, shape: tuple[int, ...]) -> None:
    """Some masked: exactly zero. All masked, or any NaN or infinity: NaN, as ONNX Runtime gives."""
    for axis, operator in itertools.product((0, 1), ("Softmax", "LogSoftmax")):
        x = np.moveaxis(1e4 * reals(*shape), axis, 0)
        nan = np.array(0x7FC00FFF, np.uint32).view(np.float32)  # another one than NumPy's
        x[1, 0], x[:, 1], x[-1, 2], x[0, 3] = -np.inf, -np.inf, nan, np.inf
        x = np.ascontiguousarray(np.moveaxis(x, 0, axis))
        artifact = built(model_of(_text(operator, shape, 2, (), f"<axis={axis}>")))
        found, wanted = run(artifact, {"x": x}, level)["y"], _softmax(x, axis, is_log=operator == "LogSoftmax")
        np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=1e-6 if operator == "LogSoftmax" else 1e-37)
        assert operator == "LogSoftmax" or (np.moveaxis(found, axis, 0)[1, 0] == 0).all()
