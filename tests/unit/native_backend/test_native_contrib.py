# SPDX-License-Identifier: Apache-2.0
"""Operators of com.microsoft through the rules and the kernel library, as ONNX Runtime computes them."""

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir
import pytest
from native_models import FLOAT_LEVELS, Array, built, by_onnxruntime, contrib_model, reals, run
from nndeploy_native.lowering.table import refusal_of


def assert_close(model: ir.Model, inputs: Mapping[str, Array]) -> None:
    """Checks that ONNX Runtime's outputs come out on every level, but for rounding."""
    wanted, artifact = by_onnxruntime(model, inputs), built(model)
    for level in FLOAT_LEVELS:
        found = run(artifact, inputs, level, threads=2)
        for name, array in wanted.items():
            np.testing.assert_allclose(found[name], array, rtol=2e-5, atol=2e-5 * float(np.abs(array).max()))


@pytest.mark.parametrize("node", [
    "Gelu(x)", "BiasGelu(x, b)", "FastGelu(x)", "FastGelu(x, b)", "QuickGelu(x)", "QuickGelu<alpha=0.7>(x)",
])  # fmt: skip
@pytest.mark.parametrize("constant", [False, True])
def test_gelus(node: str, constant: bool) -> None:
    given = {"x": reals(3, 5, 37) * 3, "b": reals(37, seed=1)}
    constants = {"b": given.pop("b")} if constant or "b)" not in node else {}
    inputs = "float[3,5,37] x" if constants else "float[3,5,37] x, float[37] b"
    text = f"g ({inputs}) => (float[3,5,37] y) {{ y = com.microsoft.{node} }}"
    assert_close(contrib_model(text, constants if "b)" in node else {}), given)


@pytest.mark.parametrize("nodes", [
    "y = com.microsoft.SkipLayerNormalization<epsilon=0.01>(x, s, g)",
    "y = com.microsoft.SkipLayerNormalization(x, s, g, b)", "y = com.microsoft.SkipLayerNormalization(x, s, g, b, c)",
    "y, , , z = com.microsoft.SkipLayerNormalization(x, s, g, b, c)",
    "y, , , z = com.microsoft.SkipLayerNormalization(x, s, g, , c)",
    "y = com.microsoft.SkipSimplifiedLayerNormalization<epsilon=0.01>(x, s, g)",
    "y, , , z = com.microsoft.SkipSimplifiedLayerNormalization(x, s, g, c)",
])  # fmt: skip
def test_skip_layer_normalization(nodes: str) -> None:
    given = {"x": reals(2, 5, 35), "s": reals(2, 5, 35, seed=1)}
    constants = {name: reals(35, seed=seed) for seed, name in enumerate("gbc", 2) if f" {name}" in nodes}
    outputs = "float[2,5,35] y, float[2,5,35] z" if " z" in nodes else "float[2,5,35] y"
    model = contrib_model(f"g (float[2,5,35] x, float[2,5,35] s) => ({outputs}) {{ {nodes} }}", constants)
    assert_close(model, given)


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize(("attributes", "of_a", "of_b"), [
    ("alpha=0.5", (2, 5, 17), (2, 17, 33)), ("transB=1", (2, 5, 17), (33, 17)),
    ("transA=1, alpha=3.0", (2, 3, 17, 5), (3, 17, 33)), ("transA=1, transB=1, alpha=-1.5", (17, 1), (33, 17)),
])  # fmt: skip
def test_fused_matmul(attributes: str, of_a: tuple[int, ...], of_b: tuple[int, ...], constant: bool) -> None:
    given = {"a": reals(*of_a), "b": reals(*of_b, seed=1)}
    constants = {"b": given.pop("b")} if constant else {}
    inputs = ", ".join(f"float[{','.join(map(str, array.shape))}] {name}" for name, array in given.items())
    text = f"g ({inputs}) => (float[{','.join('?' * max(len(of_a), len(of_b)))}] y) {{ m = com.microsoft.FusedMatMul"
    model = contrib_model(f"{text}<{attributes}>(a, b) y = Relu(m) }}", constants)
    assert_close(model, given)


@pytest.mark.parametrize("columns", ["one", "each"])
@pytest.mark.parametrize("element", ["int8", "uint8"])
def test_products_of_bytes_that_become_floats(columns: str, element: str) -> None:
    rng, of = np.random.default_rng(0), (1 if columns == "one" else 33,)
    limits = np.iinfo(element)
    constants = {
        "w": rng.integers(limits.min // 2, limits.max // 2, (19, 33)).astype(element),
        "s": (rng.random(of) / 50).astype(np.float32),
        "z": rng.integers(0, 9, of).astype(element),
        "b": reals(33, seed=3),
    }
    given = {"x": reals(2, 7, 19), "q": rng.integers(0, 255, (2, 7, 19)).astype(np.uint8)}
    given |= {"t": np.array(0.01, np.float32), "o": np.array(77, np.uint8)}
    text = """g (float[2,7,19] x, uint8[2,7,19] q, float t, uint8 o)
        => (float[2,7,33] y, float[2,7,33] v, float[2,7,33] u) {
        y = com.microsoft.DynamicQuantizeMatMul(x, w, s, z, b) u = com.microsoft.MatMulIntegerToFloat(q, w, t, s)
        v = com.microsoft.MatMulIntegerToFloat(q, w, t, s, o, z, b) }"""
    assert_close(contrib_model(text, constants), given)


@pytest.mark.parametrize("columns", ["one", "each"])
@pytest.mark.parametrize("turned", [0, 1])
def test_qgemm(columns: str, turned: int) -> None:
    """Products become bytes or floats, with a bias and without one."""
    rng, of = np.random.default_rng(0), (1 if columns == "one" else 33,)
    constants = {
        "b": rng.integers(-127, 128, (33, 19) if turned else (19, 33)).astype(np.int8),
        "bs": (rng.random(of) / 50 + 0.001).astype(np.float32), "bz": np.zeros(of, np.int8),
        "as": np.array(0.02, np.float32), "az": np.array(100, np.uint8),
        "c": rng.integers(-900, 900, 33).astype(np.int32), "ys": np.array(0.17, np.float32),
        "yz": np.array(90, np.uint8),
    }  # fmt: skip
    attributes = f"<transB={turned}, alpha=1.5>"
    text = f"""g (uint8[7,19] x) => (uint8[7,33] y, float[7,33] v) {{
        y = com.microsoft.QGemm{attributes}(x, as, az, b, bs, bz, c, ys, yz)
        v = com.microsoft.QGemm{attributes}(x, as, az, b, bs, bz) }}"""
    model, given = contrib_model(text, constants), {"x": rng.integers(0, 256, (7, 19)).astype(np.uint8)}
    artifact, wanted = built(model), by_onnxruntime(model, given)
    for level in FLOAT_LEVELS:
        found = run(artifact, given, level, threads=2)
        np.testing.assert_array_equal(found["y"], wanted["y"])
        np.testing.assert_allclose(found["v"], wanted["v"], rtol=1e-5, atol=1e-5)


def test_what_is_refused_says_why() -> None:
    texts = {
        "y, m = com.microsoft.SkipLayerNormalization(x, x, s)": "the mean and deviation of a SkipLayerNorm",
        "y = com.microsoft.FusedMatMul<transBatchA=1>(x, t)": "batches that are transposed",
        "y = com.microsoft.QGemm(x, s, s, t, s, s)": "by something else than a constant matrix",
        "y = com.microsoft.DynamicQuantizeLSTM(x, t, t, , , , , , s, s, s, s)": "of something else than constant bytes",
        "y = com.microsoft.NhwcMaxPool<kernel_shape=[1]>(x)": "no kernel for com.microsoft::NhwcMaxPool",
    }
    for nodes, reason in texts.items():
        text = f"g (float[3,4,4] x, float[3,4,4] t, float[4] s) => (float[3,4,4] y) {{ {nodes} }}"
        model = contrib_model(text)
        assert reason in refusal_of(model.graph[0], model, {})
