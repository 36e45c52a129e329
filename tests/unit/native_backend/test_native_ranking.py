# SPDX-License-Identifier: Apache-2.0
"""Places of extremes, running sums and reductions of whole numbers against NumPy: odd sizes, ties, NaN, every level."""

import itertools

import numpy as np
import pytest
from native_models import Array, built, dynamic, each_float_level, reals, run

from nndeploy.errors import BuildRefusedError
from nndeploy.values.types import DimRange

SHAPES = ((1,), (5, 15), (3, 16), (37, 33), (2, 7, 3), (2, 5, 130), (3, 2, 450), (2, 66, 65))
TYPES = {"float32": "float", "int32": "int32", "int64": "int64", "uint8": "uint8", "int8": "int8", "bool": "bool"}
NO_RANGES: dict[str, DimRange] = {}


def _drawn(dtype: str, shape: tuple[int, ...]) -> Array:
    """Returns numbers among which many are equal, with both ends of their type."""
    numbers = np.random.default_rng(sum(shape)).integers(-4, 5, shape)
    if dtype == "bool":
        return numbers > 2
    array = numbers.astype(dtype)
    if dtype != "float32":
        limits = np.iinfo(dtype)
        array.reshape(-1)[0], array.reshape(-1)[-1] = limits.min, limits.max
    return array


def _run(node: str, level: str, x: Array, outputs: dict[str, str], opset: int = 21, constants: str = "") -> list[Array]:
    given = ",".join(map(str, x.shape))
    said = ", ".join(
        f"{of}[{','.join(f'{name}{axis}' for axis in range(x.ndim))}] {name}" for name, of in outputs.items()
    )
    text = f"g ({TYPES[x.dtype.name]}[{given}] x) => ({said}) {constants} {{ {', '.join(outputs)} = {node} }}"
    artifact = built(dynamic(text, NO_RANGES, opset=opset))
    alone, shared = (run(artifact, {"x": x}, level, threads=threads) for threads in (1, 2))
    for name in outputs:
        np.testing.assert_array_equal(alone[name], shared[name])
    return [alone[name] for name in outputs]


def _places(x: Array, axis: int, *, is_max: bool, is_last: bool) -> Array:
    find = np.argmax if is_max else np.argmin
    if is_last:
        return np.expand_dims(x.shape[axis] - 1 - find(np.flip(x, axis), axis), axis)
    return np.expand_dims(find(x, axis), axis)


@each_float_level
@pytest.mark.parametrize("dtype", [name for name in TYPES if name != "bool"])
def test_places_of_extremes(level: str, dtype: str) -> None:
    for shape in SHAPES:
        x = _drawn(dtype, shape)
        for axis, is_max, is_last in itertools.product(range(len(shape)), (True, False), (True, False)):
            node = f"{'ArgMax' if is_max else 'ArgMin'}<axis={axis - len(shape)}, select_last_index={int(is_last)}>(x)"
            (found,) = _run(node, level, x, {"y": "int64"})
            np.testing.assert_array_equal(found, _places(x, axis, is_max=is_max, is_last=is_last))


@each_float_level
@pytest.mark.parametrize("shape", [(4, 40), (40, 4), (3, 17), (2, 9)])
def test_a_nan_is_the_extreme(level: str, shape: tuple[int, ...]) -> None:
    x = reals(*shape)
    x[0, 1] = x[0, -2] = x[-1, 0] = x[-1, 2] = np.nan
    x[1, 1] = np.inf
    for axis, is_max, is_last in itertools.product((0, 1), (True, False), (True, False)):
        node = f"{'ArgMax' if is_max else 'ArgMin'}<axis={axis}, select_last_index={int(is_last)}>(x)"
        (found,) = _run(node, level, x, {"y": "int64"})
        np.testing.assert_array_equal(found, _places(x, axis, is_max=is_max, is_last=is_last))


@each_float_level
def test_hardmax(level: str) -> None:
    for shape in SHAPES[1:]:
        x = _drawn("float32", shape)
        for axis in range(len(shape)):
            (found,) = _run(f"Hardmax<axis={axis}>(x)", level, x, {"y": "float"})
            wanted = np.zeros_like(x)
            np.put_along_axis(wanted, np.expand_dims(x.argmax(axis), axis), 1, axis)
            np.testing.assert_array_equal(found, wanted)
    x = _drawn("float32", (3, 4, 5))
    (found,) = _run("Hardmax(x)", level, x, {"y": "float"}, opset=11)
    np.testing.assert_array_equal(found.reshape(3, 20).argmax(1), x.reshape(3, 20).argmax(1))
    assert found.sum() == 3


@each_float_level
@pytest.mark.parametrize("dtype", ["float32", "int32", "int64"])
def test_top_elements(level: str, dtype: str) -> None:
    for shape in SHAPES:
        x = _drawn(dtype, shape)
        for axis, is_largest in itertools.product(range(len(shape)), (1, 0)):
            order = np.argsort(-x.astype(np.float64) if is_largest else x.astype(np.float64), axis, kind="stable")
            for count in {1, shape[axis] // 2 + 1, shape[axis]}:
                node = f"TopK<axis={axis - len(shape)}, largest={is_largest}>(x, k)"
                outputs = {"y": TYPES[dtype], "z": "int64"}
                values, places = _run(node, level, x, outputs, constants=f"<int64[1] k = {{{count}}}>")
                wanted = np.take(order, range(count), axis)
                np.testing.assert_array_equal(places, wanted)
                np.testing.assert_array_equal(values, np.take_along_axis(x, wanted, axis))


@each_float_level
def test_top_elements_of_what_is_odd(level: str) -> None:
    """A NaN is larger than all numbers, both zeros are equal, values or places may be left out."""
    x = np.array([[0.0, -0.0, np.nan, -np.inf, np.inf, -1e-40, 1e-40, -3, -np.nan]], np.float32)
    for is_largest, wanted in ((1, [2, 8, 4, 6, 0, 1, 5, 7, 3]), (0, [3, 7, 5, 0, 1, 6, 4, 2, 8])):
        text = f"""g (float[1,9] x) => (int64[1,9] y, float[1,2] z) <int64[1] all = {{9}}, int64[1] two = {{2}}> {{
            v, y = TopK<largest={is_largest}>(x, all) z, w = TopK<largest={is_largest}, sorted=0>(x, two) }}"""
        found = run(built(dynamic(text, NO_RANGES)), {"x": x}, level)
        np.testing.assert_array_equal(found["y"][0], wanted)
        np.testing.assert_array_equal(found["z"][0], x[0, wanted[:2]])
    text = "g (float[2,9] x) => (float[2,3] y) { y, z = TopK<k=3>(x) }"
    x = reals(2, 9)
    found = run(built(dynamic(text, NO_RANGES, opset=1)), {"x": x}, level)
    np.testing.assert_array_equal(found["y"], np.sort(x, 1)[:, :-4:-1])


@each_float_level
@pytest.mark.parametrize("dtype", ["float32", "int32", "int64"])
def test_running_sums(level: str, dtype: str) -> None:
    for shape in SHAPES:
        x = _drawn(dtype, shape)
        for axis, is_exclusive, is_reverse in itertools.product(range(len(shape)), (0, 1), (0, 1)):
            node = f"CumSum<exclusive={is_exclusive}, reverse={is_reverse}>(x, axis)"
            (found,) = _run(node, level, x, {"y": TYPES[dtype]}, constants=f"<int64 axis = {{{axis}}}>")
            turned = np.flip(x, axis) if is_reverse else x
            wanted = np.cumsum(turned, axis, dtype=x.dtype)
            wanted = wanted - turned if is_exclusive else wanted
            np.testing.assert_array_equal(found, np.flip(wanted, axis) if is_reverse else wanted)


@each_float_level
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "int8", "bool"])
def test_reductions_of_whole_numbers(level: str, dtype: str) -> None:
    kinds = {
        "ReduceMax": lambda x, axis: x.max(axis, keepdims=True),
        "ReduceMin": lambda x, axis: x.min(axis, keepdims=True),
        "ReduceSum": lambda x, axis: x.sum(axis, keepdims=True, dtype=x.dtype),
        "ReduceProd": lambda x, axis: x.prod(axis, keepdims=True, dtype=x.dtype),
        "ReduceL1": lambda x, axis: np.abs(x).sum(axis, keepdims=True, dtype=x.dtype),
        "ReduceSumSquare": lambda x, axis: (x * x).sum(axis, keepdims=True, dtype=x.dtype),
    }
    for shape in SHAPES:
        x = _drawn(dtype, shape)
        for axis, (kind, wanted) in itertools.product((*range(len(shape)), None), kinds.items()):
            if kind not in ("ReduceMax", "ReduceMin") and dtype not in ("int32", "int64"):
                continue
            node, axes = f"{kind}(x{', axes' if axis is not None else ''})", f"<int64[1] axes = {{{axis}}}>"
            (found,) = _run(node, level, x, {"y": TYPES[dtype]}, constants=axes if axis is not None else "")
            with np.errstate(all="ignore"):
                np.testing.assert_array_equal(found, wanted(x, axis))


@each_float_level
def test_a_mean_of_whole_numbers_is_cut(level: str) -> None:
    for dtype in ("int32", "int64"):
        x = np.array([[3, -4, 9, -1], [-3, -2, -1, -1]], dtype)
        (found,) = _run("ReduceMean(x, axes)", level, x, {"y": dtype}, constants="<int64[1] axes = {1}>")
        np.testing.assert_array_equal(found, [[1], [-1]])
        (found,) = _run("ReduceMean(x, axes)", level, x, {"y": dtype}, constants="<int64[1] axes = {0}>")
        np.testing.assert_array_equal(found, [[0, -3, 4, -1]])


@each_float_level
@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (2, 5, 3, 7), (3, 40, 1, 1), (1, 33, 9, 9), (2, 8, 70)])
def test_local_response_normalisation(level: str, shape: tuple[int, ...]) -> None:
    x = 3 * reals(*shape)
    for window, beta in ((1, 0.75), (3, 0.5), (4, 0.75), (9, 1.25)):
        before = (window - 1) // 2
        squares = np.pad(x.astype(np.float64) ** 2, [(0, 0), (before, window - 1 - before), *[(0, 0)] * (x.ndim - 2)])
        sums = sum(squares[:, k : k + shape[1]] for k in range(window))
        (found,) = _run(f"LRN<size={window}, alpha=0.3, beta={beta}, bias=1.5>(x)", level, x, {"y": "float"})
        np.testing.assert_allclose(found, x / (1.5 + 0.3 / window * sums) ** beta, rtol=2e-6, atol=1e-6)


@each_float_level
def test_sizes_of_the_call(level: str) -> None:
    ranges = {"n": DimRange(1, 40, 1), "w": DimRange(4, 90, 1)}
    text = """g (float[n,w] x) => (int64[n,1] a, float[n,w] c, float[n,4] v, int64[n,4] p, int64[1,w] b)
        <int64[1] k = {4}, int64 axis = {0}> {
        a = ArgMax<axis=1>(x) b = ArgMin<axis=0>(x) c = CumSum(x, axis) v, p = TopK(x, k) }"""
    artifact = built(dynamic(text, ranges), ranges)
    for n, w in ((1, 4), (17, 16), (3, 81)):
        x = reals(n, w)
        found = run(artifact, {"x": x}, level, threads=1 + n % 2)
        np.testing.assert_array_equal(found["a"], x.argmax(1, keepdims=True))
        np.testing.assert_array_equal(found["b"], x.argmin(0, keepdims=True))
        np.testing.assert_allclose(found["c"], np.cumsum(x.astype(np.float64), 0), rtol=1e-6, atol=1e-6)
        np.testing.assert_array_equal(found["p"], np.argsort(-x, 1, kind="stable")[:, :4])
        np.testing.assert_array_equal(found["v"], -np.sort(-x, 1)[:, :4])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("(float[3,4] x, int64[1] k) => (float[3,2] y, int64[3,2] z) { y, z = TopK(x, k) }", "not constant"),
        ("(float[3,4] x, int64 a) => (float[3,4] y) { y = CumSum(x, a) }", "not constant"),
        ("(int64[3,4,5] x) => (int64[1,4,1] y) <int64[2] a = {0,2}> { y = ReduceMean(x, a) }", "whole numbers"),
        ("(int32[3,4] x) => (int32[3,1] y) <int64[1] a = {1}> { y = ReduceL2(x, a) }", "ReduceL2 of int32"),
        ("(float[1,4,2,2] x) => (float[1,4,2,2] y) { y = LRN<size=300>(x) }", "256 channels"),
    ],
)
def test_refusals_say_why(text: str, why: str) -> None:
    with pytest.raises(BuildRefusedError, match=why):
        built(dynamic(f"g {text}", NO_RANGES))
