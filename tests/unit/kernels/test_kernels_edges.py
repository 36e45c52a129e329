# SPDX-License-Identifier: Apache-2.0
"""What operators of ONNX do not reach: numbers that are no place, sums that are long, windows of padding alone."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from kernel_library import OutOfRangeError, every_level, plan_of, run_plan, told_steps
from nndeploy_native.steps.bytes import BytePooling, Quantise
from nndeploy_native.steps.convolution import Window
from nndeploy_native.steps.indexed import PICKS, Picked, ReverseSequence, Scattered
from nndeploy_native.steps.integer_product import IntegerProduct
from nndeploy_native.steps.matmul import Product
from nndeploy_native.steps.movement import Append, Convert, View
from nndeploy_native.steps.pooling import Pooling
from nndeploy_native.steps.sampling import KINDS, PADDINGS, GridSample, RoiAlign, RoiMaxPool
from nndeploy_native.steps.step import NativeStep
from nndeploy_native.tensors import Array, Layout, Tensor

STRANGE = (np.nan, np.inf, -np.inf, 3e38, -3e38, 1e9)
each_threads = pytest.mark.parametrize("threads", [1, 2])


def tensor(name: str, array: Array) -> Tensor:
    return Tensor(name, array.shape, element={"float32": "fp32"}.get(array.dtype.name, array.dtype.name))


def ran(level: str, step: NativeStep, arrays: Sequence[Array], threads: int = 1) -> Array:
    return run_plan(level, plan_of([step], list(step.inputs), [step.output]), arrays, threads=threads)[0]


def as_bfloat16(array: Array) -> Array:
    """Returns the nearest numbers of 8 bits."""
    bits = array.view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32)


def ran_in_blocks(level: str, step: NativeStep, arrays: Sequence[Array]) -> Array:
    """Returns what a step from "in" makes of an image, whose channels lie in blocks, as its output's do."""
    given, plain = Tensor("x", arrays[0].shape), Tensor("y", step.output.shape)
    steps = [Convert(step.inputs[0], given), step, Convert(plain, step.output)]
    return run_plan(level, plan_of(steps, [given, *step.inputs[1:]], [plain]), arrays)[0]


def image(name: str, *shape: int) -> Tensor:
    return Tensor(name, shape, Layout.BLOCKED)


X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
INDEXED: dict[str, tuple[tuple[int, ...], int]] = {
    "Gather": ((7,), 4), "GatherElements": ((3, 9, 5), 4), "GatherND": ((7, 1), 3), "scatter": ((3, 9, 5), 4),
    "scatter_nd": ((7, 1), 3), "reverse": ((5,), 4),
}  # fmt: skip
"""The shape of the numbers, and the size of the axis that they are of."""


def indexed(kind: str, element: str) -> tuple[NativeStep, list[Array]]:
    shape, _ = INDEXED[kind]
    n, x = np.zeros(shape, element), tensor("x", X if kind != "reverse" else X[0])
    match kind:
        case "scatter":
            u = np.ones(shape, np.float32)
            return Scattered(Tensor("y", X.shape), x, tensor("n", n), tensor("u", u), "add", 1), [X, n, u]
        case "scatter_nd":
            u = np.ones((7, 4, 5), np.float32)
            return Scattered(Tensor("y", X.shape), x, tensor("n", n), tensor("u", u), "none", None), [X, n, u]
        case "reverse":
            return ReverseSequence(Tensor("y", (4, 5)), x, tensor("n", n), is_time_first=True), [X[0], n]
    out = {"Gather": (3, 7, 5), "GatherElements": shape, "GatherND": (7, 4, 5)}[kind]
    return Picked(PICKS[kind], Tensor("y", out), x, tensor("n", n), 0 if kind == "GatherND" else 1), [X, n]


@every_level
@pytest.mark.parametrize("element", ["int32", "int64"])
@pytest.mark.parametrize("kind", INDEXED)
def test_the_first_number_out_of_range_is_told(level: str, kind: str, element: str) -> None:
    """Near and far, before and behind, on any number of threads."""
    (step, arrays), size, limits = indexed(kind, element), INDEXED[kind][1], np.iinfo(element)
    size, least = (size + 1, -1) if kind == "reverse" else (size, -size - 1)
    count = arrays[1].size
    for number, (at, index) in enumerate(
        itertools.product((0, count // 2, count - 1), (size, least, limits.max, limits.min))
    ):
        arrays[1][...] = 0
        arrays[1].reshape(-1)[[at, -1]] = index
        with pytest.raises(OutOfRangeError) as caught:
            ran(level, step, arrays, 1 + number % 2)
        assert caught.value.args == (0, at, index, size)
    arrays[1][...] = size - 1
    ran(level, step, arrays, 2)


@every_level
@each_threads
@pytest.mark.parametrize("element", ["int32", "int64"])
@pytest.mark.parametrize(("before", "added", "length", "whole"), [(7, 2, 9, 16), (0, 3, 3, 5), (12, 1, 12, 12)])
def test_caches_are_written_at_places_of_each_row(
    level: str, threads: int, element: str, before: int, added: int, length: int, whole: int
) -> None:
    rng = np.random.default_rng(3)
    past, new = (rng.standard_normal((6, 3, count, 5)).astype(np.float32) for count in (before, added))
    last = min(before, length - added)
    places = np.array([0, last, last // 2, 0, last, last], element)
    given = [tensor(name, array) for name, array in (("past", past), ("new", new), ("places", places))]
    step = Append(Tensor("y", (6, 3, whole, 5)), given[0], given[1], 2, given[2], length)
    wanted = np.zeros((6, 3, length, 5), np.float32)
    for row, place in enumerate(places):
        wanted[row, :, :place], wanted[row, :, place : place + added] = past[row, :, :place], new[row]
    np.testing.assert_array_equal(ran(level, step, [past, new, places], threads)[:, :, :length], wanted)
    for place in (-1, last + 1, 2**31 - 1):
        places[3:] = place
        with pytest.raises(OutOfRangeError) as caught:
            ran(level, step, [past, new, places], threads)
        assert caught.value.args == (0, 3, place, last + 1)


@every_level
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_strange_places_of_a_grid_touch_nothing_else(level: str, kind: str, padding: str) -> None:
    grid = np.array(list(itertools.product(STRANGE, repeat=2)), np.float32).reshape(1, 6, 6, 2)
    x = np.ones((1, 5, 3, 4), np.float32)
    for is_aligned in (False, True):
        places = tensor("grid", grid)
        step = GridSample(image("out", 1, 5, 6, 6), image("in", *x.shape), places, 2, kind, padding, is_aligned)
        np.testing.assert_allclose(ran_in_blocks(level, step, [x, grid]), padding != "zeros", atol=1e-2)


@every_level
def test_strange_regions_touch_nothing_else(level: str) -> None:
    x = np.ones((2, 5, 3, 4), np.float32)
    corners = np.array(list(itertools.product(STRANGE, repeat=4)), np.float32)
    images = np.resize(np.array([0, 1], np.int64), len(corners))
    five = np.concatenate([images[:, None].astype(np.float32), corners], 1)
    inner, output = image("in", *x.shape), image("out", len(corners), 5, 2, 2)
    of_corners, of_images = tensor("r", corners), tensor("i", images)
    aligned = [RoiAlign(output, inner, of_corners, of_images, is_max, 0, 1.0, 0.5, False) for is_max in (False, True)]
    pool = RoiMaxPool(output, inner, tensor("r", five), 1.0)
    for step in aligned:
        ran_in_blocks(level, step, [x, corners, images])
    ran_in_blocks(level, pool, [x, five])
    for number in (2, -1, 2**62, -(2**62)):
        images[5], five[5, 0] = number, number
        for step, given in ((aligned[0], [corners, images]), (pool, [five])):
            with pytest.raises(OutOfRangeError):
                ran_in_blocks(level, step, [x, *given])


@every_level
def test_windows_that_lie_in_padding_alone_read_nothing(level: str) -> None:
    x = np.ones((1, 3, 2, 2), np.float32)
    for kernel, pads in itertools.product((1, 2, 3, 7), ((5, 40), (1 << 30, 1))):
        window = Window((kernel, kernel), (4, 3), pads, (1, 2))
        step = Pooling(image("out", 1, 3, 9, 9), image("in", 1, 3, 2, 2), window, (0, 9), "max")
        ran_in_blocks(level, step, [x])
    least = np.array([[[[9]]]], np.int8)
    found = ran(
        level, BytePooling(Tensor("y", (1, 3, 3, 1), element="int8"), tensor("x", least), Window((1, 1), pads=(1, 1))),
        [least],
    )  # fmt: skip
    np.testing.assert_array_equal(found[0, :, :, 0], [[-128] * 3, [-128, 9, -128], [-128] * 3])


@every_level
@each_threads
def test_bytes_are_those_of_a_division(level: str, threads: int) -> None:
    """Many numbers lie on or beside the middle between two bytes, some are none."""
    rng = np.random.default_rng(3)
    odd = np.array([np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-40, -0.0], np.float32)
    kinds = (("uint8", 0), ("uint8", 127), ("int8", -128), ("int8", 5))
    for channels, inner, (element, zero) in itertools.product((1, 3, 4), (1, 17, 1031), kinds):
        scale, shape, limits = np.float32(rng.uniform(0.001, 2.0)), (2, channels, inner), np.iinfo(element)
        x = (rng.integers(-600, 600, shape) * np.float32(0.5) * scale).astype(np.float32)
        x = np.nextafter(x, rng.choice([-np.inf, np.inf, 0], shape).astype(np.float32))
        x = np.where(rng.random(shape) < 0.1, rng.choice(odd, shape), x).astype(np.float32)
        output = Tensor("y", (2, inner, channels), element=element)
        found = ran(level, Quantise(output, tensor("x", x), float(scale), zero, *shape), [x], threads)
        with np.errstate(all="ignore"):
            wanted = np.clip(np.rint(x / scale) + np.float32(zero), limits.min, limits.max)
        np.testing.assert_array_equal(found, np.where(np.isnan(x), limits.min, wanted).transpose(0, 2, 1))


@every_level
def test_long_sums_round_little_and_whole_ones_wrap(level: str) -> None:
    """Products of 8192 terms, whose sums grow to 80: parts are added up, not one term after the other.

    Tiles multiply what was rounded to bfloat16, and add up the products in float32 too.
    """
    rng = np.random.default_rng(10)
    b = rng.standard_normal((8192, 40)).astype(np.float32)
    turned, y = np.ascontiguousarray(b.T), View.of(tensor("b", b))
    for rows in (1, 8, 40):
        a = np.abs(rng.standard_normal((rows, 8192))).astype(np.float32)
        view = View.of(tensor("a", a))
        for factor, more in ((b, []), (y, [b]), (View.of(tensor("b", turned)).transposed((1, 0)), [turned])):
            step, arrays = Product(Tensor("y", (rows, 40)), view, factor), [a, *more]
            plan = plan_of([step], list(step.inputs), [step.output])
            is_rounded = "by amx" in told_steps(level, plan, arrays)[0]
            first, second = (as_bfloat16(a), as_bfloat16(b)) if is_rounded else (a, b)
            wanted, found = first.astype(np.float64) @ second, run_plan(level, plan, arrays)[0]
            assert float(np.sqrt(np.mean((found - wanted) ** 2))) < 1.2e-4
    whole, weights = np.full((2, 70_000), 255, np.uint8), np.full((70_000, 3), -128, np.int8)
    integers = IntegerProduct(Tensor("y", (2, 3), element="int32"), tensor("x", whole), weights)
    sums = (whole.astype(np.int64) @ weights.astype(np.int64)).astype(np.int32)
    for plain in (False, True):
        plan = plan_of([integers], list(integers.inputs), [integers.output])
        np.testing.assert_array_equal(run_plan(level, plan, [whole], plain_bytes=plain)[0], sums)
