# SPDX-License-Identifier: Apache-2.0
"""What is float64 in a model is computed in float64, and rounded where the model says so, once."""

import numpy as np
import onnx_ir as ir
import pytest
from native_models import FLOAT_LEVELS, Array, assert_right, built, by_onnxruntime, each_float_level, model_of, run
from nndeploy_native.lowering.table import refusal_of
from nndeploy_native.plan import PLAN_FORMAT_OF_DOUBLES
from oracle.in_float64 import outputs_in_float64
from tree_models import Drawn, row_model, trees_of

TYPES = {np.float32: (1, "float"), np.float16: (10, "float16"), np.int32: (6, "int32"), np.int64: (7, "int64"),
         np.uint8: (2, "uint8"), np.int8: (3, "int8"), np.bool_: (9, "bool")}  # fmt: skip


def cast(x: Array, to: type, level: str) -> Array:
    number, name = TYPES[to]
    model = model_of(f"g (double[{x.size}] x) => ({name}[{x.size}] y) {{ y = Cast<to={number}>(x) }}")
    return run(built(model), {"x": x}, level)["y"]


def beside(values: Array) -> Array:
    """Returns numbers of float64 in the middle of neighbouring ones, and just beside these."""
    exact = np.unique(values[np.isfinite(values)].astype(np.float64))
    middle = (exact[1:] + exact[:-1]) / 2
    return np.concatenate([exact, middle, np.nextafter(middle, -np.inf), np.nextafter(middle, np.inf)])


@each_float_level
def test_floats_and_halves_are_the_nearest(level: str) -> None:
    """Also halves where the nearest float lies in the middle of two."""
    halves = np.arange(2**16).astype(np.uint16).view(np.float16)
    floats = np.random.default_rng(0).integers(0, 2**32, 4000, np.uint32).view(np.float32)
    odd = np.array([65519.999999999, 65520, 1e300, -1e300, np.inf, np.nan, 1e-300, -0.0, 2.0**-149, 2.0**-151])
    for to, values in ((np.float16, halves), (np.float32, floats)):
        x = np.concatenate([beside(values), odd, -odd])
        with np.errstate(over="ignore"):
            wanted = x.astype(to)
        found = cast(x, to, level)
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))


@each_float_level
def test_whole_numbers_lose_what_is_behind_the_point(level: str) -> None:
    x = np.array([0.0, -0.5, 0.999999, -1.9999999999, 2147483647.5, -2147483648.9, 127.9, 255.99, -128.5, 100.0])
    for to in (np.int32, np.int64):
        np.testing.assert_array_equal(cast(x, to, level), np.trunc(x).astype(to))
    np.testing.assert_array_equal(cast(x[6:8], np.uint8, level), [127, 255])
    np.testing.assert_array_equal(cast(x[8:], np.int8, level), [-128, 100])
    np.testing.assert_array_equal(cast(x, np.bool_, level), x != 0)
    large = np.array([2.0**62, -(2.0**63), 2.0**53 + 2, np.nan, np.inf, 1e30])
    np.testing.assert_array_equal(cast(large, np.int64, level)[:3], large[:3].astype(np.int64))
    np.testing.assert_array_equal(cast(large, np.int64, level)[3:], [np.iinfo(np.int64).min] * 3)


@each_float_level
def test_every_type_becomes_what_it_is(level: str) -> None:
    for to, (_, name) in TYPES.items():
        x = (np.random.default_rng(0).standard_normal(37) * 100).astype(to)
        model = model_of(f"g ({name}[37] x) => (double[37] y) {{ y = Cast<to=11>(x) }}")
        np.testing.assert_array_equal(run(built(model), {"x": x}, level)["y"], x.astype(np.float64))
    x = np.array([2**53 + 1, -(2**63), 2**63 - 1])
    model = model_of("g (int64[3] x) => (double[3] y) { y = Cast<to=11>(x) }")
    np.testing.assert_array_equal(run(built(model), {"x": x}, level)["y"], x.astype(np.float64))


@each_float_level
@pytest.mark.parametrize(("operator", "function", "low", "high"), [
    ("Exp", np.exp, -745.0, 709.0), ("Log", np.log, 1e-320, 1e300), ("Log", np.log, 0.5, 2.0),
    ("Sigmoid", lambda x: 1 / (1 + np.exp(-x)), -700.0, 40.0), ("Sqrt", np.sqrt, 0.0, 1e9),
    ("Tanh", np.tanh, -25.0, 25.0), ("Tanh", np.tanh, -1.0, 1.0), ("Tanh", np.tanh, -1e-9, 1e-300),
])  # fmt: skip
def test_functions_are_within_some_units_of_the_last_digit(
    level: str, operator: str, function: np.ufunc, low: float, high: float
) -> None:
    x = np.concatenate([np.random.default_rng(0).uniform(low, high, 3001), [low, high]])
    found = run(built(model_of(f"g (double[3003] x) => (double[3003] y) {{ y = {operator}(x) }}")), {"x": x}, level)
    np.testing.assert_allclose(found["y"], function(x), rtol=9e-16, atol=1e-323)


def test_what_is_no_number_or_infinite_stays_so() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, -1.0, 800.0, -800.0])
    for operator, wanted in (
        ("Exp", [np.nan, np.inf, 0, 1, 1, np.exp(-1), np.inf, 0]),
        ("Log", [np.nan, np.inf, np.nan, -np.inf, -np.inf, np.nan, np.log(800), np.nan]),
        ("Relu", [np.nan, np.inf, 0, 0, 0, 0, 800, 0]),
        ("Tanh", [np.nan, 1, -1, 0, -0.0, np.tanh(-1), 1, -1]),
    ):
        model = model_of(f"g (double[8] x) => (double[8] y) {{ y = {operator}(x) }}")
        for level in FLOAT_LEVELS:
            np.testing.assert_allclose(run(built(model), {"x": x}, level)["y"], wanted, rtol=1e-15)


@each_float_level
def test_a_cast_rounds_whatever_it_is_joined_with(level: str) -> None:
    """(float) x * 3 is of the float, x + 1 of the double, and what was float is exact."""
    text = """g (double[4] x, float[4] f) => (float[4] a, float[4] b, double[4] c, int64[4] d) <float three = {3.0},
        double one = {1.0}, double tiny = {1e-9}> {
        p = Cast<to=1>(x) a = Mul(p, three)  q = Add(x, one) b = Cast<to=1>(q)
        g0 = Cast<to=11>(f) g1 = Add(g0, tiny) h = Cast<to=1>(g1) c = Cast<to=11>(h)  d = Cast<to=7>(g1) }"""
    x, f = np.array([1 + 2.0**-30, 1 / 3, 1e-40, -7.1]), np.array([1, -2, 16777215, 0.9999999], np.float32)
    found = run(built(model_of(text)), {"x": x, "f": f}, level)
    wide = f.astype(np.float64) + 1e-9
    np.testing.assert_array_equal(found["a"], x.astype(np.float32) * np.float32(3))
    np.testing.assert_array_equal(found["b"], (x + 1).astype(np.float32))
    np.testing.assert_array_equal(found["c"], wide.astype(np.float32).astype(np.float64))
    np.testing.assert_array_equal(found["d"], np.trunc(wide).astype(np.int64))


MOVED = """g (double[2,3,5] x, int64[2] i) => (double[5,6] a, double[2,2,5] b, double[2,4,5] c, double[2,3,5] d,
    double[2,5,5] e) <int64[2] rows = {6,-1}, int64[1] one = {1}, int64[1] three = {3}, int64[6] wide = {0,1,0,0,1,0}> {
    r = Reshape(x, rows) a = Transpose(r) b = Gather<axis=1>(x, i) s = Slice(x, one, three, one)
    t = Slice(x, one, three, one) c = Concat<axis=1>(s, t) d = Identity(x) e = Pad(x, wide) }"""


@each_float_level
def test_moved_numbers_keep_every_bit(level: str) -> None:
    x = np.random.default_rng(0).integers(0, 2**64, (2, 3, 5), np.uint64).view(np.float64)
    artifact = built(model_of(MOVED))
    found = run(artifact, {"x": x, "i": np.array([2, 0])}, level)
    wanted = [x.reshape(6, 5).T, x[:, [2, 0]], np.concatenate([x[:, 1:], x[:, 1:]], 1), x,
              np.pad(x, ((0, 0), (1, 1), (0, 0)))]  # fmt: skip
    for array, right in zip(found.values(), wanted, strict=True):
        np.testing.assert_array_equal(array.view(np.uint64), np.ascontiguousarray(right).view(np.uint64))


@each_float_level
def test_a_classifier_of_doubles(level: str) -> None:
    """What skl2onnx writes for scaled columns, a linear model and its shares."""
    text = """g (double[n,4] x) => (double[n,3] shares, int64[n] label, double[n,1] total, double[3,n] turned) {
        s = Sub(x, mean) d = Div(s, deviation) m = MatMul(d, w) a = Add(m, b) shares = Softmax<axis=1>(a)
        label = ArgMax<axis=1, keepdims=0>(a) total = ReduceLogSumExp<axes=[1]>(a)
        turned = Gemm<transA=1, transB=1, alpha=0.5, beta=2.0>(w, d, c) }"""
    rng = np.random.default_rng(0)
    constants = {name: rng.standard_normal(shape) for name, shape in
                 (("mean", 4), ("deviation", 4), ("w", (4, 3)), ("b", 3), ("c", (3, 1)))}  # fmt: skip
    for rows in (1, 3, 40):
        model = model_of(text.replace("n,", f"{rows},").replace(",n]", f",{rows}]").replace("[n]", f"[{rows}]"),
                         constants, opset=17)  # fmt: skip
        artifact, x = built(model), {"x": rng.standard_normal((rows, 4))}
        assert artifact.metadata["format"] == PLAN_FORMAT_OF_DOUBLES
        assert_right(model, artifact, x, level, rtol=2e-14, atol=1e-300, threads=1 + rows % 2)


@each_float_level
@pytest.mark.parametrize("columns", [1, 3, 16, 37])
def test_products_of_every_size(level: str, columns: int) -> None:
    rng = np.random.default_rng(columns)
    for number, (rows, inner) in enumerate(((1, 1), (4, 9), (7, 33), (2, 65537))):
        model = model_of(f"g (double[{rows},{inner}] a, double[{inner},{columns}] b) => (double[{rows},{columns}] y)"
                         " { y = MatMul(a, b) }")  # fmt: skip
        a, b = rng.standard_normal((rows, inner)), rng.standard_normal((inner, columns))
        found = run(built(model), {"a": a, "b": b}, level, threads=1 + number % 2)["y"]
        np.testing.assert_allclose(found, a @ b, rtol=1e-12, atol=1e-12 * inner**0.5)


@each_float_level
@pytest.mark.parametrize("largest", [0, 1])
def test_the_largest_or_smallest_by_their_last_digits(level: str, largest: int) -> None:
    text = f"""g (double[7,40] x) => (double[7,9] v, int64[7,9] i) <int64[1] nine = {{9}}> {{
        v, i = TopK<largest={largest}>(x, nine) }}"""
    rng = np.random.default_rng(largest)
    x = 1 + rng.integers(-20, 20, (7, 40)) * 2.0**-52
    x[0, 3], x[1] = np.inf, -x[1]
    found = run(built(model_of(text)), {"x": x}, level)
    order = np.argsort(-x if largest else x, axis=1, kind="stable")[:, :9]
    np.testing.assert_array_equal(found["i"], order)
    np.testing.assert_array_equal(found["v"], np.take_along_axis(x, order, 1))


@each_float_level
def test_an_end_in_doubles(level: str) -> None:
    """A network of float32 whose last steps are float64."""
    text = """g (float[2,9] x) => (double[2] pitch) <int64[1] last = {1}> { y = MatMul(x, w) l = Cast<to=11>(y)
        p = Softmax(l) e = Mul(p, k) s = ReduceSum<keepdims=0>(e, last) pitch = Exp(s) }"""
    rng = np.random.default_rng(0)
    constants = {"w": rng.standard_normal((9, 20)).astype(np.float32), "k": np.linspace(3, 7, 20)}
    x = {"x": rng.standard_normal((2, 9)).astype(np.float32)}
    assert_right(model_of(text, constants), built(model_of(text, constants)), x, level, rtol=1e-5)


@each_float_level
@pytest.mark.parametrize("modes", [("BRANCH_LEQ",), ("BRANCH_LEQ", "BRANCH_GT"), ("BRANCH_LT", "BRANCH_GTE")])
def test_trees_tell_rows_of_doubles_from_their_thresholds(level: str, modes: tuple[str, ...]) -> None:
    rng = np.random.default_rng(47)
    drawn = Drawn(7, 4, 3, 3, (0, 1, 2), modes, has_tracks=True)
    attributes = {**trees_of(rng, drawn, "class"), "classlabels_int64s": [0, 1, 2]}
    model = row_model("TreeEnsembleClassifier", 3, {"label": None, "y": 3}, attributes, int(ir.DataType.DOUBLE))
    x = rng.integers(-4, 5, (60, 3)) / 4
    x = np.where(rng.random(x.shape) < 0.6, np.nextafter(x, rng.choice([-np.inf, np.inf], x.shape)), x)
    x[rng.random(x.shape) < 0.1] = np.nan
    found = run(built(model), {"x": x}, level)
    wanted = by_onnxruntime(model, {"x": x})  # which adds in float64
    np.testing.assert_array_equal(found["label"], wanted["label"])
    np.testing.assert_allclose(found["y"], wanted["y"], rtol=2e-6, atol=2e-6)


def test_columns_of_doubles_are_scaled_before_they_are_floats() -> None:
    scaler = row_model("Scaler", 3, {"y": 3}, {"offset": [1e8, 0.0, 1.0], "scale": [1e-3, 2.0, 3.0]},
                       int(ir.DataType.DOUBLE))  # fmt: skip
    x = np.array([[1e8 + 0.125, 1.5, -2.0]])
    wanted = outputs_in_float64(ir.to_proto(scaler), {"x": x})["y"]
    for level in FLOAT_LEVELS:
        np.testing.assert_allclose(run(built(scaler), {"x": x}, level)["y"], wanted, rtol=1e-6)


@pytest.mark.parametrize(("node", "reason"), [
    ("MatMul(x, x)", "by something else than a matrix"), ("Sin(x)", "no sin of float64"),
    ("ReduceL2<axes=[1]>(x)", "a ReduceL2 of fp64"), ("CumSum(x, i)", "a CumSum of fp64"),
    ("ScatterElements<reduction=\"add\">(x, j, x)", "a reduction of fp64"), ("LRN<size=3>(x)", "not double"),
    ("ReduceLogSumExp<axes=[0,2]>(x)", "axes that are no neighbours"), ("LeakyRelu(x)", "not double"),
])  # fmt: skip
def test_what_is_refused_says_why(node: str, reason: str) -> None:
    text = f"g (double[3,3,3] x, int64[3,3,3] j) => (double[a,b,c] y) <int64 i = {{1}}> {{ y = {node} }}"
    model = model_of(text, opset=17)
    assert reason in refusal_of(model.graph[0], model, {})
