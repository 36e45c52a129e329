# SPDX-License-Identifier: Apache-2.0
"""Reductions, softmax and normalisations against float64."""

import numpy as np
import pytest
from float64_reference import EPSILON, assert_close, onnx_shape, random_values
from gpu_on_numpy import model_of, run_on_gpu
from hypothesis import given
from hypothesis import strategies as st

REDUCTIONS = {
    "ReduceL1": lambda x, axis: np.abs(x).sum(axis=axis, keepdims=True), "ReduceL2": lambda x,
    axis: np.sqrt((x**2).sum(axis=axis, keepdims=True)), "ReduceMax": lambda x, axis: x.max(axis=axis, keepdims=True),
    "ReduceMean": lambda x, axis: x.mean(axis=axis, keepdims=True), "ReduceMin": lambda x,
    axis: x.min(axis=axis, keepdims=True), "ReduceSum": lambda x, axis: x.sum(axis=axis, keepdims=True),
    "ReduceSumSquare": lambda x, axis: (x**2).sum(axis=axis, keepdims=True),
}  # fmt: skip


@st.composite
def reductions(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    shape = draw(st.lists(st.integers(1, 7), min_size=1, max_size=4).map(tuple))
    axes = draw(st.sets(st.integers(0, len(shape) - 1), min_size=1))
    return shape, tuple(sorted(axes)), draw(st.integers(0, 1))


@given(reductions(), st.sampled_from(sorted(REDUCTIONS)), st.sampled_from(["float32", "float16"]), st.booleans())
def test_reductions_agree_with_float64(case: tuple, name: str, dtype: str, tiny_tiles: bool) -> None:
    shape, axes, keepdims = case
    x = random_values(3, dtype, *shape)
    want = REDUCTIONS[name](x.astype(np.float64), axes)
    want = want if keepdims else want.squeeze(axes)
    model = model_of(
        f"""<ir_version: 10, opset_import: ["": 20]>
        g ({onnx_shape(dtype, shape)} x, int64[{len(axes)}] axes) => ({onnx_shape(dtype, want.shape)} y) {{
          y = {name} <keepdims = {keepdims}> (x, axes)
        }}""",
        {"axes": np.array(axes, np.int64)},
    )
    got = run_on_gpu(model, {"x": x}, tiny_tiles=tiny_tiles)["y"]
    assert_close(got, want, np.sum(x.astype(np.float64) ** 2) + np.abs(x).sum(), depth=x.size)


@pytest.mark.parametrize("name", ["ReduceMax", "ReduceMin"])
def test_nan_wins_a_reduction(name: str) -> None:
    x = np.array([[1, np.nan, 3], [4, 5, 6]], np.float32)
    model = model_of(
        f"""<ir_version: 10, opset_import: ["": 20]>
        g (float[2,3] x, int64[1] axes) => (float[2,1] y) {{ y = {name} (x, axes) }}""",
        {"axes": np.array([1], np.int64)},
    )
    got = run_on_gpu(model, {"x": x})["y"]
    assert np.isnan(got[0, 0])
    assert got[1, 0] == (6 if name == "ReduceMax" else 4)


@pytest.mark.parametrize(("name", "function"), [("GlobalAveragePool", np.mean), ("GlobalMaxPool", np.max)])
@pytest.mark.parametrize("shape", [(2, 3, 5, 7), (1, 40, 1, 1), (2, 3, 11), (1, 2, 70, 70)])
def test_global_pooling_agrees_with_float64(name: str, function, shape: tuple[int, ...]) -> None:
    x = random_values(0, "float32", *shape)
    want = function(x.astype(np.float64), axis=tuple(range(2, len(shape))), keepdims=True)
    model = model_of(
        f"""<ir_version: 10, opset_import: ["": 20]>
        g ({onnx_shape("float32", shape)} x) => ({onnx_shape("float32", want.shape)} y) {{ y = {name} (x) }}"""
    )
    assert_close(run_on_gpu(model, {"x": x}, num_launches=1)["y"], want, 5.0, depth=8)


@st.composite
def softmax_cases(draw: st.DrawFn) -> tuple[tuple[int, ...], int]:
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple))
    return shape, draw(st.integers(-len(shape), len(shape) - 1))


@given(
    softmax_cases(), st.sampled_from(["Softmax", "LogSoftmax"]), st.sampled_from(["float32", "float16"]), st.booleans()
)
def test_softmax_agrees_with_float64(case: tuple, name: str, dtype: str, tiny_tiles: bool) -> None:
    shape, axis = case
    x = (random_values(5, "float32", *shape) * 20).astype(dtype)
    shifted = x.astype(np.float64) - x.max(axis=axis, keepdims=True)
    total = np.exp(shifted).sum(axis=axis, keepdims=True)
    want = np.exp(shifted) / total if name == "Softmax" else shifted - np.log(total)
    model = model_of(
        f"""<ir_version: 10, opset_import: ["": 20]>
        g ({onnx_shape(dtype, shape)} x) => ({onnx_shape(dtype, shape)} y) {{ y = {name} <axis = {axis}> (x) }}"""
    )
    got = run_on_gpu(model, {"x": x}, tiny_tiles=tiny_tiles, num_launches=1)["y"]
    assert_close(got, want, 1 + np.abs(shifted) * (np.abs(want) if name == "Softmax" else 1), depth=32)


def test_softmax_of_an_old_opset_runs_over_all_axes_from_its_axis() -> None:
    x = random_values(0, "float32", 2, 3, 4)
    model = model_of(
        """<ir_version: 7, opset_import: ["": 11]>
        g (float[2,3,4] x) => (float[2,3,4] y) { y = Softmax (x) }"""
    )
    powers = np.exp(x.astype(np.float64))
    assert_close(run_on_gpu(model, {"x": x})["y"], powers / powers.sum(axis=(1, 2), keepdims=True), 1.0, depth=32)


def test_masked_places_of_a_softmax_are_0_even_where_a_whole_block_is_masked() -> None:
    x = np.full((2, 70), -np.inf, np.float32)
    x[0, 65:], x[1, :3] = 1.0, 2.0
    model = model_of(
        """<ir_version: 10, opset_import: ["": 20]>
        g (float[2,70] x) => (float[2,70] y) { y = Softmax (x) }"""
    )
    want = np.where(np.isinf(x), 0, np.array([[1 / 5], [1 / 3]]))
    assert_close(run_on_gpu(model, {"x": x}, tiny_tiles=True)["y"], want, 1.0)


def normalised(x: np.ndarray, axes: tuple[int, ...], epsilon: float) -> np.ndarray:
    x = x.astype(np.float64)
    return (x - x.mean(axis=axes, keepdims=True)) / np.sqrt(x.var(axis=axes, keepdims=True) + epsilon)


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=3).map(tuple), st.integers(1, 3),
    st.sampled_from(["float32", "float16"]), st.booleans(),
)  # fmt: skip
def test_layer_normalisation_agrees_with_float64(
    shape: tuple[int, ...], num_axes: int, dtype: str, has_shift: bool
) -> None:
    first = max(0, len(shape) - num_axes)
    x, scale, shift = (random_values(seed, dtype, *(shape if seed == 0 else shape[first:])) for seed in range(3))
    epsilon = 0.01
    want = normalised(x, tuple(range(first, len(shape))), epsilon) * scale + (shift if has_shift else 0)
    model = model_of(
        f"""<ir_version: 10, opset_import: ["": 20]>
        g ({onnx_shape(dtype, shape)} x, {onnx_shape(dtype, scale.shape)} s, {onnx_shape(dtype, shift.shape)} b)
        => ({onnx_shape(dtype, shape)} y) {{
          y = LayerNormalization <axis = {first}, epsilon = 0.01> (x, s{", b" if has_shift else ""})
        }}""",
        {"s": scale, "b": shift},
    )
    got = run_on_gpu(model, {"x": x}, num_launches=1)["y"]
    assert_close(got, want, 10 * (1 + np.abs(scale)) * (1 + np.abs(x).max()) / epsilon**0.5, depth=64)


@pytest.mark.parametrize("square", ["Mul (d, d)", "Pow (d, two)"])
@pytest.mark.parametrize("tail", ["", "scale", "scale and shift"])
def test_layer_normalisation_that_is_spelled_out_is_one_launch(square: str, tail: str) -> None:
    x, scale, shift = (
        random_values(0, "float32", 4, 6, 48), random_values(1, "float32", 48), random_values(2, "float32", 48),
    )  # fmt: skip
    lines = {
        "": "y = Div (d, s)",
        "scale": "n = Div (d, s) y = Mul (n, scale)",
        "scale and shift": "n = Div (d, s) m = Mul (scale, n) y = Add (m, shift)",
    }
    model = model_of(
        f"""<ir_version: 10, opset_import: ["": 17]>
        g (float[4,6,48] x, float[48] scale, float[48] shift, float epsilon, float two) => (float[4,6,48] y) {{
          mean = ReduceMean <axes = [-1]> (x)
          d = Sub (x, mean)
          q = {square}
          v = ReduceMean <axes = [-1]> (q)
          e = Add (v, epsilon)
          s = Sqrt (e)
          {lines[tail]}
        }}""",
        {"scale": scale, "shift": shift, "epsilon": np.float32(1e-5), "two": np.float32(2)},
    )
    want = normalised(x, (2,), 1e-5)
    want = want * scale if "scale" in tail else want
    want = want + shift if "shift" in tail else want
    assert_close(run_on_gpu(model, {"x": x}, num_launches=1)["y"], want, 60.0, depth=48)


def test_a_spelled_out_normalisation_that_is_looked_into_stays_apart() -> None:
    x = random_values(0, "float32", 4, 16)
    model = model_of(
        """<ir_version: 10, opset_import: ["": 17]>
        g (float[4,16] x, float epsilon) => (float[4,16] y, float[4,1] v) {
          mean = ReduceMean <axes = [-1]> (x)
          d = Sub (x, mean)
          q = Mul (d, d)
          v = ReduceMean <axes = [-1]> (q)
          e = Add (v, epsilon)
          s = Sqrt (e)
          y = Div (d, s)
        }""",
        {"epsilon": np.float32(1e-5)},
    )
    got = run_on_gpu(model, {"x": x})
    assert_close(got["y"], normalised(x, (1,), 1e-5), 60.0, depth=16)
    assert_close(got["v"], x.astype(np.float64).var(axis=1, keepdims=True), 20.0, depth=16)


def test_instance_and_group_normalisation_scale_by_channel() -> None:
    x, scale, shift = (
        random_values(0, "float32", 2, 6, 5, 4), random_values(1, "float32", 6), random_values(2, "float32", 6),
    )  # fmt: skip
    model = model_of(
        """<ir_version: 10, opset_import: ["": 21]>
        g (float[2,6,5,4] x, float[6] s, float[6] b) => (float[2,6,5,4] i, float[2,6,5,4] g) {
          i = InstanceNormalization <epsilon = 0.001> (x, s, b)
          g = GroupNormalization <num_groups = 3, epsilon = 0.001> (x, s, b)
        }""",
        {"s": scale, "b": shift},
    )
    got = run_on_gpu(model, {"x": x}, tiny_tiles=True, num_launches=2)
    columns = scale[:, None, None].astype(np.float64), shift[:, None, None].astype(np.float64)
    assert_close(got["i"], normalised(x, (2, 3), 1e-3) * columns[0] + columns[1], 60.0, depth=20)
    groups = normalised(x.reshape(2, 3, 40), (2,), 1e-3).reshape(x.shape)
    assert_close(got["g"], groups * columns[0] + columns[1], 60.0, depth=40)


def test_root_mean_square_normalisation_takes_no_mean_off() -> None:
    x, scale = random_values(0, "float32", 3, 33) + 2, random_values(1, "float32", 33)
    model = model_of(
        """<ir_version: 11, opset_import: ["": 23]>
        g (float[3,33] x, float[33] s) => (float[3,33] y) { y = RMSNormalization <epsilon = 0.0001> (x, s) }""",
        {"s": scale},
    )
    want = x / np.sqrt((x.astype(np.float64) ** 2).mean(axis=1, keepdims=True) + 1e-4) * scale
    assert_close(run_on_gpu(model, {"x": x}, num_launches=1)["y"], want, 20.0, depth=33)
    assert EPSILON["float32"] < 1e-6
