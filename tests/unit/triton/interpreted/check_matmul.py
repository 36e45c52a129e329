# SPDX-License-Identifier: Apache-2.0
"""Matrix products against float64: batches, broadcasting, transposed and sliced sides, Gemm, epilogues."""

import numpy as np
import pytest
from float64_reference import assert_close, onnx_shape, random_values
from gpu_on_numpy import model_of, run_on_gpu
from hypothesis import given
from hypothesis import strategies as st


@st.composite
def sides(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    m, n, k = (draw(st.integers(1, 40)) for _ in range(3))
    batch = draw(st.lists(st.integers(1, 3), max_size=2).map(tuple))
    left = tuple(draw(st.sampled_from([1, size])) for size in batch)
    right = tuple(draw(st.sampled_from([1, size])) for size in batch)[draw(st.integers(0, len(batch))) :]
    kind = draw(st.sampled_from(["matrices", "matrices", "left vector", "right vector"]))
    return ((k,) if kind == "left vector" else (*left, m, k)), ((k,) if kind == "right vector" else (*right, k, n))


@given(sides(), st.sampled_from(["float32", "float16"]), st.booleans())
def test_matmul_agrees_with_float64(shapes: tuple, dtype: str, tiny_tiles: bool) -> None:
    left, right = (random_values(seed, dtype, *shape) for seed, shape in enumerate(shapes))
    want = np.matmul(left.astype(np.float64), right.astype(np.float64))
    magnitude = np.matmul(abs(left).astype(np.float64), abs(right).astype(np.float64))
    model = model_of(
        f"""<ir_version: 10, opset_import: ["": 20]>
        g ({onnx_shape(dtype, left.shape)} a, {onnx_shape(dtype, right.shape)} b)
        => ({onnx_shape(dtype, want.shape)} y) {{ y = MatMul (a, b) }}"""
    )
    got = run_on_gpu(model, {"a": left, "b": right}, tiny_tiles=tiny_tiles)["y"]
    assert_close(got, want, magnitude, depth=left.shape[-1])


@pytest.mark.parametrize("flip", [(0, 0), (1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("bias", [(), (6,), (5, 1), (5, 6), (1, 1)])
def test_gemm_agrees_with_float64_in_one_launch(flip: tuple[int, int], bias: tuple[int, ...]) -> None:
    left, right = random_values(0, "float32", 5, 7), random_values(1, "float32", 7, 6)
    c = random_values(2, "float32", *bias)
    want = np.maximum(0.5 * (left.astype(np.float64) @ right) + 2.0 * c, 0)
    model = model_of(
        f"""<ir_version: 10, opset_import: ["": 20]>
        g ({onnx_shape("float32", (7, 5) if flip[0] else (5, 7))} a,
           {onnx_shape("float32", (6, 7) if flip[1] else (7, 6))} b, {onnx_shape("float32", bias)} c)
        => (float[5,6] y) {{
          g = Gemm <transA = {flip[0]}, transB = {flip[1]}, alpha = 0.5, beta = 2.0> (a, b, c)
          y = Relu (g)
        }}""",
        {"c": c},
    )
    inputs = {"a": left.T.copy() if flip[0] else left, "b": right.T.copy() if flip[1] else right}
    assert_close(run_on_gpu(model, inputs, num_launches=1)["y"], want, 40.0, depth=7)


def test_attention_takes_transposed_sides_without_a_copy() -> None:
    q, k, v = (random_values(seed, "float32", 2, 5, 3, 8) for seed in range(3))
    model = model_of(
        """<ir_version: 10, opset_import: ["": 20]>
        g (float[2,5,3,8] q, float[2,5,3,8] k, float[2,5,3,8] v, float scale) => (float[2,3,5,8] y) {
          qt = Transpose <perm = [0, 2, 1, 3]> (q)
          kt = Transpose <perm = [0, 2, 3, 1]> (k)
          vt = Transpose <perm = [0, 2, 1, 3]> (v)
          s = MatMul (qt, kt)
          d = Mul (s, scale)
          p = Softmax <axis = -1> (d)
          y = MatMul (p, vt)
        }""",
        {"scale": np.float32(0.25)},
    )
    scores = np.einsum("bqhd,bkhd->bhqk", q.astype(np.float64), k) * 0.25
    weights = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
    want = np.einsum("bhqk,bkhd->bhqd", weights, v)
    got = run_on_gpu(model, {"q": q, "k": k, "v": v}, num_launches=6)["y"]
    assert_close(got, want, 40.0, depth=64)


def test_a_linear_layer_of_many_axes_is_one_launch_with_bias_residual_and_activation() -> None:
    x, w, b = (
        random_values(0, "float16", 2, 3, 4, 16), random_values(1, "float16", 16, 9), random_values(2, "float16", 9),
    )  # fmt: skip
    r = random_values(3, "float16", 2, 3, 4, 9)
    model = model_of(
        """<ir_version: 10, opset_import: ["": 20]>
        g (float16[2,3,4,16] x, float16[16,9] w, float16[9] b, float16[2,3,4,9] r) => (float16[2,3,4,9] y) {
          m = MatMul (x, w)
          s = Add (b, m)
          t = Add (s, r)
          y = Relu (t)
        }""",
        {"w": w, "b": b},
    )
    want = np.maximum(x.astype(np.float64) @ w + b + r, 0)
    assert_close(run_on_gpu(model, {"x": x, "r": r}, num_launches=1)["y"], want, 60.0, depth=16)
