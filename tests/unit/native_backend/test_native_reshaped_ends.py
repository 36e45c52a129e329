# SPDX-License-Identifier: Apache-2.0
"""What follows a product is its end behind a Reshape too; lines of one number a column are part of constant weights."""

import numpy as np
import pytest
from native_models import assert_right, built, dynamic, each_float_level, kernels_of, model_of, reals

from nndeploy.values.types import DimRange

CLOSE = {"rtol": 1e-4, "atol": 1e-4}


@each_float_level
def test_an_activation_and_a_residual_behind_a_reshape_are_the_end(level: str) -> None:
    text = """g (float[6,20] x, float[2,3,33] r) => (float[2,3,33] z) {
        m = Gemm(x, w, b) s = Reshape(m, sizes) y = Gelu(s) z = Add(y, r) }"""
    constants = {"w": reals(20, 33, seed=2), "b": reals(33, seed=3), "sizes": np.array([2, 3, 33])}
    model = model_of(text, constants)
    artifact = built(model)
    assert kernels_of(artifact) == ["fully_connected"]
    assert_right(model, artifact, {"x": reals(6, 20), "r": reals(2, 3, 33, seed=1)}, level)


@each_float_level
def test_the_end_of_rows_of_any_number(level: str) -> None:
    text = """g (float[B,S,20] x, float[B,S,4,8] r) => (float[B,S,4,8] z) {
        m = MatMul(x, w) s = Reshape(m, heads) y = Mul(s, c) a = Add(y, t) z = Add(a, r) }"""
    constants = {"w": reals(20, 32, seed=2), "c": reals(4, 8, seed=3), "t": reals(4, 8, seed=4)}
    ranges = {"B": DimRange(1, 4, 2), "S": DimRange(1, 32, 8)}
    model = dynamic(text, ranges, constants | {"heads": np.array([0, 0, 4, 8])})
    artifact = built(model)
    assert kernels_of(artifact) == ["fully_connected"]
    for batch, length in ((1, 1), (2, 5), (3, 17)):
        inputs = {"x": reals(batch, length, 20), "r": reals(batch, length, 4, 8, seed=1)}
        assert_right(model, artifact, inputs, level)


@each_float_level
@pytest.mark.parametrize("line", [
    "y = Mul(m, s) z = Add(y, t)", "y = Add(t, m) z = Mul(s, y)", "y = Sub(t, m) z = Div(y, s)",
    "n = Neg(m) y = Mul(n, s) u = Sub(y, t) z = Relu(u)", "y = Mul(m, s) u = Add(y, t) v = Sigmoid(u) z = Mul(u, v)",
])  # fmt: skip
@pytest.mark.parametrize("turned", [0, 1])
@pytest.mark.parametrize("has_bias", [False, True])
def test_lines_are_part_of_weights_and_bias(level: str, line: str, turned: int, has_bias: bool) -> None:
    product = f"Gemm<transB={turned}>(x, w{', b' if has_bias else ''})"
    text = f"g (float[6,20] x) => (float[6,33] z) {{ p = {product} m = Reshape(p, sizes) {line} }}"
    constants = {
        "w": reals(*((33, 20) if turned else (20, 33)), seed=2), "s": reals(33, seed=3) + 2, "t": reals(33, seed=4),
        "sizes": np.array([6, 33]), "b": reals(33, seed=5),
    }  # fmt: skip
    model = model_of(text, constants if has_bias else {name: a for name, a in constants.items() if name != "b"})
    artifact = built(model)
    assert kernels_of(artifact) == ["fully_connected"]
    assert_right(model, artifact, {"x": reals(6, 20)}, level, **CLOSE)


@each_float_level
@pytest.mark.parametrize(("body", "outputs"), [
    ("m = MatMul(x, w) y = Mul(m, rows) z = Add(y, t)", "float[6,33] z"),
    ("m = MatMul(x, w) y = Mul(m, s) z = Add(y, t)", "float[6,33] z, float[6,33] m"),
    ("m = MatMul(x, w) y = Mul(m, s) u = Add(y, t) z = Mul(u, m)", "float[6,33] z"),
    ("m = MatMul(x, w) y = Mul(m, large) z = Add(y, t)", "float[6,33] z"),
    ("m = MatMul(x, w) p = Reshape(m, few) q = Mul(p, of_few) z = Reshape(q, sizes)", "float[6,33] z"),
], ids=["one number a row", "an output", "two lines", "no finite weights", "columns of other rows"])  # fmt: skip
def test_other_ends_give_the_same(level: str, body: str, outputs: str) -> None:
    """What cannot be part of the weights is an end or a step."""
    constants = {
        "w": reals(20, 33, seed=2), "s": reals(33, seed=3), "t": reals(33, seed=4), "rows": reals(6, 1, seed=5),
        "large": np.full(33, 3e38, np.float32), "few": np.array([9, 22]), "sizes": np.array([6, 33]),
        "of_few": reals(22, seed=6),
    }  # fmt: skip
    model = model_of(f"g (float[6,20] x) => ({outputs}) {{ {body} }}", constants)
    artifact = built(model)
    assert len(kernels_of(artifact)) == 2
    inputs = {"x": reals(6, 20) * np.float32(1e-2)}
    assert_right(model, artifact, inputs, level, rtol=1e-4, atol=1e34 if "large" in body else 1e-4)


@each_float_level
def test_elementwise_steps_meet_behind_a_reshape(level: str) -> None:
    text = """g (float[2,3,4] x, float[2,3,4] y, float[4] c) => (float[6,4] z, float[6,4] u) {
        a = Mul(x, y) b = Reshape(a, sizes) z = Relu(b) p = Mul(x, c) q = Reshape(p, sizes) u = Exp(q) }"""
    model = model_of(text, {"sizes": np.array([6, 4])})
    artifact = built(model)
    assert kernels_of(artifact) == ["elementwise"] * 2
    assert_right(model, artifact, {"x": reals(2, 3, 4), "y": reals(2, 3, 4, seed=1), "c": reals(4, seed=2)}, level)
