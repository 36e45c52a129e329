# SPDX-License-Identifier: Apache-2.0
"""Quantised operators: at most one step apart, mostly none."""

import numpy as np
import pytest
from against_oracle import check, evaluated, text_of
from gpu_on_numpy import model_of, run_on_gpu
from hypothesis import given
from hypothesis import strategies as st

LIMITS = {"int8": (-128, 127), "uint8": (0, 255)}


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_quantise_rounds_halves_to_even_and_saturates(dtype: str, axis: int | None) -> None:
    x = np.array([[-1000.0, -0.75, -0.25, 0.0], [0.25, 0.75, 1.25, 1000.0]], np.float32)
    shape, along = () if axis is None else (x.shape[axis],), f"<axis = {axis or 0}>"
    check(
        f"q = QuantizeLinear {along} (x, s, z) y = DequantizeLinear {along} (q, s, z)", {"x": x},
        {"s": np.full(shape, 0.5, np.float32), "z": np.full(shape, 3, dtype)}, outputs="q, y", opset=19,
        num_launches=2, exact=True,
    )  # fmt: skip


def test_a_bias_of_32_bits_is_dequantised() -> None:
    x = np.array([-(2**20), 0, 7, 2**24], np.int32)
    check("y = DequantizeLinear (x, s)", {"x": x}, {"s": np.array(0.125, np.float32)}, num_launches=1, exact=True)


@given(
    st.sampled_from(["int8", "uint8"]), st.integers(1, 6), st.integers(1, 9), st.booleans(), st.booleans(),
    st.integers(0, 99),
)  # fmt: skip
def test_a_quantised_convolution_is_within_one_step(
    dtype: str, channels: int, outputs: int, per_channel: bool, has_bias: bool, seed: int
) -> None:
    rng, scales = np.random.default_rng(seed), outputs if per_channel else 1
    x = {"x": rng.integers(*LIMITS[dtype], (1, channels, 5, 6)).astype(dtype)}
    constants = {
        "xs": np.array(0.05, np.float32), "xz": np.array(7, dtype),
        "w": rng.integers(-127, 127, (outputs, channels, 3, 3)).astype(np.int8),
        "ws": rng.uniform(0.01, 0.02, scales).astype(np.float32), "wz": np.zeros(scales, np.int8),
        "ys": np.array(0.9, np.float32), "yz": np.array(7, dtype),
        "b": rng.integers(-5000, 5000, outputs).astype(np.int32),
    }  # fmt: skip
    body = f"y = QLinearConv <pads = [1,1,1,1]> (x, xs, xz, w, ws, wz, ys, yz{', b' if has_bias else ''})"
    model = model_of(text_of(body, {**x, **constants}, "y", 19), constants)
    got = run_on_gpu(model, x, num_launches=2)["y"].astype(np.float64)
    want = evaluated(body, {**x, **constants}, "y", 19, is_exact=True)["y"]
    assert abs(got - want).max() <= 1
    assert np.mean(got != want) < 0.02
