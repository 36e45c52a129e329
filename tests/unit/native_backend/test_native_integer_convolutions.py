# SPDX-License-Identifier: Apache-2.0
"""Convolutions of bytes through the rules and the kernel library, exactly as ONNX Runtime has them."""

import numpy as np
import pytest
from native_models import (
    Array,
    assert_as_onnxruntime,
    built,
    dynamic,
    each_float_level,
    kernels_of,
    model_of,
    reals,
    run,
)
from test_native_quantised import assert_same, by_onnxruntime, bytes_of

from nndeploy.values.types import DimRange


@each_float_level
def test_dynamic_sums(level: str) -> None:
    """ConvInteger as dynamic quantisation writes it: its end is a number that comes with the call."""
    text = """g (float[1,8,7,6] x) => (float[1,20,7,6] y) { q, s, z = DynamicQuantizeLinear(x)
        i = ConvInteger<pads=[1,1,1,1]>(q, w, z, o)  f = Cast<to=1>(i)  m = Mul(s, t)  p = Mul(f, m)  y = Add(p, b) }"""
    constants = {
        "w": bytes_of("uint8", 20, 8, 3, 3), "o": np.array(90, np.uint8), "t": np.array(0.01, np.float32),
        "b": reals(1, 20, 1, 1, seed=1),
    }  # fmt: skip
    model, inputs = model_of(text, constants), {"x": reals(1, 8, 7, 6)}
    artifact = built(model)
    assert kernels_of(artifact).index("int8_convolution") == len(kernels_of(artifact)) - 2  # and the output's copy
    wanted = by_onnxruntime(model, inputs)["y"]
    np.testing.assert_allclose(run(artifact, inputs, level)["y"], wanted, rtol=1e-5, atol=1e-5)


LAYERS = """g (float[{n},3,13,12] x) => (float[{n},24,7,6] y) {{
    q = QuantizeLinear(x, xs, xz)  x1 = DequantizeLinear(q, xs, xz)
    w1 = DequantizeLinear<axis=0>(w, ws, wz)  b1 = DequantizeLinear<axis=0>(b, bs)
    h = Conv<strides=[2,2], pads=[1,1,1,1]>(x1, w1, b1)  h1 = {activation}
    h2 = QuantizeLinear(h1, hs, hz)  h3 = DequantizeLinear(h2, hs, hz)
    v1 = DequantizeLinear(v, vs)  m = Conv<pads=[1,1,1,1], group=32>(h3, v1)
    p = QuantizeLinear(m, ps, pz)  p1 = DequantizeLinear(p, ps, pz)
    u1 = DequantizeLinear<axis=0>(u, us)  c = Conv(p1, u1, c1)  r = QuantizeLinear(c, rs, rz)
    y = DequantizeLinear(r, rs, rz) }}"""


@each_float_level
@pytest.mark.parametrize("element", ["uint8", "int8"])
@pytest.mark.parametrize("activation", ["Relu(h)", "Clip(h, low, high)", "Identity(h)", "HardSwish(h)"])
def test_layers_of_what_is_dequantised(level: str, element: str, activation: str) -> None:
    """Layers as quantisers write them are convolutions of bytes, which round to bytes themselves."""
    of_w, of_x = np.abs(reals(32, seed=1)) / 50 + np.float32(1e-3), np.float32(0.03)
    constants = {
        "xs": np.array(of_x), "xz": np.array(20, element), "w": bytes_of("int8", 32, 3, 3, 3), "ws": of_w,
        "wz": np.zeros(32, np.int8), "b": bytes_of("int8", 32, seed=5).astype(np.int32) * 9, "bs": of_w * of_x,
        "low": np.array(0, np.float32), "high": np.array(6, np.float32),
        "hs": np.array(0.07, np.float32), "hz": np.array(3, element),
        "v": bytes_of("int8", 32, 1, 3, 3, seed=6), "vs": np.array(0.007, np.float32),
        "ps": np.array(0.2, np.float32), "pz": np.array(11, element),
        "u": bytes_of("int8", 24, 32, 1, 1, seed=6), "us": np.abs(reals(24, seed=3)) / 90, "c1": reals(24),
        "rs": np.array(0.4, np.float32), "rz": np.array(7, element),
    }  # fmt: skip
    model = model_of(LAYERS.format(activation=activation, n=2), constants)
    artifact = built(model)
    assert "convolution" not in kernels_of(artifact)
    assert [name for name in kernels_of(artifact) if name.startswith("int8")][::2] == [
        "int8_quantise", "int8_convolution",
    ]  # fmt: skip
    inputs = {"x": reals(2, 3, 13, 12)}
    wanted = by_onnxruntime(model, inputs)["y"]
    ranges = {"n": DimRange(1, 5, 1)}
    free = built(dynamic(LAYERS.format(activation=activation, n="n"), ranges, constants), ranges)
    for found in (run(artifact, inputs, level)["y"], run(free, inputs, level, threads=2)["y"]):
        apart = np.abs(found - wanted) / np.float32(0.4)
        assert (apart > 0.01).mean() < 0.06  # a step where a number lies just between two
        assert apart.max() < 4.01  # some of them in what a pixel is made of


BETWEEN = """g (float[1,12,9,8] x) => ({element}[1,20,5,4] y, {element}[1,20,9,8] z) {{
    q = QuantizeLinear(x, xs, xz)  x1 = DequantizeLinear(q, xs, xz)  w1 = DequantizeLinear(w, ws)
    a = Conv<pads=[1,1,1,1]>(x1, w1)  b = QuantizeLinear(a, xs, xz)  c = DequantizeLinear(b, xs, xz)
    u1 = DequantizeLinear(u, ws)  d = Conv(x1, u1)  e = QuantizeLinear(d, ds, dz)  f = DequantizeLinear(e, ds, dz)
    s = Add(c, f)  r = Relu(s)  z = QuantizeLinear(r, zs, zz)  t = DequantizeLinear(z, zs, zz)
    p = MaxPool<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(t)  y = QuantizeLinear(p, zs, zz) }}"""


@each_float_level
@pytest.mark.parametrize("element", ["uint8", "int8"])
def test_what_is_between_stays_bytes(level: str, element: str) -> None:
    """A residual with its activation is one pass over bytes, and so is pooling; exact, as scales are powers of two."""
    constants = {
        "xs": np.array(0.25, np.float32), "xz": np.array(20, element), "ws": np.array(2.0**-6, np.float32),
        "w": bytes_of("int8", 20, 12, 3, 3), "u": bytes_of("int8", 20, 12, 1, 1, seed=3),
        "ds": np.array(0.5, np.float32), "dz": np.array(7, element), "zs": np.array(1.0, np.float32),
        "zz": np.array(3, element),
    }  # fmt: skip
    model = model_of(BETWEEN.format(element=element), constants)
    kernels = kernels_of(built(model))
    assert (kernels.count("int8_line"), kernels.count("int8_pool"), kernels.count("pool")) == (1, 1, 0)
    assert (kernels.count("elementwise"), kernels.count("int8_quantise")) == (0, 1)  # that of the input
    assert_same(model, {"x": reals(1, 12, 9, 8) * 9}, level)


@each_float_level
def test_convolutions_that_stay_floats(level: str) -> None:
    """Dequantised by scales of the wrong axis, or over volumes."""
    text = """g (uint8[1,4,6,6] x, uint8[1,2,3,4,5] d) => (float[1,5,6,6] y, float[1,3,3,4,5] k) {
        a = DequantizeLinear(x, s, o)  b = DequantizeLinear<axis=1>(w, t)  y = Conv(a, b)
        e = DequantizeLinear(d, s, o)  f = DequantizeLinear(u, s)  k = Conv(e, f) }"""
    constants: dict[str, Array] = {
        "s": np.array(0.04, np.float32), "o": np.array(20, np.uint8), "w": bytes_of("int8", 5, 4, 1, 1),
        "t": np.abs(reals(4)), "u": bytes_of("int8", 3, 2, 1, 1, 1),
    }  # fmt: skip
    model = model_of(text, constants)
    inputs = {"x": bytes_of("uint8", 1, 4, 6, 6), "d": bytes_of("uint8", 1, 2, 3, 4, 5)}
    assert_as_onnxruntime(model, run(built(model), inputs, level), inputs, 1e-4, 1e-3)
