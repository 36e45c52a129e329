# SPDX-License-Identifier: Apache-2.0
"""Expressions: the vector functions against numpy in float64, and substitution."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from native_models import Array, built, each_float_level, model_of, run
from nndeploy_native.expressions import const, operand, size_of, substituted

FUNCTIONS: dict[str, tuple[str, Callable[[Array], Array], float]] = {
    "Exp": ("", np.exp, 3e-7),
    "Log": ("", np.log, 3e-7),
    "Sigmoid": ("", lambda x: 1 / (1 + np.exp(-x)), 5e-7),
    "Tanh": ("", np.tanh, 5e-7),
    "Erf": ("", np.vectorize(math.erf, otypes=[np.float64]), 5e-7),
    "Softplus": ("", lambda x: np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0), 1e-6),
    "Sqrt": ("", np.sqrt, 3e-7),
    "Floor": ("", np.floor, 0),
    "Ceil": ("", np.ceil, 0),
    "Reciprocal": ("", lambda x: 1 / x, 3e-7),
}
"""Operator, its attributes, what numpy says, and the largest relative difference (a few units of 2^-24)."""
INPUTS = np.array([-95, -30, -5.5, -1, -0.4, -0.25, -1e-3, 1e-3, 0.25, 0.39, 0.7, 1, 2.5, 9, 30, 88], np.float32)


@each_float_level
def test_functions_agree_with_numpy(level: str) -> None:
    outputs = ", ".join(f"float[16] {name}_y" for name in FUNCTIONS)
    body = " ".join(f"{name}_y = {name}(x)" for name in FUNCTIONS)
    found = run(built(model_of(f"g (float[16] x) => ({outputs}) {{ {body} }}")), {"x": INPUTS}, level)
    with np.errstate(all="ignore"):
        for name, (_, function, tolerance) in FUNCTIONS.items():
            wanted = function(INPUTS.astype(np.float64))
            np.testing.assert_allclose(found[f"{name}_y"], wanted, rtol=tolerance, atol=1e-38, err_msg=name)


@each_float_level
@pytest.mark.parametrize("exponent", [-2.0, -1.0, -0.5, 0.5, 2.0, 3.0, 1.5, -0.3])
def test_powers_agree_with_numpy(exponent: float, level: str) -> None:
    model = model_of("g (float[16] x) => (float[16] y) { y = Pow(x, e) }", {"e": np.array(exponent, np.float32)})
    x = np.abs(INPUTS)
    np.testing.assert_allclose(run(built(model), {"x": x}, level)["y"], x.astype(np.float64) ** exponent, rtol=3e-7)


@each_float_level
def test_special_values(level: str) -> None:
    text = """g (float[4] x) => (float[4] r, float[4] e, float[4] m, float[4] s, float[4] l) <float z = {0}> {
        r = Relu(x) e = Exp(x) m = Max(z, x) s = Sigmoid(x) l = Log(x) }"""
    x = np.array([np.nan, np.inf, -np.inf, 0], np.float32)
    found = run(built(model_of(text)), {"x": x}, level)
    np.testing.assert_array_equal(found["r"], [np.nan, np.inf, 0, 0])
    np.testing.assert_array_equal(found["e"], [np.nan, np.inf, 0, 1])
    np.testing.assert_array_equal(found["m"], [np.nan, np.inf, 0, 0])
    np.testing.assert_array_equal(found["s"], [np.nan, 1, 0, 0.5])
    np.testing.assert_array_equal(found["l"], [np.nan, np.inf, np.nan, -np.inf])


def test_substitution_replaces_operands() -> None:
    outer = ("mul", operand(0), ("add", operand(1), const(2)))
    assert substituted(outer, {0: ("relu", operand(5)), 1: operand(0)}) == (
        "mul",
        ("relu", operand(5)),
        ("add", operand(0), const(2)),
    )
    assert size_of(outer) == 5


@each_float_level
@pytest.mark.parametrize("value", [0.1, -0.0, float("inf"), float("-inf"), float("nan"), 1e-40])
def test_constants_keep_their_bits(value: float, level: str) -> None:
    model = model_of("g (float[2] x) => (float[2] y) { y = Add(x, c) }", {"c": np.array(value, np.float32)})
    found = run(built(model), {"x": np.zeros(2, np.float32)}, level)["y"]
    np.testing.assert_array_equal(found, np.full(2, np.float32(value) + 0))
