# SPDX-License-Identifier: Apache-2.0
"""What quantisers write around movement, pooling and activations stays bytes, and is what ONNX Runtime computes."""

import numpy as np
import pytest
from native_models import built, dynamic, each_float_level, kernels_of, model_of, reals, run
from nndeploy_native.transforms.bytes_through_movement import BytesThroughMovement
from test_native_quantised import assert_same, by_onnxruntime, bytes_of

from nndeploy.values.types import DimRange

CONSTANTS = {
    "s": np.array(0.05, np.float32), "z": np.array(120, np.uint8), "t": np.array(0.031, np.float32),
    "k": np.array(7, np.uint8), "w": bytes_of("int8", 16, 16, 3, 3), "v": bytes_of("int8", 24, 16, 1, 1, seed=1),
    "ws": np.array(0.002, np.float32), "u": bytes_of("int8", 16, 5, 2, 2, seed=2),
}  # fmt: skip
SPLIT = """g (uint8[1,16,6,5] x) => (uint8[1,24,12,10] y, float[1,8,6,5] p) <
    float[4] by = {1.0,1.0,2.0,2.0}, int64[2] parts = {8,8}> {
    a = DequantizeLinear(x, s, z)  c, d = Split<axis=1>(a, parts)
    q = QuantizeLinear(c, s, z)  c1 = DequantizeLinear(q, s, z)
    r = QuantizeLinear(d, s, z)  d1 = DequantizeLinear(r, s, z)
    e = MaxPool<kernel_shape=[3,3], pads=[1,1,1,1]>(d1)  e0 = QuantizeLinear(e, s, z)  e1 = DequantizeLinear(e0, s, z)
    f = Concat<axis=1>(c1, d1, e1)  f0 = QuantizeLinear(f, t, k)  f1 = DequantizeLinear(f0, t, k)
    h = Resize<mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor">(f1, , by)
    y = QuantizeLinear(h, t, k)  p = Abs(d1) }"""
SILU = """g (uint8[{n},16,6,5] x) => ({to}[{n},24,6,5] y) {{
    a = DequantizeLinear(x, s, z)  b = DequantizeLinear(w, ws)  c = Conv<pads=[1,1,1,1]>(a, b)
    d = QuantizeLinear(c, t, z)  e = DequantizeLinear(d, t, z)  f = DequantizeLinear(d, t, z)  g = Sigmoid(e)
    h = QuantizeLinear(g, o, n)  i = DequantizeLinear(h, o, n)  j = Mul(f, i)  l = QuantizeLinear(j, t, k)
    m = DequantizeLinear(l, t, k)  b2 = DequantizeLinear(v, ws)  c2 = Conv(m, b2)  q = QuantizeLinear(c2, t, z)
    r = DequantizeLinear(q, t, z)  u2 = {function}(r)  y = QuantizeLinear(u2, t, {zero}) }}"""


@each_float_level
def test_parts_pools_and_copies_are_bytes(level: str) -> None:
    """Two parts that are put together again are what was split; nothing is made of floats but what is asked for."""
    model = model_of(SPLIT, CONSTANTS)
    assert_same(model, {"x": bytes_of("uint8", 1, 16, 6, 5)}, level)
    kernels = kernels_of(built(model))
    assert kernels.count("elementwise") == 1
    assert "pool" not in kernels
    assert "resize" not in kernels


@each_float_level
@pytest.mark.parametrize("function", ["Sigmoid", "HardSwish", "LeakyRelu", "Tanh"])
@pytest.mark.parametrize("to", ["uint8", "int8"])
def test_activations_between_bytes_are_tables(level: str, function: str, to: str) -> None:
    """They end what makes the byte; one to bytes of another sign is a step of its own."""
    constants = CONSTANTS | {
        "o": np.array(1 / 255, np.float32), "n": np.array(0, np.uint8), "kk": np.array(-3, np.int8),
    }  # fmt: skip
    text = SILU.format(n=1, function=function, to=to, zero="k" if to == "uint8" else "kk")
    model, inputs = model_of(text, constants), {"x": bytes_of("uint8", 1, 16, 6, 5, seed=3)}
    wanted = by_onnxruntime(model, inputs)["y"].astype(np.int32)
    artifact = built(model)
    for threads in (1, 2):
        apart = np.abs(run(artifact, inputs, level, threads=threads)["y"].astype(np.int32) - wanted)
        assert apart.max() <= 1  # where a sum lies just between two bytes
        assert (apart > 0).mean() < 0.02
    kernels = [kernel for kernel in kernels_of(artifact) if kernel not in ("channels_last", "view_copy")]
    assert kernels == ["int8_convolution", "int8_connected", *(["int8_table"] if to == "int8" else [])]
    ranges = {"n": DimRange(1, 4, 1)}
    open_text = SILU.format(n="n", function=function, to=to, zero="k" if to == "uint8" else "kk")
    again = run(built(dynamic(open_text, ranges, constants), ranges), inputs, level)["y"]
    np.testing.assert_array_equal(again, run(artifact, inputs, level)["y"])


@each_float_level
def test_depthwise_sums_become_what_a_table_says(level: str) -> None:
    text = """g (uint8[1,70,9,7] x) => (uint8[1,70,9,7] y) { a = DequantizeLinear(x, s, z)  b = DequantizeLinear(w, ws)
        c = Conv<group=70, pads=[1,1,1,1]>(a, b)  d = QuantizeLinear(c, t, z)  e = DequantizeLinear(d, t, z)
        f = Tanh(e)  y = QuantizeLinear(f, t, k) }"""
    constants = CONSTANTS | {"w": bytes_of("int8", 70, 1, 3, 3)}
    model, inputs = model_of(text, constants), {"x": bytes_of("uint8", 1, 70, 9, 7, seed=3)}
    apart = run(built(model), inputs, level)["y"].astype(np.int32) - by_onnxruntime(model, inputs)["y"]
    assert np.abs(apart).max() <= 1
    assert (apart != 0).mean() < 0.02


@each_float_level
@pytest.mark.parametrize("bias", ["", ", b"])
@pytest.mark.parametrize("columns", [1, 5])
def test_transposed_convolutions_whose_windows_lie_side_by_side(level: str, bias: str, columns: int) -> None:
    text = f"""g (uint8[2,16,3,4] x) => (uint8[2,5,6,8] y) {{ a = DequantizeLinear(x, s, z)
        b0 = DequantizeLinear<axis=1>(u, us)  c = ConvTranspose<strides=[2,2]>(a, b0{bias})
        y = QuantizeLinear(c, t, z) }}"""
    scales = np.abs(reals(columns, seed=1)).astype(np.float32) / 90
    constants = CONSTANTS | {"us": scales.reshape(() if columns == 1 else (5,)), "b": reals(5)}
    model, inputs = model_of(text, constants), {"x": bytes_of("uint8", 2, 16, 3, 4)}
    artifact = built(model)
    assert "int8_connected" in kernels_of(artifact)
    assert "transposed" not in kernels_of(artifact)
    apart = run(artifact, inputs, level)["y"].astype(np.int32) - by_onnxruntime(model, inputs)["y"]
    assert np.abs(apart).max() <= 1
    assert (apart != 0).mean() < 0.02


@each_float_level
@pytest.mark.parametrize("element", ["uint8", "int8"])
def test_pools_of_bytes(level: str, element: str) -> None:
    text = f"""g ({element}[2,19,7,6] x) => ({element}[2,19,4,3] y) {{
        y = MaxPool<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(x) }}"""
    assert_same(model_of(text), {"x": bytes_of(element, 2, 19, 7, 6)}, level)


@each_float_level
@pytest.mark.parametrize("element", ["uint8", "int8"])
@pytest.mark.parametrize("channels", [3, 24, 100])
@pytest.mark.parametrize("attributes", ["kernel_shape=[2,2], strides=[2,2]", "kernel_shape=[5,5], pads=[2,2,2,2]",
                                        "kernel_shape=[1,3], strides=[1,3], dilations=[1,2]"])  # fmt: skip
def test_pools_of_bytes_of_any_channels(level: str, element: str, channels: int, attributes: str) -> None:
    sizes = {"k": (4, 3), "p": (8, 7), "d": (8, 1)}[
        "p" if "pads" in attributes else "d" if "dil" in attributes else "k"
    ]
    shape = f"2,{channels},{sizes[0]},{sizes[1]}"
    text = f"g ({element}[2,{channels},8,7] x) => ({element}[{shape}] y) {{ y = MaxPool<{attributes}>(x) }}"
    assert_same(model_of(text), {"x": bytes_of(element, 2, channels, 8, 7)}, level)


GATED = """g (uint8[{n},16,8,4] x) => ({to}[{n},{c},8,4] y) {{ a = DequantizeLinear(x, e, z)
    b = DequantizeLinear(w, e)  c0 = Conv<pads=[1,1,1,1]>(a, b)  c = QuantizeLinear(c0, h, {zero})
    d = DequantizeLinear(c, h, {zero})  m = GlobalAveragePool(d)  s = Mul(m, gates)  g = Mul({order})
    y = QuantizeLinear(g, f, {zero}) }}"""


@each_float_level
@pytest.mark.parametrize("to", ["uint8", "int8"])
@pytest.mark.parametrize("channels", [5, 16, 70])
def test_gates_of_channels_are_passes_over_bytes(level: str, to: str, channels: int) -> None:
    """The mean of an image and what it scales; exact, as scales and the number of pixels are powers of two."""
    constants = {
        "z": np.array(120, np.uint8), "e": np.array(0.25, np.float32), "f": np.array(2.0, np.float32),
        "h": np.array(64.0, np.float32), "w": bytes_of("int8", channels, 16, 3, 3), "k": np.array(7, np.uint8),
        "kk": np.array(-3, np.int8),
        "gates": 2.0 ** np.arange(-3, channels - 3).clip(-3, 2).astype(np.float32).reshape(1, -1, 1, 1),
    }  # fmt: skip
    zero, order = ("k", "d, s") if to == "uint8" else ("kk", "s, d")
    text = GATED.format(n=2, to=to, c=channels, zero=zero, order=order)
    model, inputs = model_of(text, constants), {"x": bytes_of("uint8", 2, 16, 8, 4, seed=3)}
    kernels = [one for one in kernels_of(built(model)) if one.startswith("int8") or one == "pool"]
    assert kernels == ["int8_convolution", "int8_mean", "int8_times"]
    assert_same(model, inputs, level)
    ranges = {"n": DimRange(1, 4, 1)}
    free = built(dynamic(GATED.format(n="n", to=to, c=channels, zero=zero, order=order), ranges, constants), ranges)
    np.testing.assert_array_equal(run(free, inputs, level, threads=2)["y"], by_onnxruntime(model, inputs)["y"])


@each_float_level
@pytest.mark.parametrize(("element", "channels"), [("uint8", 3), ("int8", 33)])
def test_means_of_many_bytes(level: str, element: str, channels: int) -> None:
    """More than are added up in one go."""
    text = f"""g ({element}[1,{channels},300,301] x) => (float[1,{channels},1,1] y) {{
        a = DequantizeLinear(x, s, zero)  y = GlobalAveragePool(a) }}"""
    zero = np.array(120 if element == "uint8" else -7, element)
    x = bytes_of(element, 1, channels, 300, 301)
    wanted = (x.astype(np.float64) - float(zero)).mean((2, 3), keepdims=True) * float(CONSTANTS["s"])
    found = run(built(model_of(text, CONSTANTS | {"zero": zero})), {"x": x}, level)["y"]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@each_float_level
def test_shuffled_channels_stay_side_by_side(level: str) -> None:
    """Channels of two halves in turns, of which each half goes on by itself."""
    text = """g (uint8[1,16,6,5] x) => (uint8[1,24,6,5] y, uint8[1,8,6,5] p) < int64[5] apart = {1,2,8,6,5},
        int64[4] joined = {1,16,6,5}, int64[2] parts = {8,8}> {
        a = DequantizeLinear(x, s, z)  b = DequantizeLinear(w, ws)  c = Conv<pads=[1,1,1,1]>(a, b)
        q = QuantizeLinear(c, t, z)  d = DequantizeLinear(q, t, z)  e = Reshape(d, apart)
        f = Transpose<perm=[0,2,1,3,4]>(e)  g = Reshape(f, joined)  h, i = Split<axis=1>(g, parts)
        p = QuantizeLinear(h, s, z)  r = QuantizeLinear(i, t, z)  j = DequantizeLinear(r, t, z)
        v1 = DequantizeLinear(v2, ws)  k0 = Conv(j, v1)  y = QuantizeLinear(k0, t, k) }"""
    constants = CONSTANTS | {"v2": bytes_of("int8", 24, 8, 1, 1, seed=1)}
    model = model_of(text, constants)
    for kernel in ("elementwise", "gather_places"):
        assert kernel not in kernels_of(built(model))
    apart = {
        name: np.abs(array.astype(np.int32) - by_onnxruntime(model, {"x": bytes_of("uint8", 1, 16, 6, 5)})[name])
        for name, array in run(built(model), {"x": bytes_of("uint8", 1, 16, 6, 5)}, level).items()
    }
    assert all(one.max() <= 1 and (one > 0).mean() < 0.02 for one in apart.values())


@each_float_level
def test_a_bias_between_bytes_is_one_pass_over_bytes(level: str) -> None:
    """One number for each place of the last axis; exact, as scales are powers of two."""
    text = """g (uint8[2,7,70] x) => (uint8[2,7,70] y) { a = DequantizeLinear(x, e, z)  b = Add(bias, a)
        y = QuantizeLinear(b, f, k) }"""
    bias = (np.arange(70) - 30).astype(np.float32) / 4
    constants = CONSTANTS | {"bias": bias, "e": np.array(0.25, np.float32), "f": np.array(0.5, np.float32)}
    model = model_of(text, constants)
    assert kernels_of(built(model)) == ["int8_line"]
    assert_same(model, {"x": bytes_of("uint8", 2, 7, 70)}, level)


def _changed(text: str) -> tuple[int, list[str]]:
    """Returns how much a model was changed, and its operators; its outputs are the same."""
    model = model_of(text, CONSTANTS)
    changed = model.clone()
    count = BytesThroughMovement()(changed, lambda _: True)
    inputs = {one.name or "": np.asarray(bytes_of("uint8", 2, 4, 6, 6)) for one in model.graph.inputs}
    found, wanted = by_onnxruntime(changed, inputs), by_onnxruntime(model, inputs)
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array)
    return count, [node.op_type for node in changed.graph]


def test_what_moves_is_dequantised_later() -> None:
    text = """g (uint8[2,4,6,6] x) => (float[6,24,2] y, uint8[6,24,2] q) <int64[3] to = {6,24,2}> {
        a = DequantizeLinear(x, s, z)  b = Transpose<perm=[2,0,1,3]>(a)  y = Reshape(b, to)
        q = QuantizeLinear(y, s, z) }"""
    assert _changed(text) == (3, ["Transpose", "Reshape", "DequantizeLinear"])


def test_what_is_put_together_is_quantised_earlier() -> None:
    """Each part by the scale of the whole; what has it already is not quantised again."""
    text = """g (uint8[2,4,6,6] x) => (uint8[2,8,6,6] y) { a = DequantizeLinear(x, s, z)  b = DequantizeLinear(x, t, k)
        c = Concat<axis=1>(a, b)  y = QuantizeLinear(c, t, k) }"""
    assert _changed(text) == (1, ["DequantizeLinear", "DequantizeLinear", "QuantizeLinear", "Concat"])


def test_elementwise_readers_have_floats_of_their_own() -> None:
    """So GELU, which reads a value twice, is a table."""
    text = """g (uint8[2,4,6,6] x) => (uint8[2,4,6,6] y, float[2,4,6,6] q) <float r = {1.4142135}, float i = {1.0}> {
        a = DequantizeLinear(x, s, z)  b = Div(a, r)  c = Erf(b)  d = Add(c, i)  e = Mul(a, d)
        y = QuantizeLinear(e, t, z)  q = Softmax(a) }"""
    changes, operators = _changed(text)
    assert changes == 1
    assert operators.count("DequantizeLinear") == 3
    assert "int8_table" in kernels_of(built(model_of(text, CONSTANTS)))


def test_what_picks_no_elements_stays() -> None:
    """Linear Resize, a pool of a negative scale, something else."""
    text = """g (uint8[2,4,6,6] x) => (float[2,4,12,12] y, float[2,4,3,3] p, float[2,4,6,6] q) <
        float[4] by = {1.0,1.0,2.0,2.0}, float n = {-0.5}> {
        a = DequantizeLinear(x, s, z)  y = Resize<mode="linear">(a, , by)  b = DequantizeLinear(x, n, z)
        p = MaxPool<kernel_shape=[2,2], strides=[2,2]>(b)  q = Softmax(a) }"""
    assert _changed(text)[0] == 0
