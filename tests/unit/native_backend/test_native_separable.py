# SPDX-License-Identifier: Apache-2.0
"""depthwise -> pointwise, and pointwise before that: found in the forms that models write, right in every window."""

import numpy as np
import pytest
from native_models import Array, assert_right, built, each_float_level, kernels_of, model_of, reals, run
from nndeploy_native.fusion import fused
from nndeploy_native.lowering.table import lower
from nndeploy_native.steps.separable import Separable

BETWEEN = {
    "nothing": "a = Identity(d)", "relu": "a = Relu(d)", "relu6": "a = Clip(d, zero, six)",
    "hardswish": "a = HardSwish(d)",
    "hardswish spelled out": "p = Add(d, three) q = Clip(p, zero, six) r = Mul(d, q) a = Div(r, six)",
    "hardsigmoid": "h = HardSigmoid<alpha=0.25>(d) a = Mul(d, h)", "silu": "s = Sigmoid(d) a = Mul(d, s)",
    "prelu": "a = PRelu(d, slope)",
}  # fmt: skip
CONSTANTS = {
    **{name: np.array(value, np.float32) for name, value in (("zero", 0), ("three", 3), ("six", 6))},
    "slope": np.full((20, 1, 1), 0.25, np.float32), "w": reals(20, 1, 3, 3, seed=1), "v": reals(24, 20, 1, 1, seed=2),
}  # fmt: skip
PAIR = """g (float[2,20,9,11] x) => (float[2,24,9,11] y) {{
    d = Conv<group=20, pads=[1,1,1,1]>(x, w) {} p1 = Conv(a, v) y = Relu(p1) }}"""


@pytest.mark.parametrize("form", BETWEEN)
def test_pair_is_one_step_in_every_form(form: str) -> None:
    model = model_of(PAIR.format(BETWEEN[form]), CONSTANTS)
    artifact = built(model)
    assert artifact.log.count("separable:") == 1
    assert "dense" not in artifact.log
    assert_right(model, artifact, {"x": reals(2, 20, 9, 11)})


@pytest.mark.parametrize(("outputs", "nodes", "v"), [
    ("float[1,24,5,5] y, float[1,8,5,5] z", "a = Relu(d) y = Conv(a, v) z = Neg(a)", reals(24, 8, 1, 1)),
    ("float[1,24,5,5] y, float[1,8,5,5] a", "a = Relu(d) y = Conv(a, v)", reals(24, 8, 1, 1)),
    ("float[1,24,3,3] y", "y = Conv(d, v)", reals(24, 8, 3, 3)),
], ids=["read by someone else", "an output", "three by three"])  # fmt: skip
def test_other_depthwise_results_are_kept(outputs: str, nodes: str, v: Array) -> None:
    text = f"g (float[1,8,5,5] x) => ({outputs}) {{ d = Conv<group=8, pads=[1,1,1,1]>(x, w) {nodes} }}"
    lowered = lower(model_of(text, {"w": reals(8, 1, 3, 3), "v": v}), {})
    kept = {tensor.name for tensor in lowered.outputs.values()}
    assert not any(isinstance(step, Separable) for step in fused(lowered.steps, kept))


@pytest.mark.parametrize(("text", "shapes", "said"), [
    ("""g (float[1,24,6,7] x) => (float[1,24,6,7] y) {
        d = Conv<group=24, pads=[1,1,1,1]>(x, w) a = Relu(d) p = Conv(a, v) y = Add(x, p) }""",
     {"x": (1, 24, 6, 7), "w": (24, 1, 3, 3), "v": (24, 24, 1, 1)}, "separable"),
    # the copy to planes has the shape of what follows, the pair that of its image
    ("""g (float[3,96,18,6] x) => (float[3,24,108] y) <int64[3] rows = {3,24,108}> {
        d = Conv<group=96, pads=[1,1,1,1]>(x, w) p = Conv(d, v) y = Reshape(p, rows) }""",
     {"x": (3, 96, 18, 6), "w": (96, 1, 3, 3), "v": (24, 96, 1, 1)}, "planar_separable"),
    ("""g (float[1,10,6,6] x) => (float[1,10,6,6] y) { e = Conv(x, a) s = Relu(e)
        d = Conv<group=40, pads=[1,1,1,1]>(s, w) r = Relu(d) p = Conv(r, v) y = Add(p, x) }""",
     {"x": (1, 10, 6, 6), "w": (40, 1, 3, 3), "v": (10, 40, 1, 1), "a": (40, 10, 1, 1)}, "inverted_residual:"),
], ids=["residual", "reshaped planes", "residual of a triple"])  # fmt: skip
def test_what_follows_is_part_of_the_step(text: str, shapes: dict[str, tuple[int, ...]], said: str) -> None:
    x, *constants = (reals(*shape, seed=seed) for seed, shape in enumerate(shapes.values()))
    model = model_of(text, dict(zip([*shapes][1:], constants, strict=True)))
    artifact = built(model)
    assert said in artifact.log
    assert "elementwise" not in artifact.log
    assert_right(model, artifact, {"x": x}, atol=1e-4)


@each_float_level
@pytest.mark.parametrize("capacity", [1, 9000, 30_000, 2**20])
@pytest.mark.parametrize(("stride", "kernel", "dilation"), [(1, 3, 1), (2, 5, 1), (1, 3, 3)])
def test_triple_is_one_step_for_any_capacity(
    level: str, capacity: int, stride: int, kernel: int, dilation: int
) -> None:
    pad = dilation * (kernel // 2)
    size = (11 + 2 * pad - (kernel - 1) * dilation - 1) // stride + 1
    text = f"""g (float[2,10,11,11] x) => (float[2,12,{size},{size}] y) {{ e = Conv(x, a, ab)
        s = Sigmoid(e) d = Conv<group=70, strides=[{stride},{stride}], dilations=[{dilation},{dilation}],
        pads=[{pad},{pad},{pad},{pad}]>(s, w, wb) r = Relu(d) y = Conv(r, v) }}"""
    shapes = {"a": (70, 10, 1, 1), "w": (70, 1, kernel, kernel), "v": (12, 70, 1, 1), "ab": (70,), "wb": (70,)}
    model = model_of(text, {name: reals(*shape, seed=seed) for seed, (name, shape) in enumerate(shapes.items(), 1)})
    artifact = built(model)
    assert "inverted_residual:" in artifact.log
    assert_right(model, artifact, {"x": reals(2, 10, 11, 11)}, level, atol=2e-5, buffer_bytes=capacity)


@each_float_level
@pytest.mark.parametrize(("rank", "multiplier"), [(4, 2), (4, 3), (3, 2)])
def test_a_pair_with_a_multiplier_is_one_step(level: str, rank: int, multiplier: int) -> None:
    size, kernel, point = ("9,11", (3, 3), (1, 1)) if rank == 4 else ("40", (3,), (1,))
    channels, between = 12, 12 * multiplier
    pads = ",".join("1" for _ in range(2 * (rank - 2)))
    text = f"""g (float[2,{channels},{size}] x) => (float[2,20,{size}] y) {{
        d = Conv<group={channels}, pads=[{pads}]>(x, w, b) r = Relu(d) y = Conv(r, v) }}"""
    shapes = {"w": (between, 1, *kernel), "b": (between,), "v": (20, between, *point)}
    model = model_of(text, {name: reals(*shape, seed=seed) for seed, (name, shape) in enumerate(shapes.items())})
    artifact = built(model)
    assert artifact.log.count("separable:") == 1
    x = reals(2, channels, *map(int, size.split(",")), seed=7)
    assert_right(model, artifact, {"x": x}, level, atol=3e-5)


def test_what_is_not_finite_stays_in_its_channels() -> None:
    """Of a depthwise convolution with a multiplier every output reads one channel."""
    text = "g (float[1,6,5,5] x) => (float[1,12,5,5] y) { y = Conv<group=6, pads=[1,1,1,1]>(x, w) }"
    model, x = model_of(text, {"w": reals(12, 1, 3, 3)}), reals(1, 6, 5, 5)
    wanted = run(built(model), {"x": x})["y"]
    x[:, 2] = np.inf
    found = run(built(model), {"x": x})["y"]
    others = [channel for channel in range(12) if channel // 2 != 2]
    assert np.array_equal(found[:, others], wanted[:, others])
    assert not np.isfinite(found[:, 4:6]).any()


@pytest.mark.parametrize("before", ["e = Conv(x, u)", "e = Conv<pads=[0,1,0,1]>(x, u)"], ids=["expansion", "stem"])
def test_of_images_of_one_row_pairs_alone_are_fused(before: str) -> None:
    """Windows of what else is fused are whole rows."""
    inputs, kernel = (10, 1) if "pads" not in before else (3, 3)
    text = f"""g (float[1,{inputs},1,50] x) => (float[1,12,1,50] y) {{ {before} s = Relu(e)
        d = Conv<group=40, pads=[0,1,0,1]>(s, w) r = Relu(d) p = Conv(r, v) y = Conv<pads=[0,1,0,1]>(p, z) }}"""
    shapes = {"u": (40, inputs, 1, kernel), "w": (40, 1, 1, 3), "v": (12, 40, 1, 1), "z": (12, 12, 1, 3)}
    model = model_of(text, {name: reals(*shape, seed=seed) for seed, (name, shape) in enumerate(shapes.items())})
    artifact = built(model)
    assert "separable" in kernels_of(artifact)
    assert not {"stem", "inverted_residual"} & set(kernels_of(artifact))
    assert_right(model, artifact, {"x": reals(1, inputs, 1, 50)}, atol=1e-3, rtol=1e-4)
