# SPDX-License-Identifier: Apache-2.0
"""Networks of float16: computed in float32, so as near the truth as ONNX Runtime is, and nearer."""

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir
import pytest
from kernel_library import every_level
from native_models import (
    FLOAT_LEVELS,
    Array,
    assert_right,
    built,
    by_onnxruntime,
    each_float_level,
    kernels_of,
    model_of,
    run,
)
from nndeploy_native.plan import WEIGHTS_FILE
from oracle.in_float64 import outputs_in_float64

PLACES = 2.0**-10
"""What one place of float16 is of a number, at most."""


def halves(*shape: int, seed: int = 0, scale: float = 1.0) -> Array:
    """Returns normal numbers of float16."""
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float16)


def test_every_half_is_a_float_and_the_same_half_again() -> None:
    every = np.arange(2**16).astype(np.uint16).view(np.float16)
    for level in FLOAT_LEVELS:
        artifact = built(model_of("g (float16[65536] x) => (float16[65536] y, float[65536] z) { y = Identity(x)"
                                  " z = Cast<to=1>(x) }"))  # fmt: skip
        found = run(artifact, {"x": every}, level)
        np.testing.assert_array_equal(found["y"], every)
        np.testing.assert_array_equal(found["z"], every.astype(np.float32))


@each_float_level
def test_floats_become_the_nearest_halves(level: str) -> None:
    """Numbers between two halves, just beside the middle, denormal ones, those that are too large, and no numbers."""
    exact = np.arange(2**16).astype(np.uint16).view(np.float16).astype(np.float64)
    exact = np.sort(exact[np.isfinite(exact)])
    middle = ((exact[1:] + exact[:-1]) / 2).astype(np.float32)
    beside = [np.nextafter(middle, np.float32(end)) for end in (-np.inf, np.inf)]
    odd = np.array([65519.99, 65520, 65536, 1e30, np.inf, np.nan, 1e-30, 2.0**-25, 3e-8, 0.0, -0.0], np.float32)
    x = np.concatenate([middle, *beside, odd, -odd])
    artifact = built(model_of(f"g (float[{x.size}] x) => (float16[{x.size}] y) {{ y = Cast<to=10>(x) }}"))
    with np.errstate(over="ignore"):
        wanted = x.astype(np.float16)
    found = run(artifact, {"x": x}, level)["y"]
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))


TRANSFORMER = """g (float16[2,6,32] x, float16[2,1,1,6] m) => (float16[2,6,32] y, float16[2,6] h)
    <int64[4] heads = {2,6,4,8}, int64[3] rows = {2,6,32}, int64[1] last = {2}> {
    n = LayerNormalization(x, g1, b1)
    q0 = MatMul(n, wq) k0 = MatMul(n, wk) v0 = MatMul(n, wv)
    q1 = Reshape(q0, heads) k1 = Reshape(k0, heads) v1 = Reshape(v0, heads)
    q = Transpose<perm=[0,2,1,3]>(q1) k = Transpose<perm=[0,2,3,1]>(k1) v = Transpose<perm=[0,2,1,3]>(v1)
    s0 = MatMul(q, k) s1 = Mul(s0, scale) s2 = Add(s1, m) w = Softmax(s2) o = MatMul(w, v)
    o1 = Transpose<perm=[0,2,1,3]>(o) o2 = Reshape(o1, rows) o3 = MatMul(o2, wo) r = Add(x, o3)
    n2 = LayerNormalization(r, g2, b2) f0 = MatMul(n2, w1) f1 = Add(f0, c1) f2 = Gelu(f1) f3 = MatMul(f2, w2)
    y = Add(r, f3) h = ReduceMean<keepdims=0>(y, last) }"""
SHAPES = {
    "g1": (32,), "b1": (32,), "g2": (32,), "b2": (32,), "c1": (64,), "scale": (1,), "wq": (32, 32), "wk": (32, 32),
    "wv": (32, 32), "wo": (32, 32), "w1": (32, 64), "w2": (64, 32),
}  # fmt: skip
IMAGES = """g (float16[1,3,17,19] x) => (float16[1,10] y) {
    a = Conv<pads=[1,1,1,1], strides=[2,2]>(x, w1, b1) b = Relu(a) c = Conv<group=16, pads=[1,1,1,1]>(b, w2)
    d = Conv(c, w3, b3) e = Clip(d, low, high) p = GlobalAveragePool(e) f = Flatten(p)
    y = Gemm<transB=1>(f, w4, b4) }"""
OF_IMAGES = {
    "w1": (16, 3, 3, 3), "b1": (16,), "w2": (16, 1, 3, 3), "w3": (24, 16, 1, 1), "b3": (24,), "w4": (10, 24),
    "b4": (10,),
}  # fmt: skip


def constants_of(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Array]:
    """Returns weights that keep numbers near one."""
    return {
        name: halves(*shape, seed=seed, scale=np.prod(shape[1:] or (9,)) ** -0.5)
        for seed, (name, shape) in enumerate(shapes.items(), 1)
    }


@each_float_level
@pytest.mark.parametrize("which", ["transformer", "images"])
def test_networks_are_as_near_the_truth_as_onnxruntime(level: str, which: str) -> None:
    if which == "transformer":
        model = model_of(TRANSFORMER, constants_of(SHAPES))
        given = {"x": halves(2, 6, 32), "m": np.where(halves(2, 1, 1, 6, seed=3) > 0.7, -np.inf, 0).astype(np.float16)}
    else:
        bounds = {"low": np.array(0, np.float16), "high": np.array(6, np.float16)}
        model, given = model_of(IMAGES, constants_of(OF_IMAGES) | bounds), {"x": halves(1, 3, 17, 19)}
    theirs, truth = by_onnxruntime(model, given), outputs_in_float64(ir.to_proto(model), given)
    ours = run(built(model), given, level, threads=2)
    for name, found in ours.items():
        wanted, other = truth[name], theirs[name]
        assert found.dtype == np.float16
        size = float(np.abs(wanted).max())
        far, their_far = (float(np.abs(one.astype(np.float64) - wanted).max()) for one in (found, other))
        assert far <= size * PLACES
        assert far <= their_far + size * PLACES / 2
        np.testing.assert_allclose(found, other, atol=4 * size * PLACES)


def test_attention_of_float16_is_one_step_and_nothing_is_converted_within() -> None:
    steps = kernels_of(built(model_of(TRANSFORMER, constants_of(SHAPES))))
    assert steps.count("attention") == 1
    assert steps.count("elementwise") <= 5


@every_level
def test_whole_numbers_and_halves(level: str) -> None:
    """Casts between them, comparisons, and numbers of float16 that say how much is quantised."""
    text = """g (float16[3,7] x, int32[3,7] i) => (float16[3,7] y, bool[3,7] b, int64[3,7] t, float16[3,7] q) {
        f = Cast<to=10>(i) a = Mul(x, f) y = Max(a, k) b = Less(x, f) t = Cast<to=7>(a)
        u = QuantizeLinear(x, s, z) q = DequantizeLinear(u, s, z) }"""
    constants = {"k": np.array(-2, np.float16), "s": np.array(0.05, np.float16), "z": np.array(100, np.uint8)}
    x, i = halves(3, 7, scale=3.0), np.arange(-10, 11, dtype=np.int32).reshape(3, 7)
    found = run(built(model_of(text, constants)), {"x": x, "i": i}, level)
    whole = x.astype(np.float32) * i
    np.testing.assert_array_equal(found["y"], np.maximum(whole, -2).astype(np.float16))
    np.testing.assert_array_equal(found["b"], x < i)
    np.testing.assert_array_equal(found["t"], whole.astype(np.int64))
    steps = np.clip(np.rint(x.astype(np.float32) / np.float32(np.float16(0.05))) + 100, 0, 255) - 100
    np.testing.assert_allclose(found["q"], steps * np.float32(np.float16(0.05)), atol=0.06)


@each_float_level
def test_weights_of_float16_stay_so_in_the_plan_and_give_the_same_numbers(level: str) -> None:
    """Products read them as they are; convolutions and recurrent layers make floats of them when a plan is opened."""
    constants = constants_of({"w": (96, 80), "c": (24, 16, 3, 3), "v": (1, 40, 80), "r": (1, 40, 10)})
    text = """g (float16[1,96] x, float16[1,16,9,9] i, float16[5,1,80] s)
        => (float16[1,80] y, float16[1,24,7,7] z, float16[1,1,10] h) {
        y = MatMul(x, w) z = Conv(i, c) d, h = LSTM<hidden_size=10>(s, v, r) }"""
    model, given = model_of(text, constants), {"x": halves(1, 96), "i": halves(1, 16, 9, 9), "s": halves(5, 1, 80)}
    artifact = built(model)
    stored = artifact.files[WEIGHTS_FILE]
    assert all(one.tobytes() in stored for name, one in constants.items())
    assert len(stored) <= sum(one.nbytes for one in constants.values()) + 4 * 64
    assert {"bits_connected", "convolution", "lstm"} <= set(kernels_of(artifact))
    x, w = given["x"].astype(np.float64), constants["w"].astype(np.float64)
    found = run(artifact, given, level, threads=2)
    np.testing.assert_allclose(found["y"], x @ w, rtol=PLACES, atol=1e-4)
    for name, other in by_onnxruntime(model, given).items():
        np.testing.assert_allclose(found[name], other, atol=4 * PLACES * float(np.abs(other).max()))


@each_float_level
@pytest.mark.parametrize("rows", [1, 7, 33])
def test_products_by_float16(level: str, rows: int) -> None:
    """In both orders, with ends; an output of float32 shows that nothing is rounded before it."""
    constants = constants_of({"w": (70, 64), "u": (45, 64), "b": (45,)})
    text = f"""g (float16[{rows},70] x) => (float[{rows},45] y) {{
        a = MatMul(x, w) r = Relu(a) m = Gemm<transB=1, alpha=0.5>(r, u, b) y = Cast<to=1>(m) }}"""
    model = model_of(text, constants)
    artifact = built(model)
    assert kernels_of(artifact).count("bits_connected") == 2
    assert_right(model, artifact, {"x": halves(rows, 70)}, level)
