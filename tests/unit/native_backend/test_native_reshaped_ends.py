# SPDX-License-Identifier: Apache-2.0
"""What follows a product is its end behind a Reshape too; lines of one number a column are part of constant weights."""

from math import erf

import numpy as np
import pytest
from native_models import Array, built, dynamic, each_float_level, kernels_of, model_of, reals, run

from nndeploy.values.types import DimRange


def gelu(x: Array) -> Array:
    return x * (0.5 + 0.5 * np.vectorize(erf)(x / np.sqrt(2)))


@each_float_level
def test_an_activation_and_a_residual_behind_a_reshape_are_the_end(level: str) -> None:
    text = """g (float[6,20] x, float[2,3,33] r) => (float[2,3,33] z) {
        m = Gemm(x, w, b) s = Reshape(m, sizes) y = Gelu(s) z = Add(y, r) }"""
    x, r, w, b = reals(6, 20), reals(2, 3, 33, seed=1), reals(20, 33, seed=2), reals(33, seed=3)
    artifact = built(model_of(text, {"w": w, "b": b, "sizes": np.array([2, 3, 33])}))
    assert kernels_of(artifact) == ["fully_connected"]
    wanted = gelu(x.astype(np.float64) @ w + b).reshape(2, 3, 33) + r
    np.testing.assert_allclose(run(artifact, {"x": x, "r": r}, level)["z"], wanted, rtol=1e-5, atol=1e-5)


@each_float_level
@pytest.mark.parametrize(("batch", "length"), [(1, 1), (2, 5), (3, 17)])
def test_the_end_of_rows_of_any_number(level: str, batch: int, length: int) -> None:
    text = """g (float[B,S,20] x, float[B,S,4,8] r) => (float[B,S,4,8] z) {
        m = MatMul(x, w) s = Reshape(m, heads) y = Mul(s, c) a = Add(y, t) z = Add(a, r) }"""
    x, r, w = reals(batch, length, 20), reals(batch, length, 4, 8, seed=1), reals(20, 32, seed=2)
    c, t = reals(4, 8, seed=3), reals(4, 8, seed=4)
    constants = {"w": w, "c": c, "t": t, "heads": np.array([0, 0, 4, 8])}
    artifact = built(dynamic(text, {"B": DimRange(1, 4, 2), "S": DimRange(1, 32, 8)}, constants))
    assert kernels_of(artifact) == ["fully_connected"]
    wanted = (x.astype(np.float64) @ w).reshape(batch, length, 4, 8) * c + t + r
    np.testing.assert_allclose(run(artifact, {"x": x, "r": r}, level)["z"], wanted, rtol=1e-5, atol=1e-5)


LINES = {
    "y = Mul(m, s) z = Add(y, t)": lambda m, s, t: m * s + t,
    "y = Add(t, m) z = Mul(s, y)": lambda m, s, t: (m + t) * s,
    "y = Sub(t, m) z = Div(y, s)": lambda m, s, t: (t - m) / s,
    "n = Neg(m) y = Mul(n, s) u = Sub(y, t) z = Relu(u)": lambda m, s, t: np.maximum(-m * s - t, 0),
    "y = Mul(m, s) u = Add(y, t) v = Sigmoid(u) z = Mul(u, v)": lambda m, s, t: (m * s + t) / (1 + np.exp(-m * s - t)),
}


@each_float_level
@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("turned", [0, 1])
@pytest.mark.parametrize("has_bias", [False, True])
def test_lines_are_part_of_weights_and_bias(level: str, line: str, turned: int, has_bias: bool) -> None:
    w, s, t, b = reals(20, 33, seed=2), reals(33, seed=3) + 2, reals(33, seed=4), reals(33, seed=5)
    product = f"Gemm<transB={turned}>(x, w{', b' if has_bias else ''})"
    text = f"g (float[6,20] x) => (float[6,33] z) {{ p = {product} m = Reshape(p, sizes) {line} }}"
    constants = {"w": w.T.copy() if turned else w, "s": s, "t": t, "sizes": np.array([6, 33])}
    artifact = built(model_of(text, constants | ({"b": b} if has_bias else {})))
    assert kernels_of(artifact) == ["fully_connected"]
    x = reals(6, 20)
    wanted = LINES[line](x.astype(np.float64) @ w + (b if has_bias else 0), s, t)
    np.testing.assert_allclose(run(artifact, {"x": x}, level)["z"], wanted, rtol=1e-4, atol=1e-4)


@each_float_level
@pytest.mark.parametrize(
    ("body", "outputs", "count"),
    [("m = MatMul(x, w) y = Mul(m, rows) z = Add(y, t)", "float[6,33] z", 2),
     ("m = MatMul(x, w) y = Mul(m, s) z = Add(y, t)", "float[6,33] z, float[6,33] m", 2),
     ("m = MatMul(x, w) y = Mul(m, s) u = Add(y, t) z = Mul(u, m)", "float[6,33] z", 2),
     ("m = MatMul(x, w) y = Mul(m, large) z = Add(y, t)", "float[6,33] z", 2),
     ("m = MatMul(x, w) p = Reshape(m, few) q = Mul(p, of_few) z = Reshape(q, sizes)", "float[6,33] z", 2)],
    ids=["one number a row", "an output", "two lines", "no finite weights", "columns of other rows"],
)  # fmt: skip
def test_other_ends_give_the_same(level: str, body: str, outputs: str, count: int) -> None:
    """`count` steps: what cannot be part of the weights is an end or a step."""
    constants = {
        "w": reals(20, 33, seed=2), "s": reals(33, seed=3), "t": reals(33, seed=4), "rows": reals(6, 1, seed=5),
    }  # fmt: skip
    constants |= {"large": np.full(33, 3e38, np.float32), "few": np.array([9, 22]), "sizes": np.array([6, 33])}
    constants |= {"of_few": reals(22, seed=6), "rows": reals(6, 1, seed=5)}
    artifact = built(model_of(f"g (float[6,20] x) => ({outputs}) {{ {body} }}", constants))
    x = reals(6, 20) * 1e-2
    found, m = run(artifact, {"x": x}, level)["z"], x.astype(np.float64) @ constants["w"]
    line, by = m * constants["s"] + constants["t"], np.float64(3e38)
    wanted = {
        "rows": m * constants["rows"] + constants["t"], "(u, m)": line * m, "large": m * by + constants["t"],
        "of_few": (m.reshape(9, 22) * constants["of_few"]).reshape(6, 33),
    }  # fmt: skip
    chosen = next((value for key, value in wanted.items() if key in body), line)
    np.testing.assert_allclose(found, chosen, rtol=1e-4, atol=1e-4 if abs(chosen).max() < 1e30 else 1e34)
    assert len(kernels_of(artifact)) == count


@each_float_level
def test_elementwise_steps_meet_behind_a_reshape(level: str) -> None:
    text = """g (float[2,3,4] x, float[2,3,4] y, float[4] c) => (float[6,4] z, float[6,4] u) {
        a = Mul(x, y) b = Reshape(a, sizes) z = Relu(b) p = Mul(x, c) q = Reshape(p, sizes) u = Exp(q) }"""
    artifact = built(model_of(text, {"sizes": np.array([6, 4])}))
    assert kernels_of(artifact) == ["elementwise"] * 2
    x, y, c = reals(2, 3, 4), reals(2, 3, 4, seed=1), reals(4, seed=2)
    found = run(artifact, {"x": x, "y": y, "c": c}, level)
    np.testing.assert_allclose(found["z"], np.maximum(x * y, 0).reshape(6, 4), rtol=1e-6)
    np.testing.assert_allclose(found["u"], np.exp(x * c).reshape(6, 4), rtol=1e-5)
