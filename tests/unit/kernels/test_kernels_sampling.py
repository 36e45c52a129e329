# SPDX-License-Identifier: Apache-2.0
"""Pixels at places that are data, against NumPy: grids, affine grids, regions; whatever the places say."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from kernel_library import OutOfRangeError, RefusedError, assert_close, every_level, plan_of, run_plan
from nndeploy_native.steps.movement import Convert
from nndeploy_native.steps.sampling import KINDS, PADDINGS, AffineGrid, GridSample, RoiAlign, RoiMaxPool
from nndeploy_native.steps.step import NativeStep
from nndeploy_native.tensors import Array, Layout, Tensor

STRANGE = (np.nan, np.inf, -np.inf, 3e38, -3e38, 1e9)


def _run(level: str, step: NativeStep, x: Array, others: dict[str, Array], threads: int = 1) -> Array:
    """Returns what a step makes of blocked "in", which is given plain, and of plain others."""
    elements = {"float32": "fp32", "int64": "int64", "int32": "int32"}
    given = [Tensor("x", x.shape), *(Tensor(n, a.shape, element=elements[a.dtype.name]) for n, a in others.items())]
    image, plain = Tensor("in", x.shape, Layout.BLOCKED), Tensor("y", step.output.shape)
    plan = plan_of([Convert(image, given[0]), step, Convert(plain, step.output)], given, [plain])
    return run_plan(level, plan, [x, *others.values()], threads=threads)[0]


def _reflected(x: Array, low: float, high: float) -> Array:
    span = high - low
    if span <= 0:
        return np.full_like(x, low)
    rest = np.abs(x - low) % (2 * span)
    return np.asarray(low + np.where(rest > span, 2 * span - rest, rest))


def _axis_taps(at: Array, size: int, kind: str, padding: str, is_aligned: bool) -> tuple[Array, Array]:
    """Returns (places, weights), each (pixels, taps), of one axis; a weight of zero is of a place outside."""
    at = at.astype(np.float32)
    x = (at + 1) / 2 * (size - 1) if is_aligned else ((at + 1) * size - 1) / 2
    low, high = (0.0, size - 1.0) if is_aligned else (-0.5, size - 0.5)
    x = (np.rint(x) if kind == "nearest" else x).astype(np.float64)
    if padding == "border" and kind != "cubic":  # each tap of a cubic one is taken from the border
        x = np.clip(x, 0, size - 1)
    elif padding == "reflection":
        x = np.where((x < low) | (x > high), _reflected(x, low, high), x)
    whole = np.floor(x)
    taps = {"nearest": [0], "linear": [0, 1], "cubic": [-1, 0, 1, 2]}[kind]
    places = whole[:, None] + np.array(taps)
    d, a = np.abs(places - x[:, None]), -0.75
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    weights = {"nearest": np.ones_like(places), "linear": 1 - d, "cubic": np.where(d <= 1, near, far)}[kind]
    if padding == "zeros":
        weights = np.where((places >= 0) & (places < size), weights, 0)
    elif padding == "reflection":
        places = np.floor(_reflected(places, low, high))
    return np.clip(places, 0, size - 1).astype(int), weights


def sampled(x: Array, grid: Array, kind: str, padding: str, is_aligned: bool) -> Array:
    """Returns (N, C, pixels) of x (N, C, sizes...) at grid (N, pixels, axes)."""
    out = np.zeros((*x.shape[:2], grid.shape[1]))
    for n in range(x.shape[0]):
        axes = [
            _axis_taps(grid[n, :, -1 - axis], size, kind, padding, is_aligned) for axis, size in enumerate(x.shape[2:])
        ]
        for taps in itertools.product(*(range(places.shape[1]) for places, _ in axes)):
            places = tuple(axes[axis][0][:, tap] for axis, tap in enumerate(taps))
            weights = np.prod([axes[axis][1][:, tap] for axis, tap in enumerate(taps)], axis=0)
            out[n] += x[n].astype(np.float64)[(slice(None), *places)] * weights
    return out


@every_level
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_pixels_by_a_grid(level: str, kind: str, padding: str) -> None:
    rng = np.random.default_rng(31)
    for number in range(6):
        axes, is_aligned = 2 + number // 2 % 2, number % 2 == 1
        sizes = tuple(int(one) for one in rng.integers(1, 7, axes))
        shape, out = (2, int(rng.integers(1, 37)), *sizes), (int(rng.integers(1, 6)), int(rng.integers(1, 20)))
        x = rng.standard_normal(shape).astype(np.float32)
        grid = rng.uniform(-1.6, 1.6, (2, *out, axes)).astype(np.float32)
        wanted = sampled(x, grid.reshape(2, -1, axes), kind, padding, is_aligned).reshape(*shape[:2], *out)
        depth = sizes[0] if axes == 3 else 1
        flat = x.reshape(*shape[:2], -1, sizes[-1])
        places, image = Tensor("grid", grid.shape), Tensor("out", wanted.shape, Layout.BLOCKED)
        inner = Tensor("in", flat.shape, Layout.BLOCKED)
        step = GridSample(image, inner, places, axes, kind, padding, is_aligned, depth)
        assert_close(_run(level, step, flat, {"grid": grid}, 1 + number % 2), wanted, level)


@every_level
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_strange_places_of_a_grid_touch_nothing_else(level: str, kind: str, padding: str) -> None:
    grid = np.array(list(itertools.product(STRANGE, repeat=2)), np.float32).reshape(1, 6, 6, 2)
    x, image = np.ones((1, 5, 3, 4), np.float32), Tensor("out", (1, 5, 6, 6), Layout.BLOCKED)
    for is_aligned in (False, True):
        inner, places = Tensor("in", x.shape, Layout.BLOCKED), Tensor("grid", grid.shape)
        found = _run(level, GridSample(image, inner, places, 2, kind, padding, is_aligned), x, {"grid": grid})
        wanted = 0 if padding == "zeros" else 1
        np.testing.assert_allclose(found, wanted, atol=1e-2)


@every_level
def test_affine_grids(level: str) -> None:
    rng = np.random.default_rng(32)
    for number, sizes in enumerate(((5, 7), (1, 1), (3, 4, 5), (2, 1, 6))):
        axes, is_aligned = len(sizes), number % 2 == 0
        matrices = rng.standard_normal((2, axes, axes + 1)).astype(np.float32)
        lines = [np.arange(n) * (2 / max(1, n - is_aligned)) - 1 + (0 if is_aligned else 1 / n) for n in sizes]
        places = np.stack([*reversed(np.meshgrid(*lines, indexing="ij")), np.ones(sizes)], -1)
        wanted = np.einsum("nij,...j->n...i", matrices.astype(np.float64), places)
        given, output = Tensor("m", matrices.shape), Tensor("y", wanted.shape)
        plan = plan_of([AffineGrid(output, given, is_aligned)], [given], [output])
        (found,) = run_plan(level, plan, [matrices], threads=1 + number % 2)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def _bin(x: Array, begins: tuple[float, float], bins: tuple[float, float], samples: int, is_max: bool) -> Array:
    """Returns the samples of a bin of an image (C, H, W), pooled."""
    counts = [samples or max(0, int(np.ceil(size))) for size in bins]
    taken = []
    for i, k in np.ndindex(*counts):
        at = [begins[0] + (i + 0.5) * bins[0] / counts[0], begins[1] + (k + 0.5) * bins[1] / counts[1]]
        if any(not -1 <= one <= size for one, size in zip(at, x.shape[1:], strict=True)):
            taken.append(np.zeros((4, x.shape[0])))
            continue
        low = [min(int(max(one, 0)), size - 1) for one, size in zip(at, x.shape[1:], strict=True)]
        high = [min(one + 1, size - 1) for one, size in zip(low, x.shape[1:], strict=True)]
        v, u = (0.0 if one == size - 1 else max(a, 0) - one for a, one, size in zip(at, low, x.shape[1:], strict=True))
        taken.append(
            np.stack(
                [
                    (1 - v) * (1 - u) * x[:, low[0], low[1]],
                    (1 - v) * u * x[:, low[0], high[1]],
                    v * (1 - u) * x[:, high[0], low[1]],
                    v * u * x[:, high[0], high[1]],
                ]
            )
        )
    if not taken:
        return np.zeros(x.shape[0])
    return np.max(taken, (0, 1)) if is_max else np.sum(taken, (0, 1)) / len(taken)


@every_level
@pytest.mark.parametrize("is_max", [False, True])
@pytest.mark.parametrize("samples", [0, 2])
def test_regions(level: str, samples: int, is_max: bool) -> None:
    rng = np.random.default_rng(33)
    for number, least in enumerate((False, True)):
        x = rng.integers(-8, 8, (3, 19, 9, 13)).astype(np.float32)
        rois = np.sort(rng.uniform(-6, 30, (5, 2, 2)), 1).reshape(5, 4).astype(np.float32)
        rois[4] = (-40, -40, 300, 200)  # far larger than the image
        images = np.array([2, 0, 1, 0, 2], np.int64 if least else np.int32)
        size, scale, offset = (3, 2), 0.5, 0.0 if least else 0.5
        wanted = np.zeros((5, 19, *size))
        for r, y, column in np.ndindex(5, *size):
            left, top, right, bottom = rois[r].astype(np.float64) * scale - offset
            width, height = right - left, bottom - top
            if least:
                width, height = max(width, 1), max(height, 1)
            bins = (height / size[0], width / size[1])
            begins = (top + y * bins[0], left + column * bins[1])
            wanted[r, :, y, column] = _bin(x[images[r]], begins, bins, samples, is_max)
        regions, numbers = Tensor("r", rois.shape), Tensor("i", images.shape, element=images.dtype.name)
        output, inner = Tensor("out", wanted.shape, Layout.BLOCKED), Tensor("in", x.shape, Layout.BLOCKED)
        step = RoiAlign(output, inner, regions, numbers, is_max, samples, scale, offset, least)
        assert_close(_run(level, step, x, {"r": rois, "i": images}, 1 + number), wanted, level)


@every_level
def test_the_largest_of_regions(level: str) -> None:
    rng = np.random.default_rng(34)
    x, size, scale = rng.integers(-99, -1, (2, 19, 9, 13)).astype(np.float32), (3, 4), 0.5
    corners = np.sort(rng.uniform(-6, 30, (5, 2, 2)), 1).reshape(5, 4)
    rois = np.concatenate([rng.integers(0, 2, (5, 1)), corners], 1).astype(np.float32)
    wanted = np.zeros((5, 19, *size))
    for r in range(5):
        left, top, right, bottom = np.sign(rois[r, 1:]) * np.floor(np.abs(rois[r, 1:] * scale) + 0.5)
        sides = [(top, max(1, bottom - top + 1), 9), (left, max(1, right - left + 1), 13)]
        for at in np.ndindex(*size):
            ends = []
            for axis, (first, length, whole) in enumerate(sides):
                each = length / size[axis]
                low, high = np.floor(at[axis] * each) + first, np.ceil((at[axis] + 1) * each) + first
                ends.append(slice(int(np.clip(low, 0, whole)), int(np.clip(high, 0, whole))))
            part = x[int(rois[r, 0]), :, ends[0], ends[1]]
            wanted[r, :, *at] = part.max((1, 2)) if part.size else 0
    output, inner = Tensor("out", wanted.shape, Layout.BLOCKED), Tensor("in", x.shape, Layout.BLOCKED)
    found = _run(level, RoiMaxPool(output, inner, Tensor("r", rois.shape), scale), x, {"r": rois}, 2)
    assert_close(found, wanted, level)


@every_level
def test_strange_regions_touch_nothing_else(level: str) -> None:
    x = np.ones((2, 5, 3, 4), np.float32)
    corners = np.array(list(itertools.product(STRANGE, repeat=4)), np.float32)
    images = np.resize(np.array([0, 1], np.int64), len(corners))
    inner, rois = Tensor("in", x.shape, Layout.BLOCKED), Tensor("r", corners.shape)
    output, numbers = Tensor("out", (len(corners), 5, 2, 2), Layout.BLOCKED), Tensor("i", images.shape, element="int64")
    for is_max in (False, True):
        step = RoiAlign(output, inner, rois, numbers, is_max, 0, 1.0, 0.5, False)
        _run(level, step, x, {"r": corners, "i": images})
    five = np.concatenate([images[:, None].astype(np.float32), corners], 1)
    pool = RoiMaxPool(output, inner, Tensor("r", five.shape), 1.0)
    _run(level, pool, x, {"r": five})
    for image in (2, -1, 2**62, -(2**62)):
        images[5], five[5, 0] = image, image
        for one, given in ((step, {"r": corners, "i": images}), (pool, {"r": five})):
            with pytest.raises(OutOfRangeError):
                _run(level, one, x, given)


@every_level
def test_what_does_not_fit_is_refused(level: str) -> None:
    x = np.zeros((2, 3, 4, 6), np.float32)
    inner, out = Tensor("in", x.shape, Layout.BLOCKED), Tensor("out", (2, 3, 5, 5), Layout.BLOCKED)
    grid, rois = np.zeros((2, 5, 5, 2), np.float32), np.zeros((2, 4), np.float32)
    places, regions, images = Tensor("g", grid.shape), Tensor("r", rois.shape), np.zeros(2, np.int64)
    numbers = Tensor("i", images.shape, element="int64")
    sample = GridSample(out, inner, places, 2, "linear", "zeros", False)
    align = RoiAlign(out, inner, regions, numbers, False, 0, 1.0, 0.0, False)
    wrong: list[tuple[NativeStep, dict[str, Array]]] = [
        (replace(sample, output=replace(out, shape=(2, 4, 5, 5))), {"g": grid}),
        (replace(sample, output=replace(out, shape=(2, 3, 5, 4))), {"g": grid}),
        (replace(sample, axes=3, depth=2), {"g": grid}),
        (replace(sample, depth=2), {"g": grid}),
        (replace(sample, depth=0), {"g": grid}),
        (replace(align, output=replace(out, shape=(3, 3, 5, 5))), {"r": rois, "i": images}),
        (replace(align, output=replace(out, shape=(2, 4, 5, 5))), {"r": rois, "i": images}),
        (replace(align, samples=65), {"r": rois, "i": images}),
        (replace(align, scale=float("nan")), {"r": rois, "i": images}),
        (replace(align, images=Tensor("i", (3,), element="int64")), {"r": rois, "i": np.zeros(3, np.int64)}),
        (RoiMaxPool(out, inner, regions, 1.0), {"r": rois}),
    ]
    for step, others in wrong:
        with pytest.raises(RefusedError):
            _run(level, step, x, others)
    matrices = Tensor("m", (2, 2, 3))
    for output in (Tensor("y", (2, 4, 5, 3)), Tensor("y", (3, 4, 5, 2))):
        plan = plan_of([AffineGrid(output, matrices, False)], [matrices], [output])
        with pytest.raises(RefusedError):
            run_plan(level, plan, [np.zeros((2, 2, 3), np.float32)])
