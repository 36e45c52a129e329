# SPDX-License-Identifier: Apache-2.0
"""Quantised operators against exact arithmetic on whole numbers: at most one step apart, mostly none."""

import numpy as np
import pytest
from float64_reference import convolution
from gpu_on_numpy import model_of, run_on_gpu
from hypothesis import given
from hypothesis import strategies as st

LIMITS = {"int8": (-128, 127), "uint8": (0, 255)}


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_quantise_rounds_halves_to_even_and_saturates(dtype: str, axis: int | None) -> None:
    x = np.array([[-1000.0, -0.75, -0.25, 0.0], [0.25, 0.75, 1.25, 1000.0]], np.float32)
    shape = () if axis is None else (x.shape[axis],)
    scale, zero = np.full(shape, 0.5, np.float32), np.full(shape, 3, dtype)
    model = model_of(
        f"""<ir_version: 10, opset_import: ["": 19]>
        g (float[2,4] x, {_text("float", shape)} s, {_text(dtype, shape)} z) => ({dtype}[2,4] q, float[2,4] y) {{
          q = QuantizeLinear <axis = {axis or 0}> (x, s, z)
          y = DequantizeLinear <axis = {axis or 0}> (q, s, z)
        }}""",
        {"s": scale, "z": zero},
    )
    got = run_on_gpu(model, {"x": x}, num_launches=2)
    want = np.clip(np.round(x.astype(np.float64) / 0.5) + 3, *LIMITS[dtype])
    np.testing.assert_array_equal(got["q"], want.astype(dtype))
    np.testing.assert_array_equal(got["y"], ((want - 3) * 0.5).astype(np.float32))


def _text(dtype: str, shape: tuple[int, ...]) -> str:
    return f"{dtype}[{shape[0]}]" if shape else dtype


def test_a_bias_of_32_bits_is_dequantised() -> None:
    x = np.array([-(2**20), 0, 7, 2**24], np.int32)
    model = model_of(
        """<ir_version: 10, opset_import: ["": 19]>
        g (int32[4] x, float s) => (float[4] y) { y = DequantizeLinear (x, s) }""",
        {"s": np.float32(0.125)},
    )
    np.testing.assert_array_equal(run_on_gpu(model, {"x": x}, num_launches=1)["y"], x.astype(np.float32) * 0.125)


@given(
    st.sampled_from(["int8", "uint8"]), st.integers(1, 6), st.integers(1, 9), st.booleans(), st.booleans(),
    st.integers(0, 99),
)  # fmt: skip
def test_a_quantised_convolution_is_within_one_step(
    dtype: str, channels: int, outputs: int, per_channel: bool, has_bias: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(*LIMITS[dtype], (1, channels, 5, 6)).astype(dtype)
    weights = rng.integers(-127, 127, (outputs, channels, 3, 3)).astype(np.int8)
    bias = rng.integers(-5000, 5000, outputs).astype(np.int32)
    weight_scale = rng.uniform(0.01, 0.02, outputs if per_channel else 1).astype(np.float32)
    x_scale, y_scale, zero = np.float32(0.05), np.float32(0.9), np.array(7, dtype)
    constants = {
        "xs": x_scale, "xz": zero, "w": weights, "ws": weight_scale, "wz": np.zeros(weight_scale.size, np.int8),
        "ys": y_scale, "yz": zero, "b": bias,
    }  # fmt: skip
    n = weight_scale.size
    model = model_of(
        f"""<ir_version: 10, opset_import: ["": 19]>
        g ({dtype}[1,{channels},5,6] x, float xs, {dtype} xz, int8[{outputs},{channels},3,3] w, float[{n}] ws,
           int8[{n}] wz, float ys, {dtype} yz, int32[{outputs}] b) => ({dtype}[1,{outputs},5,6] y) {{
          y = QLinearConv <pads = [1,1,1,1]> (x, xs, xz, w, ws, wz, ys, yz{", b" if has_bias else ""})
        }}""",
        constants,
    )
    total = convolution(x.astype(np.float64) - 7, weights, pads=(1, 1, 1, 1))
    total = total + bias[:, None, None] if has_bias else total
    real = total * float(x_scale) * np.broadcast_to(weight_scale.astype(np.float64), outputs)[:, None, None]
    want = np.clip(np.round(real / float(y_scale)) + 7, *LIMITS[dtype])
    got = run_on_gpu(model, {"x": x}, num_launches=2)["y"].astype(np.float64)
    assert np.abs(got - want).max() <= 1
    assert np.mean(got != want) < 0.02
