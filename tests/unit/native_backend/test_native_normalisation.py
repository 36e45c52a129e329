# SPDX-License-Identifier: Apache-2.0
"""Normalisations against NumPy in float64: odd sizes, every form of scale and bias, every level, 1 and 2 threads."""

import numpy as np
import pytest
from kernel_library import every_level
from native_models import Array, built, dynamic, each_float_level, reals, run, tolerance_of
from nndeploy_native.plan import DOCUMENT_FILE, document_from_json

from nndeploy.errors import BuildRefusedError
from nndeploy.values.types import DimRange

SHAPES = ((1, 1), (5, 15), (3, 16), (37, 33), (2, 7, 3), (2, 5, 4, 9), (3, 2, 4500))
"""Rows shorter than a vector, rows of whole vectors and not, and one in several pieces."""
NO_RANGES: dict[str, DimRange] = {}


def _standard(x: Array, axes: tuple[int, ...], epsilon: float = 1e-5) -> Array:
    wide = x.astype(np.float64)
    mean = wide.mean(axes, keepdims=True)
    return (wide - mean) / np.sqrt(np.square(wide - mean).mean(axes, keepdims=True) + epsilon)


def _sizes(shape: tuple[int | str, ...]) -> str:
    return ",".join(map(str, shape))


def _run(
    node: str, level: str, constants: dict[str, Array], x: Array, ranges: dict[str, DimRange] | None = None,
    shape: tuple[int | str, ...] = (), opset: int = 21,
) -> Array:  # fmt: skip
    given = _sizes(shape or x.shape)
    text = f"g (float[{given}] x) => (float[{given}] y) {{ y = {node} }}"
    artifact = built(dynamic(text, ranges or NO_RANGES, constants, opset), ranges or NO_RANGES)
    alone, shared = (run(artifact, {"x": x}, level, threads=threads)["y"] for threads in (1, 2))
    np.testing.assert_array_equal(alone, shared)
    return alone


@each_float_level
@pytest.mark.parametrize("shape", SHAPES)
def test_layer_normalization(level: str, shape: tuple[int, ...]) -> None:
    x = 3 + 2 * reals(*shape)
    for axis in range(len(shape)):
        scale, bias, axes = reals(*shape[axis:], seed=1), reals(*shape[axis:], seed=2), tuple(range(axis, len(shape)))
        constants = {"s": scale, "b": bias}
        found = _run(f"LayerNormalization<axis={axis}>(x, s, b)", level, constants, x)
        np.testing.assert_allclose(found, _standard(x, axes) * scale + bias, rtol=2e-6, atol=1e-5)
        found = _run(f"LayerNormalization<axis={axis - len(shape)}, epsilon=0.1>(x, s)", level, constants, x)
        np.testing.assert_allclose(found, _standard(x, axes, 0.1) * scale, rtol=2e-6, atol=1e-5)
        found = _run(f"RMSNormalization<axis={axis}, epsilon=0.01>(x, s)", level, constants, x, opset=23)
        wide = x.astype(np.float64)
        wanted = wide / np.sqrt(np.square(wide).mean(axes, keepdims=True) + 0.01) * scale
        np.testing.assert_allclose(found, wanted, rtol=3e-6, atol=1e-6)


@each_float_level
def test_scales_that_are_broadcast(level: str) -> None:
    x = reals(3, 5, 4, 7)
    for scale_shape, bias_shape in (((), (1,)), ((4, 7), (7,)), ((4, 1), (5, 4, 7)), ((1, 1, 4, 7), (4, 7))):
        scale, bias = np.asarray(reals(*scale_shape, seed=1)), reals(*bias_shape, seed=2)
        found = _run("LayerNormalization<axis=2>(x, s, b)", level, {"s": scale, "b": bias}, x)
        np.testing.assert_allclose(found, _standard(x, (2, 3)) * scale + bias, rtol=2e-6, atol=5e-6)


@each_float_level
@pytest.mark.parametrize("shape", [(2, 6, 1), (1, 18, 15), (2, 12, 3, 5), (2, 6, 33, 3), (1, 6, 3, 50, 40)])
def test_images_normalised_by_channels_and_groups(level: str, shape: tuple[int, ...]) -> None:
    x, axes, ones = 5 + reals(*shape), tuple(range(2, len(shape))), (1,) * (len(shape) - 2)
    channels = {"s": reals(shape[1], seed=1), "b": reals(shape[1], seed=2)}
    scale, bias = (one.reshape(-1, *ones) for one in channels.values())
    found = _run("InstanceNormalization<epsilon=0.001>(x, s, b)", level, channels, x)
    np.testing.assert_allclose(found, _standard(x, axes, 0.001) * scale + bias, rtol=2e-6, atol=1e-5)
    for groups in (1, 2, 3, 6):
        rows = x.reshape(shape[0], groups, -1)
        made = _standard(rows, (2,)).reshape(shape)
        found = _run(f"GroupNormalization<num_groups={groups}>(x, s, b)", level, channels, x)
        np.testing.assert_allclose(found, made * scale + bias, rtol=2e-6, atol=1e-5)
        of_groups = {name: one[:groups] for name, one in channels.items()}
        found = _run(f"GroupNormalization<num_groups={groups}>(x, s, b)", level, of_groups, x, opset=18)
        each = shape[1] // groups
        scales, biases = (np.repeat(one, each).reshape(-1, *ones) for one in of_groups.values())
        np.testing.assert_allclose(found, made * scales + biases, rtol=2e-6, atol=1e-5)


@every_level
@pytest.mark.parametrize("shape", [(1, 3, 1, 1), (2, 18, 3, 5), (1, 33, 40, 50), (2, 16, 29), (1, 5, 3, 4, 6)])
def test_images_in_blocks_are_normalised_there(level: str, shape: tuple[int, ...]) -> None:
    """What follows is the end: an activation, a residual, a number of each channel."""
    ones, tolerance = (1,) * (len(shape) - 2), tolerance_of(level)
    x, r = 2 + 3 * reals(*shape), reals(*shape, seed=5)
    constants = {name: reals(shape[1], seed=n) for n, name in enumerate("sb")}
    constants |= {"w": np.ones((shape[1], 1, *ones), np.float32), "c": reals(shape[1], *ones, seed=7)}
    text = f"""g (float[{_sizes(shape)}] x, float[{_sizes(shape)}] r) => (float[{_sizes(shape)}] y) {{
        a = Conv<group={shape[1]}>(x, w) d = Conv<group={shape[1]}>(r, w)
        n = InstanceNormalization<epsilon=0.1>(a, s, b) k = LeakyRelu(n) m = Mul(k, c) y = Add(m, d) }}"""
    artifact = built(dynamic(text, NO_RANGES, constants))
    kernels = [step["kernel"] for step in document_from_json(artifact.files[DOCUMENT_FILE]).steps]
    assert [one for one in kernels if one not in ("convolution", "volume_convolution")][-2:] == [
        "instance_norm", "to_plain",
    ]  # fmt: skip
    alone, shared = (run(artifact, {"x": x, "r": r}, level, threads=threads)["y"] for threads in (1, 2))
    np.testing.assert_array_equal(alone, shared)
    scale, bias = (constants[name].reshape(-1, *ones) for name in "sb")
    made = _standard(x, tuple(range(2, len(shape))), 0.1) * scale + bias
    wanted = np.where(made < 0, 0.01 * made, made) * constants["c"] + r
    np.testing.assert_allclose(alone, wanted, rtol=tolerance, atol=2 * tolerance * np.abs(wanted).max())


@each_float_level
@pytest.mark.parametrize("groups", [1, 3])
def test_groups_of_channels_that_were_made_one_are_rows(level: str, groups: int) -> None:
    """What a GroupNormalization was before there was one: one channel of a block would leave its other lanes idle."""
    x, w = 2 + 3 * reals(2, 18, 29), np.ones((18, 1, 1), np.float32)
    text = """g (float[2,18,29] x) => (float[2,18,29] y) { a = Conv<group=18>(x, w) r = Reshape(a, i)
        n = InstanceNormalization<epsilon=0.1>(r, s, b) y = Reshape(n, k) }"""
    constants = {"w": w, "i": np.array([0, groups, -1]), "k": np.array([2, 18, 29])}
    constants |= {name: reals(groups, seed=n) for n, name in enumerate("sb")}
    artifact = built(dynamic(text, NO_RANGES, constants))
    kernels = [step["kernel"] for step in document_from_json(artifact.files[DOCUMENT_FILE]).steps]
    assert kernels[-2:] == ["to_plain", "normalise"]
    made = _standard(x.reshape(2, groups, -1), (2,), 0.1) * constants["s"][:, None] + constants["b"][:, None]
    np.testing.assert_allclose(run(artifact, {"x": x}, level)["y"], made.reshape(x.shape), rtol=1e-5, atol=1e-5)


@each_float_level
@pytest.mark.parametrize("shape", SHAPES)
def test_norms_along_any_axis(level: str, shape: tuple[int, ...]) -> None:
    x = reals(*shape)
    for axis in range(len(shape)):
        x = np.ascontiguousarray(np.moveaxis(x, axis, 0))
        x[0] = 0  # nothing but zeros only where it is all of them
        x = np.ascontiguousarray(np.moveaxis(x, 0, axis))
        wide = x.astype(np.float64)
        for p, norm in ((1, np.abs(wide).sum(axis, keepdims=True)), (2, np.sqrt((wide**2).sum(axis, keepdims=True)))):
            wanted = np.divide(wide, norm, out=np.zeros_like(wide), where=norm != 0)
            found = _run(f"LpNormalization<axis={axis}, p={p}>(x)", level, {}, x)
            np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=1e-9)


@each_float_level
@pytest.mark.parametrize("axes", [(0, 2, 3), (2, 3), (1,), (0,), (0, 1, 2, 3), (1, 3)])
def test_mean_and_variance_over_any_axes(level: str, axes: tuple[int, ...]) -> None:
    x = 2 + reals(3, 5, 4, 17)
    found = _run(f"MeanVarianceNormalization<axes=[{_sizes(axes)}]>(x)", level, {}, x)
    np.testing.assert_allclose(found, _standard(x, axes, 0.0), rtol=5e-6, atol=1e-5)


@each_float_level
def test_a_mean_far_from_zero_costs_no_digits(level: str) -> None:
    """A variance that is the mean of squares less the square of the mean would be lost here."""
    for shape in ((3, 50), (2, 9000), (40, 30, 3)):
        x = (20_000 + reals(*shape)).astype(np.float32)
        found = _run("MeanVarianceNormalization<axes=[1]>(x)", level, {}, x)
        np.testing.assert_allclose(found, _standard(x, (1,), 0.0), rtol=1e-5, atol=1e-5)


@each_float_level
def test_what_is_no_number_stays_in_its_row(level: str) -> None:
    x = reals(4, 35)
    x[1, 3], x[2, 34] = np.nan, np.inf
    for node in ("LayerNormalization(x, s)", "LpNormalization(x)"):
        found = _run(node, level, {"s": np.ones(35, np.float32)}, x)
        assert np.isfinite(found[[0, 3]]).all()
        assert np.isnan(found[1]).all()
        assert np.isnan(found[2, 34])


@each_float_level
def test_sizes_of_the_call(level: str) -> None:
    ranges = {"n": DimRange(1, 9, 1), "w": DimRange(1, 60, 1)}
    numbers = {"s": reals(6, seed=1), "b": reals(6, seed=2)}
    text = """g (float[n,6,w] x) => (float[n,6,w] y, float[n,6,w] z, float[n,w,6] u) {
        y = InstanceNormalization(x, s, b) z = GroupNormalization<num_groups=3>(x, s, b)
        t = Transpose<perm=[0,2,1]>(x) u = LayerNormalization(t, s, b) }"""
    artifact = built(dynamic(text, ranges, numbers), ranges)
    for n, w in ((1, 1), (2, 16), (9, 7), (3, 59)):
        x = reals(n, 6, w)
        found = run(artifact, {"x": x}, level, threads=1 + n % 2)
        scale, bias = (one.reshape(-1, 1) for one in numbers.values())
        np.testing.assert_allclose(found["y"], _standard(x, (2,)) * scale + bias, rtol=2e-6, atol=2e-5)
        groups = _standard(x.reshape(n, 3, -1), (2,)).reshape(x.shape)
        np.testing.assert_allclose(found["z"], groups * scale + bias, rtol=2e-6, atol=2e-5)
        rows = _standard(x.transpose(0, 2, 1), (2,)) * numbers["s"] + numbers["b"]
        np.testing.assert_allclose(found["u"], rows, rtol=2e-6, atol=2e-5)


def test_refusals_say_why() -> None:
    text = """g (float[2,5] x) => (float[2,5] y, float[2,1] m) <float[5] s = {1,1,1,1,1}> {
        y, m = LayerNormalization(x, s) }"""
    with pytest.raises(BuildRefusedError, match="mean and deviation"):
        built(dynamic(text, {}))
    text = "g (float[2,6,5] x) => (float[2,6,5] y) { y = GroupNormalization<num_groups=4>(x, s, s) }"
    with pytest.raises(BuildRefusedError, match="4 groups"):
        built(dynamic(text, {}, {"s": reals(6)}))
