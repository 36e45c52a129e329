# SPDX-License-Identifier: Apache-2.0
"""Elementwise operators and chains of them: values, broadcasting, NaN, one launch for a chain."""

import math

import numpy as np
import pytest
from against_oracle import check, random_values, reals
from hypothesis import given
from hypothesis import strategies as st

SPECIAL = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-6, -1e-6, 20.0, -20.0, 100.0, math.inf, -math.inf, math.nan]
UNARY = (
    "Abs", "Ceil", "Celu <alpha = 2.0>", "Cos", "Elu <alpha = 0.5>", "Erf", "Exp", "Floor", "Gelu",
    'Gelu <approximate = "tanh">', "HardSigmoid", "HardSwish", "LeakyRelu <alpha = 0.3>", "Log", "Mish", "Neg",
    "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin", "Softplus", "Softsign", "Sqrt", "Tanh",
    "ThresholdedRelu <alpha = 0.7>",
)  # fmt: skip
AT_INFINITY = ("Mish", "Gelu", "HardSwish", "Softsign")
"""Their formulas give NaN (0 * infinity) at an infinity; ONNX says nothing of it."""


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", UNARY)
def test_an_operator_agrees(name: str, dtype: str) -> None:
    special = [value for value in SPECIAL if not (math.isinf(value) and name.startswith(AT_INFINITY))]
    x = np.concatenate([special, np.linspace(-9, 9, 251), np.linspace(-0.3, 0.3, 61)]).astype(dtype)
    check(f"y = {name} (x)", {"x": x}, num_launches=1, steps=16)


@st.composite
def broadcast_shapes(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    whole = draw(st.lists(st.integers(1, 5), min_size=0, max_size=5).map(tuple))
    first = tuple(draw(st.sampled_from([1, size])) for size in whole)
    second = tuple(draw(st.sampled_from([1, size])) for size in whole)[draw(st.integers(0, len(whole))) :]
    return first, second, np.broadcast_shapes(first, second)


@given(
    broadcast_shapes(), st.sampled_from(["Add", "Div", "Max", "Min", "Mul", "PRelu", "Sub"]),
    st.sampled_from(["float32", "float16"]), st.booleans(),
)  # fmt: skip
def test_broadcasting_agrees(shapes: tuple, name: str, dtype: str, is_constant: bool) -> None:
    first, second, both = shapes
    x, z = random_values(1, dtype, *(both if name == "PRelu" else first)), {"z": random_values(2, dtype, *second)}
    inputs, constants = ({"x": x}, z) if is_constant else ({"x": x, **z}, {})
    check(f"y = {name} (x, z)", inputs, constants, tiny_tiles=True, num_launches=1, steps=16)


@pytest.mark.parametrize("name", ["Max", "Min", "Sum", "Mean"])
def test_operators_of_many_inputs_keep_nan(name: str) -> None:
    values = [reals(3, 4, seed=seed) for seed in range(3)]
    values[0][0, 0] = values[1][1, 1] = values[2][2, 2] = np.nan
    check(f"y = {name} (a, b, c)", dict(zip("abc", values, strict=True)), num_launches=1, steps=16)


@pytest.mark.parametrize("name", ["Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"])
def test_comparisons_give_booleans_that_where_takes(name: str) -> None:
    x, z = reals(5, 7), reals(7, seed=1)
    x[0] = z
    check(
        f"b = {name} (x, z) n = Not (b) y = Where (n, x, z)", {"x": x, "z": z}, outputs="b, y", num_launches=2,
        exact=True,
    )  # fmt: skip


def test_logical_operators_and_isnan() -> None:
    a, x = np.array([True, True, False, False]), np.array([np.nan, 1, np.nan, np.inf], np.float32)
    check("n = IsNaN (x) both = And (a, n) any = Or (a, n)", {"a": a, "x": x}, outputs="both, any")


@pytest.mark.parametrize("operands", ["x, zero, six", "x, minus", "x, , half", "x, minus, half", "x"])
def test_clip_keeps_nan_and_takes_bounds_that_are_left_out(operands: str) -> None:
    constants = {"zero": np.float32(0), "six": np.float32(6), "minus": np.float32(-0.25), "half": np.float32(0.5)}
    used = {name: np.asarray(value) for name, value in constants.items() if name in operands}
    x = np.array([*SPECIAL, -3, 3, 7], np.float32)
    x = x if len(used) == 2 else x[~np.isinf(x)]  # ONNX leaves open what becomes of an infinity that has no bound
    check(f"y = Clip ({operands})", {"x": x}, used, exact=True)


@pytest.mark.parametrize("exponent", [2.0, 3.0, 0.5, -0.5, 1.5, -1.0, -2.0, 0.0, 1.0, 5.0, 8.0])
def test_pow_with_a_small_constant_exponent(exponent: float) -> None:
    x = abs(reals(40)) + np.float32(0.1)
    check("y = Pow (x, e)", {"x": x}, {"e": np.array(exponent, np.float32)}, num_launches=1, steps=16)


@pytest.mark.parametrize(("source", "target"), [
    ("float32", 10), ("float16", 1), ("uint8", 1), ("int8", 10), ("int32", 1), ("int64", 1), ("bool", 1),
    ("float32", 6), ("float32", 7), ("float16", 2), ("float32", 9), ("float32", 11),
])  # fmt: skip
def test_casts_agree(source: str, target: int) -> None:
    x = (np.arange(30) % 2 if source == "bool" else np.linspace(0, 90, 30)).astype(source)
    x[0] = 0
    check(f"y = Cast <to = {target}> (x)", {"x": x}, num_launches=1, exact=True)


def test_a_cast_to_whole_numbers_in_the_middle_of_a_chain_is_really_made() -> None:
    x = np.linspace(-3, 3, 25).astype(np.float32)
    check("d = Add (x, x) i = Cast <to = 6> (d) b = Cast <to = 1> (i) y = Mul (b, b)", {"x": x}, exact=True)


def test_batch_normalisation_is_one_launch() -> None:
    constants = {name: reals(5, seed=seed) for seed, name in enumerate("sbmv", 1)}
    constants["v"] = abs(constants["v"]) + np.float32(0.1)
    body = "y = BatchNormalization <epsilon = 0.001> (x, s, b, m, v)"
    check(body, {"x": reals(2, 5, 3, 3)}, constants, num_launches=1, steps=64, depth=48)


LINKS = {
    "relu": "{t} = Relu ({s})", "gate": "{t}g = Sigmoid ({s}) {t} = Mul ({s}, {t}g)", "scale": "{t} = Mul ({s}, half)",
    "channel": "{t} = Add (c, {s})", "residual": "{t} = Sub ({s}, z)", "gelu": "{t} = Gelu ({s})",
}  # fmt: skip


@given(st.lists(st.sampled_from([*LINKS]), min_size=2, max_size=6))
def test_a_chain_is_one_launch(names: list[str]) -> None:
    values = ["x", *(f"v{number}" for number in range(1, len(names))), "y"]
    lines = [LINKS[name].format(s=values[number], t=values[number + 1]) for number, name in enumerate(names)]
    inputs = {"x": reals(2, 3, 4), "z": reals(2, 3, 4, seed=1)}
    constants = {"c": reals(3, 1, seed=2), "half": np.array(0.5, np.float32)}
    check(" ".join(lines), inputs, constants, num_launches=1, steps=200, depth=184)
