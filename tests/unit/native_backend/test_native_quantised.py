# SPDX-License-Identifier: Apache-2.0
"""Quantised numbers through the rules and the kernel library, exactly as ONNX Runtime has them."""

import ml_dtypes
import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest
from native_models import Array, built, dynamic, each_float_level, model_of, reals, run

from nndeploy.values.types import DimRange


def by_onnxruntime(model: ir.Model, inputs: dict[str, Array]) -> dict[str, Array]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(ir.to_proto(model).SerializeToString(), options)
    names = [one.name for one in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


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
@pytest.mark.parametrize(("element", "zero"), [("uint8", 0), ("uint8", 131), ("int8", 0), ("int8", -128), ("int8", 5)])
@pytest.mark.parametrize("scale", [0.05, 2.0**-4, 0.0171])
def test_quantise(level: str, element: str, zero: int, scale: float) -> None:
    model = model_of(
        f"g (float[3,37] x) => ({element}[3,37] y, float[3,37] z) {{ y = QuantizeLinear(x, s, o)\n"
        "z = DequantizeLinear(y, s, o) }",
        {"s": np.array(scale, np.float32), "o": np.array(zero, element)},
    )
    assert_same(model, {"x": edges(3, 37, scale=scale)}, level)


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
@pytest.mark.parametrize("axis", [0, 1])
def test_scales_of_blocks(level: str, axis: int) -> None:
    shape = (2, 24) if axis == 0 else (6, 8)
    scales = np.abs(reals(*shape, seed=1)) + np.float32(0.01)
    model = model_of(
        f"""g (float[6,24] x) => (uint8[6,24] y, float[6,24] z) {{
        y = QuantizeLinear<axis={axis}, block_size=3>(x, s, o)
        z = DequantizeLinear<axis={axis}, block_size=3>(y, s, o) }}""",
        {"s": scales, "o": np.full(shape, 9, np.uint8)},
    )
    x = np.clip(np.nan_to_num(edges(6, 24)), -9, 9)  # ONNX Runtime makes zeros of what is far beyond the range here
    assert_same(model, {"x": x}, level)


@each_float_level
def test_dequantise(level: str) -> None:
    model = model_of(
        "g (int32[3,17] a, uint8[3,17] b) => (float[3,17] y, float[3,17] z) {\n"
        "y = DequantizeLinear(a, s)  z = DequantizeLinear(b, s, o) }",
        {"s": np.array(0.3, np.float32), "o": np.array(200, np.uint8)},
    )
    numbers = np.random.default_rng(1)
    a = numbers.integers(-(2**31), 2**31 - 1, (3, 17)).astype(np.int32)
    assert_same(model, {"a": a, "b": numbers.integers(0, 256, (3, 17)).astype(np.uint8)}, level)


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
@pytest.mark.parametrize("x", ["usual", "positive", "zeros", "negative"])
def test_dynamic(level: str, x: str) -> None:
    given = {"usual": reals(7, 45), "positive": np.abs(reals(7, 45)) + 1, "zeros": np.zeros((7, 45), np.float32)}
    given["negative"] = -given["positive"]
    text = "g (float[{}] x) => (uint8[{}] y, float s, uint8 o) {{ y, s, o = DynamicQuantizeLinear(x) }}"
    assert_same(model_of(text.format("7,45", "7,45")), {"x": given[x]}, level)
    ranges = {"n": DimRange(1, 9, 1)}
    assert_same(dynamic(text.format("n,45", "n,45"), ranges), {"x": given[x]}, level, ranges)


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
    wanted = by_onnxruntime(model, inputs)["y"]
    np.testing.assert_allclose(run(built(model), inputs, level)["y"], wanted, rtol=1e-4, atol=1e-4)
