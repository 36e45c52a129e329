# SPDX-License-Identifier: Apache-2.0
"""depthwise -> pointwise: found in the forms that models write, and right whatever the window."""

from collections.abc import Callable

import numpy as np
import onnx_ir as ir
import pytest
from native_models import Array, built, convolved, each_float_level, model_of, reals, run
from nndeploy_native.fusion import fused
from nndeploy_native.lowering.table import lower
from nndeploy_native.steps.separable import Separable

BETWEEN: dict[str, tuple[str, Callable[[Array], Array]]] = {
    "nothing": ("a = Identity(d)", lambda d: d),
    "relu": ("a = Relu(d)", lambda d: np.maximum(d, 0)),
    "relu6": ("a = Clip(d, zero, six)", lambda d: np.clip(d, 0, 6)),
    "hardswish": ("a = HardSwish(d)", lambda d: d * np.clip(d / 6 + 0.5, 0, 1)),
    "hardswish spelled out": (
        "p = Add(d, three) q = Clip(p, zero, six) r = Mul(d, q) a = Div(r, six)",
        lambda d: d * np.clip(d + 3, 0, 6) / 6,
    ),
    "hardsigmoid": ("h = HardSigmoid<alpha=0.25>(d) a = Mul(d, h)", lambda d: d * np.clip(d * 0.25 + 0.5, 0, 1)),
    "silu": ("s = Sigmoid(d) a = Mul(d, s)", lambda d: d / (1 + np.exp(-d))),
    "prelu": ("a = PRelu(d, slope)", lambda d: np.where(d < 0, d * 0.25, d)),
}
SCALARS = {name: np.array(value, np.float32) for name, value in (("zero", 0), ("three", 3), ("six", 6))}


def _constants(channels: int = 20) -> dict[str, Array]:
    return {
        **SCALARS, "slope": np.full((channels, 1, 1), 0.25, np.float32), "w": reals(channels, 1, 3, 3, seed=1),
        "v": reals(24, channels, 1, 1, seed=2),
    }  # fmt: skip


def _model(between: str) -> ir.Model:
    text = f"""g (float[2,20,9,11] x) => (float[2,24,9,11] y) {{
        d = Conv<group=20, pads=[1,1,1,1]>(x, w) {between} p1 = Conv(a, v) y = Relu(p1) }}"""
    return model_of(text, _constants())


@pytest.mark.parametrize("form", BETWEEN)
def test_pair_is_one_step_in_every_form(form: str) -> None:
    text, computed = BETWEEN[form]
    artifact = built(_model(text))
    assert artifact.log.count("separable:") == 1
    assert "dense" not in artifact.log
    x, constants = reals(2, 20, 9, 11), _constants()
    first = computed(convolved(x, constants["w"], pads=(1, 1, 1, 1), groups=20))
    wanted = np.maximum(convolved(first, constants["v"]), 0)
    np.testing.assert_allclose(run(artifact, {"x": x})["y"], wanted, rtol=1e-5, atol=1e-5)


@each_float_level
@pytest.mark.parametrize("capacity", [1, 512, 2048, 6000, 40_000, 2**20])
def test_any_capacity_gives_the_same_numbers(capacity: int, level: str) -> None:
    artifact = built(_model("a = Relu(d)"))
    x, constants = reals(2, 20, 9, 11), _constants()
    first = np.maximum(convolved(x, constants["w"], pads=(1, 1, 1, 1), groups=20), 0)
    wanted = np.maximum(convolved(first, constants["v"]), 0)
    found = run(artifact, {"x": x}, level, buffer_bytes=capacity)["y"]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_depthwise_result_that_someone_else_reads_is_kept() -> None:
    text = """g (float[1,8,5,5] x) => (float[1,24,5,5] y, float[1,8,5,5] z) {
        d = Conv<group=8, pads=[1,1,1,1]>(x, w) a = Relu(d) y = Conv(a, v) z = Neg(a) }"""
    assert not _has_separable(text)


def test_depthwise_result_that_is_an_output_is_kept() -> None:
    text = """g (float[1,8,5,5] x) => (float[1,24,5,5] y, float[1,8,5,5] a) {
        d = Conv<group=8, pads=[1,1,1,1]>(x, w) a = Relu(d) y = Conv(a, v) }"""
    assert not _has_separable(text)


def test_three_by_three_after_depthwise_is_no_pair() -> None:
    text = """g (float[1,8,5,5] x) => (float[1,24,3,3] y) {
        d = Conv<group=8, pads=[1,1,1,1]>(x, w) y = Conv(d, v) }"""
    assert not _has_separable(text, v=reals(24, 8, 3, 3))


def test_residual_is_added_by_the_pair() -> None:
    text = """g (float[1,24,6,7] x) => (float[1,24,6,7] y) {
        d = Conv<group=24, pads=[1,1,1,1]>(x, w) a = Relu(d) p = Conv(a, v) y = Add(x, p) }"""
    w, v, x = reals(24, 1, 3, 3, seed=1), reals(24, 24, 1, 1, seed=2), reals(1, 24, 6, 7)
    artifact = built(model_of(text, {"w": w, "v": v}))
    assert "elementwise" not in artifact.log
    first = np.maximum(convolved(x, w, pads=(1, 1, 1, 1), groups=24), 0)
    np.testing.assert_allclose(run(artifact, {"x": x})["y"], convolved(first, v) + x, rtol=1e-5, atol=1e-5)


def test_pair_whose_planes_are_reshaped_is_right() -> None:
    """The copy to planes has the shape of what follows, the pair that of its image."""
    text = """g (float[3,96,18,6] x) => (float[3,24,108] y) <int64[3] rows = {3,24,108}> {
        d = Conv<group=96, pads=[1,1,1,1]>(x, w) p = Conv(d, v) y = Reshape(p, rows) }"""
    w, v, x = reals(96, 1, 3, 3, seed=1), reals(24, 96, 1, 1, seed=2), reals(3, 96, 18, 6)
    artifact = built(model_of(text, {"w": w, "v": v}))
    assert "planar_separable" in artifact.log
    wanted = convolved(convolved(x, w, pads=(1, 1, 1, 1), groups=96), v).reshape(3, 24, 108)
    np.testing.assert_allclose(run(artifact, {"x": x})["y"], wanted, rtol=1e-5, atol=1e-4)


def _has_separable(text: str, v: Array | None = None) -> bool:
    constants = {"w": reals(8, 1, 3, 3), "v": reals(24, 8, 1, 1) if v is None else v}
    lowered = lower(model_of(text, constants), {})
    kept = {tensor.name for tensor in lowered.outputs.values()}
    return any(isinstance(step, Separable) for step in fused(lowered.steps, kept))
