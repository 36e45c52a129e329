# SPDX-License-Identifier: Apache-2.0
"""Elementwise operators and chains of them against float64: values, broadcasting, NaN, one launch for a chain."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from float64_reference import EPSILON, onnx_shape, random_values
from gpu_on_numpy import model_of, run_on_gpu
from hypothesis import given
from hypothesis import strategies as st

SPECIAL = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-6, -1e-6, 20.0, -20.0, 100.0, math.inf, -math.inf, math.nan]
erf = np.vectorize(math.erf, otypes=[np.float64])


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def elu(x: np.ndarray, alpha: float = 1.0) -> np.ndarray:
    return np.where(x > 0, x, alpha * np.expm1(x))


UNARY: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "Abs": np.abs, "Ceil": np.ceil, "Celu <alpha = 2.0>": lambda x: np.where(x > 0, x, 2 * np.expm1(x / 2)),
    "Cos": np.cos, "Elu <alpha = 0.5>": lambda x: elu(x, 0.5), "Erf": erf, "Exp": np.exp, "Floor": np.floor,
    "Gelu": lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))),
    'Gelu <approximate = "tanh">': lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "HardSigmoid": lambda x: np.clip(0.2 * x + 0.5, 0, 1), "HardSwish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "LeakyRelu <alpha = 0.3>": lambda x: np.where(x < 0, 0.3 * x, x), "Log": np.log,
    "Mish": lambda x: x * np.tanh(np.logaddexp(0, x)), "Neg": np.negative, "Reciprocal": lambda x: 1 / x,
    "Relu": lambda x: np.maximum(x, 0), "Round": np.round,
    "Selu": lambda x: 1.05070102214813232421875 * elu(x, 1.67326319217681884765625), "Sigmoid": sigmoid,
    "Sign": np.sign, "Sin": np.sin, "Softplus": lambda x: np.logaddexp(0, x), "Softsign": lambda x: x / (1 + abs(x)),
    "Sqrt": np.sqrt, "Tanh": np.tanh, "ThresholdedRelu <alpha = 0.7>": lambda x: np.where(x > 0.7, x, 0),
}  # fmt: skip
AT_INFINITY = ("Mish", "Gelu", "HardSwish", "Softsign")
"""Their formulas give NaN (0 * infinity) at an infinity; ONNX says nothing of it."""


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", UNARY)
def test_an_operator_agrees_with_float64(name: str, dtype: str) -> None:
    special = [value for value in SPECIAL if not (math.isinf(value) and name.startswith(AT_INFINITY))]
    x = np.concatenate([special, np.linspace(-9, 9, 251), np.linspace(-0.3, 0.3, 61)]).astype(dtype)
    with np.errstate(all="ignore"):
        want = UNARY[name](x.astype(np.float64))
    model = model_of(
        f"""<ir_version: 10, opset_import: ["": 20]>
        g ({onnx_shape(dtype, x.shape)} x) => ({onnx_shape(dtype, x.shape)} y) {{ y = {_call(name, "x")} }}"""
    )
    assert_same(run_on_gpu(model, {"x": x}, num_launches=1)["y"], want)


def _call(name: str, *operands: str) -> str:
    operator, _, attributes = name.partition(" ")
    return f"{operator} {attributes} ({', '.join(operands)})"


def assert_same(got: np.ndarray, want: np.ndarray, steps: float = 16.0) -> None:
    """Checks to a few units in the last place, or absolutely near 0; NaN, infinities and overflow must match."""
    with np.errstate(over="ignore"):
        rounded = want.astype(got.dtype).astype(np.float64)
    epsilon = EPSILON[got.dtype.name]
    finite = np.isfinite(rounded)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(rounded))
    np.testing.assert_array_equal(got[np.isinf(rounded)].astype(np.float64), rounded[np.isinf(rounded)])
    distance = np.abs(got.astype(np.float64)[finite] - want[finite])
    assert np.all(distance <= steps * epsilon * np.abs(want[finite]) + steps * EPSILON["float32"] + 2.0**-24)


BINARY = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Max": np.maximum, "Min": np.minimum,
    "PRelu": lambda x, slope: np.where(x < 0, x * slope, x),
}  # fmt: skip


@st.composite
def broadcast_shapes(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    whole = draw(st.lists(st.integers(1, 5), min_size=0, max_size=5).map(tuple))
    first = tuple(draw(st.sampled_from([1, size])) for size in whole)
    second = tuple(draw(st.sampled_from([1, size])) for size in whole)[draw(st.integers(0, len(whole))) :]
    return first, second, np.broadcast_shapes(first, second)


@given(broadcast_shapes(), st.sampled_from(sorted(BINARY)), st.sampled_from(["float32", "float16"]), st.booleans())
def test_broadcasting_agrees_with_numpy(shapes: tuple, name: str, dtype: str, is_constant: bool) -> None:
    first, second, whole = shapes
    if name == "PRelu":
        first = whole
    x, z = random_values(1, dtype, *first), random_values(2, dtype, *second)
    model = model_of(
        f"""<ir_version: 10, opset_import: ["": 20]>
        g ({onnx_shape(dtype, first)} x, {onnx_shape(dtype, second)} z) => ({onnx_shape(dtype, whole)} y) {{
          y = {name} (x, z)
        }}""",
        {"z": z} if is_constant else {},
    )
    got = run_on_gpu(model, {"x": x} if is_constant else {"x": x, "z": z}, tiny_tiles=True, num_launches=1)["y"]
    assert_same(got, BINARY[name](x.astype(np.float64), z.astype(np.float64)))


@pytest.mark.parametrize("name", ["Max", "Min", "Sum", "Mean"])
def test_operators_of_many_inputs_keep_nan(name: str) -> None:
    values = [random_values(seed, "float32", 3, 4) for seed in range(3)]
    values[0][0, 0] = values[1][1, 1] = values[2][2, 2] = np.nan
    numpy_name = {"Max": np.max, "Min": np.min, "Sum": np.sum, "Mean": np.mean}[name]
    model = model_of(
        f"""<ir_version: 10, opset_import: ["": 20]>
        g (float[3,4] a, float[3,4] b, float[3,4] c) => (float[3,4] y) {{ y = {name} (a, b, c) }}"""
    )
    got = run_on_gpu(model, dict(zip("abc", values, strict=True)), num_launches=1)["y"]
    assert_same(got, numpy_name(np.stack(values).astype(np.float64), axis=0))


@pytest.mark.parametrize(("name", "function"), [
    ("Less", np.less), ("LessOrEqual", np.less_equal), ("Greater", np.greater), ("GreaterOrEqual", np.greater_equal),
    ("Equal", np.equal),
])  # fmt: skip
def test_comparisons_give_booleans_that_where_takes(name: str, function: Callable) -> None:
    x, z = random_values(0, "float32", 5, 7), random_values(1, "float32", 7)
    x[0] = z
    model = model_of(
        f"""<ir_version: 10, opset_import: ["": 20]>
        g (float[5,7] x, float[7] z) => (bool[5,7] b, float[5,7] y) {{
          b = {name} (x, z)
          n = Not (b)
          y = Where (n, x, z)
        }}"""
    )
    got = run_on_gpu(model, {"x": x, "z": z}, num_launches=2)
    np.testing.assert_array_equal(got["b"], function(x, z))
    np.testing.assert_array_equal(got["y"], np.where(function(x, z), z, x))


def test_logical_operators_and_isnan() -> None:
    a, x = np.array([True, True, False, False]), np.array([np.nan, 1, np.nan, np.inf], np.float32)
    model = model_of(
        """<ir_version: 10, opset_import: ["": 20]>
        g (bool[4] a, float[4] x) => (bool[4] both, bool[4] any) {
          n = IsNaN (x)
          both = And (a, n)
          any = Or (a, n)
        }"""
    )
    got = run_on_gpu(model, {"a": a, "x": x})
    np.testing.assert_array_equal(got["both"], a & np.isnan(x))
    np.testing.assert_array_equal(got["any"], a | np.isnan(x))


@pytest.mark.parametrize(("low", "high"), [(0, 6), (-1, None), (None, 0.5), (-0.25, 0.25), (None, None)])
def test_clip_keeps_nan_and_takes_bounds_that_are_left_out(low: float | None, high: float | None) -> None:
    x = np.array([*SPECIAL, -3, 3, 7], np.float32)
    bounds = {"low": low, "high": high}
    constants = {name: np.float32(value) for name, value in bounds.items() if value is not None}
    operands = ", ".join(["x", "low" if low is not None else "", "high" if high is not None else ""]).rstrip(", ")
    inputs = "".join(f", float {name}" for name in constants)
    model = model_of(
        f"""<ir_version: 10, opset_import: ["": 20]>
        g (float[{x.size}] x{inputs}) => (float[{x.size}] y) {{ y = Clip ({operands}) }}""",
        constants,
    )
    limits = np.finfo(np.float32)
    bottom, top = (limits.min if low is None else low), (limits.max if high is None else high)
    assert_same(run_on_gpu(model, {"x": x})["y"], np.clip(x.astype(np.float64), bottom, top))


@pytest.mark.parametrize("exponent", [2.0, 3.0, 0.5, -0.5, 1.5, -1.0, -2.0, 0.0, 1.0, 5.0, 8.0])
def test_pow_with_a_small_constant_exponent(exponent: float) -> None:
    x = np.abs(random_values(0, "float32", 40)) + np.float32(0.1)
    model = model_of(
        """<ir_version: 10, opset_import: ["": 20]>
        g (float[40] x, float e) => (float[40] y) { y = Pow (x, e) }""",
        {"e": np.float32(exponent)},
    )
    assert_same(run_on_gpu(model, {"x": x}, num_launches=1)["y"], x.astype(np.float64) ** exponent)


@pytest.mark.parametrize(("source", "target"), [
    ("float32", "float16"), ("float16", "float32"), ("uint8", "float32"), ("int8", "float16"), ("int32", "float32"),
    ("int64", "float32"), ("bool", "float32"), ("float32", "int32"), ("float32", "int64"), ("float16", "uint8"),
    ("float32", "bool"), ("float32", "double"),
])  # fmt: skip
def test_casts_agree_with_numpy(source: str, target: str) -> None:
    numpy_target = "float64" if target == "double" else target
    codes = {
        "float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7, "bool": 9, "float16": 10, "double": 11,
    }  # fmt: skip
    x = (np.arange(30) % 2 if source == "bool" else np.linspace(0, 90, 30)).astype(source)
    x[0] = 0
    model = model_of(
        f"""<ir_version: 10, opset_import: ["": 20]>
        g ({onnx_shape(source, [30])} x) => ({onnx_shape(target, [30])} y) {{ y = Cast <to = {codes[target]}> (x) }}"""
    )
    got = run_on_gpu(model, {"x": x}, num_launches=1)["y"]
    assert got.dtype == np.dtype(numpy_target)
    np.testing.assert_array_equal(got, x.astype(numpy_target))


def test_a_cast_to_whole_numbers_in_the_middle_of_a_chain_is_really_made() -> None:
    x = np.linspace(-3, 3, 25).astype(np.float32)
    model = model_of(
        """<ir_version: 10, opset_import: ["": 20]>
        g (float[25] x) => (float[25] y) {
          doubled = Add (x, x)
          whole = Cast <to = 6> (doubled)
          back = Cast <to = 1> (whole)
          y = Mul (back, back)
        }"""
    )
    want = np.trunc(x.astype(np.float64) * 2) ** 2
    assert_same(run_on_gpu(model, {"x": x})["y"], want)


def test_batch_normalisation_is_one_launch() -> None:
    x = random_values(0, "float32", 2, 5, 3, 3)
    scale, shift, mean = (random_values(seed, "float32", 5) for seed in (1, 2, 3))
    variance = np.abs(random_values(4, "float32", 5)) + np.float32(0.1)
    model = model_of(
        """<ir_version: 10, opset_import: ["": 20]>
        g (float[2,5,3,3] x, float[5] s, float[5] b, float[5] m, float[5] v) => (float[2,5,3,3] y) {
          y = BatchNormalization <epsilon = 0.001> (x, s, b, m, v)
        }""",
        {"s": scale, "b": shift, "m": mean, "v": variance},
    )
    column = [a.astype(np.float64)[:, None, None] for a in (scale, shift, mean, variance)]
    want = (x - column[2]) / np.sqrt(column[3] + 0.001) * column[0] + column[1]
    assert_same(run_on_gpu(model, {"x": x}, num_launches=1)["y"], want, steps=64)


@given(st.lists(st.sampled_from(["relu", "gate", "scale", "channel", "residual", "gelu"]), min_size=2, max_size=6))
def test_a_chain_is_one_launch_and_agrees_with_float64(names: list[str]) -> None:
    x, z, c = (
        random_values(0, "float32", 2, 3, 4), random_values(1, "float32", 2, 3, 4), random_values(2, "float32", 3, 1),
    )  # fmt: skip
    lines, want = [], x.astype(np.float64)
    for number, name in enumerate(names):
        source, target = "x" if number == 0 else f"v{number}", f"v{number + 1}"
        match name:
            case "relu":
                lines.append(f"{target} = Relu ({source})")
                want = np.maximum(want, 0)
            case "gate":
                lines.append(f"g{number} = Sigmoid ({source}) {target} = Mul ({source}, g{number})")
                want = want * sigmoid(want)
            case "scale":
                lines.append(f"{target} = Mul ({source}, half)")
                want = want * 0.5
            case "channel":
                lines.append(f"{target} = Add (c, {source})")
                want = want + c
            case "residual":
                lines.append(f"{target} = Sub ({source}, z)")
                want = want - z
            case "gelu":
                lines.append(f"{target} = Gelu ({source})")
                want = 0.5 * want * (1 + erf(want / math.sqrt(2)))
    model = model_of(
        f"""<ir_version: 10, opset_import: ["": 20]>
        g (float[2,3,4] x, float[2,3,4] z, float[3,1] c, float half) => (float[2,3,4] v{len(names)}) {{
          {" ".join(lines)}
        }}""",
        {"c": c, "half": np.float32(0.5)},
    )
    got = run_on_gpu(model, {"x": x, "z": z}, num_launches=1)[f"v{len(names)}"]
    assert_same(got, want, steps=200)
