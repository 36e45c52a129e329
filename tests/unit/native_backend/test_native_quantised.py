# SPDX-License-Identifier: Apache-2.0
"""Quantised numbers through the rules and the kernel library, exactly as ONNX Runtime has them."""

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest
from native_models import (
    Array,
    assert_as_onnxruntime,
    built,
    by_onnxruntime,
    dynamic,
    each_float_level,
    kernels_of,
    model_of,
    reals,
    run,
)

from nndeploy.values.types import DimRange


def assert_same(
    model: ir.Model, inputs: dict[str, Array], level: str, ranges: dict[str, DimRange] | None = None
) -> None:
    wanted = by_onnxruntime(model, inputs)
    artifact = built(model, ranges)
    for threads in (1, 2):
        for name, found in run(artifact, inputs, level, threads=threads).items():
            assert found.dtype == wanted[name].dtype
            np.testing.assert_array_equal(found, wanted[name])


def edges(*shape: int, scale: float = 0.05) -> Array:
    """Returns numbers of which many lie just between two steps of a scale, or beyond the range, or are no numbers."""
    numbers = np.round(reals(*shape) * 60) * np.float32(scale / 2)
    flat = numbers.reshape(-1)
    odd = (1e9, -1e9, 3e38, -3e38, np.inf, -np.inf, np.nan, -0.0, 0.0)
    flat[: len(odd)] = odd[: flat.size]
    return numbers.astype(np.float32)


@each_float_level
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scales_of_an_axis_and_values_as_scales(level: str, axis: int) -> None:
    scales = np.abs(reals((5, 4, 19)[axis], seed=1)) + np.float32(0.01)
    zeros = np.arange(scales.size).astype(np.int8)
    text = f"""g (float[5,4,19] x {{0}}) => (int8[5,4,19] y, float[5,4,19] z) {{{{
        y = QuantizeLinear<axis={axis}>(x, s, o)  z = DequantizeLinear<axis={axis}>(y, s, o) }}}}"""
    assert_same(model_of(text.format(""), {"s": scales, "o": zeros}), {"x": edges(5, 4, 19)}, level)
    given = text.format(f", float[{scales.size}] s, int8[{scales.size}] o")
    assert_same(model_of(given), {"x": edges(5, 4, 19), "s": scales, "o": zeros}, level)


@each_float_level
def test_operators_between_are_one_step(level: str) -> None:
    """Quantised, dequantised, computed with and quantised again: what is stored between is rounded as if it were."""
    model = model_of(
        """g (float[4,33] x, float[4,33] r) => (uint8[4,33] y) { a = QuantizeLinear(x, s, o)
        b = DequantizeLinear(a, s, o)  c = Add(b, r)  d = Relu(c)  y = QuantizeLinear(d, t, o) }""",
        {"s": np.array(0.05, np.float32), "t": np.array(0.02, np.float32), "o": np.array(7, np.uint8)},
    )
    assert_same(model, {"x": edges(4, 33), "r": reals(4, 33, seed=2)}, level)
    assert built(model).log.count("\n") == 1


@each_float_level
def test_constants_are_floats(level: str) -> None:
    """A constant that is dequantised is one of floats for every rule: of 8 bits, of 4, by channels and blocks."""
    numbers = np.random.default_rng(3)
    w = numbers.integers(-128, 128, (12, 20)).astype(np.int8)
    v = numbers.integers(0, 16, (20, 12)).astype(ml_dtypes.uint4)
    model = model_of(
        """g (float[5,12] x) => (float[5,12] y) { w = DequantizeLinear<axis=1>(a, s, o)  b = MatMul(x, w)
        v = DequantizeLinear<axis=0,block_size=5>(c, t)  y = MatMul(b, v) }""",
        {"a": w, "s": np.abs(reals(20)) / 100, "o": np.arange(20).astype(np.int8), "c": v, "t": np.abs(reals(4, 12))},
    )
    inputs = {"x": reals(5, 12)}
    assert_as_onnxruntime(model, run(built(model), inputs, level), inputs, 1e-4)


def bytes_of(element: str, *shape: int, seed: int = 0) -> Array:
    limits = np.iinfo(element)
    return np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape).astype(element)


DYNAMIC = """g (float[{rows},40] x, float[{rows},33] r) => (float[{rows},33] y) {{
    q, s, z = DynamicQuantizeLinear(x)  i = MatMulInteger(q, w, z, o)  f = Cast<to=1>(i)  t = Mul(s, ws)
    m = Mul(f, t)  a = Add(m, b)  e = Relu(a)  y = Add(e, r) }}"""


@each_float_level
@pytest.mark.parametrize("scales", [1, 33])
def test_dynamic_quantisation_is_one_product(level: str, scales: int) -> None:
    """What onnxruntime.quantization writes: the product ends in floats, whose factor comes with the call."""
    constants = {
        "w": bytes_of("int8", 40, 33), "o": bytes_of("int8", scales), "b": reals(33),
        "ws": np.abs(reals(scales, seed=4)) / 100,
    }  # fmt: skip
    inputs = {"x": reals(9, 40), "r": reals(9, 33, seed=2)}
    artifact = built(model_of(DYNAMIC.format(rows=9), constants))
    assert "MatMulInteger" not in artifact.log
    assert len([line for line in artifact.log.splitlines() if line.startswith("elementwise")]) == 4  # the quantiser's
    wanted = by_onnxruntime(model_of(DYNAMIC.format(rows=9), constants), inputs)["y"]
    np.testing.assert_allclose(run(artifact, inputs, level)["y"], wanted, rtol=1e-5, atol=1e-5)
    ranges = {"n": DimRange(1, 20, 1)}
    artifact = built(dynamic(DYNAMIC.format(rows="n"), ranges, constants), ranges)
    np.testing.assert_allclose(run(artifact, inputs, level, threads=2)["y"], wanted, rtol=1e-5, atol=1e-5)


LAYERS = """g (float[6,40] x) => (float[6,20] y) {{
    q = QuantizeLinear(x, xs, xz)  x1 = DequantizeLinear(q, xs, xz)
    w1 = DequantizeLinear<axis={axis}>(w, ws, wz)  b1 = DequantizeLinear<axis=0>(b, bs)
    h = Gemm<transB=1>(x1, w1, b1)  h1 = Relu(h)  h2 = QuantizeLinear(h1, hs, hz)  h3 = DequantizeLinear(h2, hs, hz)
    v1 = DequantizeLinear(v, vs)  m = MatMul(h3, v1)  p = QuantizeLinear(m, ps, pz)
    y = DequantizeLinear(p, ps, pz) }}"""


@each_float_level
@pytest.mark.parametrize("scales", [1, 33])
@pytest.mark.parametrize("element", ["uint8", "int8"])
def test_products_of_what_is_dequantised(level: str, scales: int, element: str) -> None:
    """Layers as quantisers write them are products of bytes, which round to bytes themselves."""
    of_w, of_x = np.abs(reals(scales, seed=1)).astype(np.float32) / 50, np.float32(0.03)
    shape = () if scales == 1 else (33,)
    constants = {
        "xs": np.array(of_x), "xz": np.array(20, element), "w": bytes_of("int8", 33, 40), "ws": of_w.reshape(shape),
        "wz": np.zeros(shape, np.int8), "b": bytes_of("int8", 33, seed=5).astype(np.int32) * 9,
        "bs": (of_w * of_x).reshape(shape), "hs": np.array(0.3, np.float32), "hz": np.array(3, element),
        "v": bytes_of("int8", 33, 20, seed=6), "vs": np.array(0.017, np.float32),
        "ps": np.array(0.7, np.float32), "pz": np.array(11, element),
    }  # fmt: skip
    model = model_of(LAYERS.format(axis=0), constants)
    artifact = built(model)
    assert kernels_of(artifact) == ["int8_quantise", "int8_connected", "int8_connected", "elementwise"]
    inputs = {"x": reals(6, 40)}
    found, wanted = run(artifact, inputs, level)["y"], by_onnxruntime(model, inputs)["y"]
    apart = np.abs(found - wanted) / np.float32(0.7)
    assert apart.max() < 1.01  # a step where a number lies just between two
    assert (apart > 0.01).mean() < 0.03


@each_float_level
def test_products_that_stay_floats(level: str) -> None:
    """Dequantised by blocks or by rows of the weights, or of values alone."""
    text = """g (float[6,12] x, uint8[6,12] u, int8[12,9] c) => (float[6,9] y, float[6,9] z) {
        q = QuantizeLinear(x, s, o)  a = DequantizeLinear(q, s, o)  b = DequantizeLinear<axis=0>(w, t)
        y = MatMul(a, b)  d = DequantizeLinear(u, s, o)  e = DequantizeLinear(c, s)  z = MatMul(d, e) }"""
    constants = {
        "s": np.array(0.04, np.float32), "o": np.array(20, np.uint8), "w": bytes_of("int8", 12, 9),
        "t": np.abs(reals(12)),
    }  # fmt: skip
    model = model_of(text, constants)
    inputs = {"x": reals(6, 12), "u": bytes_of("uint8", 6, 12), "c": bytes_of("int8", 12, 9)}
    assert_as_onnxruntime(model, run(built(model), inputs, level), inputs, 1e-4, 1e-3)
