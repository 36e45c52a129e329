# SPDX-License-Identifier: Apache-2.0
"""Convolutions of bytes of the kernel library: exact sums at odd shapes, with every set of instructions; their ends."""

from typing import NamedTuple

import numpy as np
import pytest
from kernel_library import RefusedError, every_level, plan_of, run_plan
from nndeploy_native.expressions import Expression, operand
from nndeploy_native.plan import DTYPES
from nndeploy_native.steps.bytes import ByteLine, BytePooling, ByteTable, ByteTerm
from nndeploy_native.steps.convolution import Window
from nndeploy_native.steps.integer_convolution import IntegerConvolution
from nndeploy_native.steps.step import Epilogue, NativeStep
from nndeploy_native.tensors import Array, Tensor


class Case(NamedTuple):
    """Sizes of an image and of its output, channels and how the window moves."""

    image: tuple[int, int, int]
    """Images, rows, columns."""
    channels: tuple[int, int]
    kernel: tuple[int, int]
    strides: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilations: tuple[int, int] = (1, 1)
    groups: int = 1


CASES = (
    Case((1, 9, 11), (3, 5), (3, 3), (2, 2), (1, 1, 1, 1)),
    Case((2, 7, 6), (16, 40), (3, 3), (1, 1), (1, 1, 1, 1)),
    Case((1, 8, 5), (20, 33), (3, 2), (1, 2), (0, 1, 2, 0), (2, 1)),
    Case((1, 5, 5), (64, 65), (1, 1), (2, 2)),
    Case((1, 6, 7), (18, 8), (5, 3), (1, 1), (2, 1, 2, 1)),
    Case((1, 4, 13), (1, 7), (3, 7), (1, 1), (1, 3, 1, 3)),
    Case((1, 6, 6), (8, 12), (3, 3), (1, 1), (1, 1, 1, 1), groups=2),
    Case((1, 5, 7), (40, 80), (3, 3), (1, 1), (1, 1, 1, 1), groups=2),
    Case((1, 3, 3), (5, 4), (3, 3), (1, 1), (3, 3, 3, 3), (2, 2)),
    Case((1, 2, 3), (17, 3), (2, 3)),
    Case((2, 2, 2), (5, 6), (3, 4), (1, 2), (3, 5, 3, 4)),
    Case((1, 30, 3), (7, 20), (3, 3), (1, 1), (1, 1, 1, 1)),
    Case((1, 40, 5), (1, 3), (4, 2), (1, 1), (9, 0, 9, 0), (3, 1)),
    Case((2, 5, 61), (3, 16), (3, 3), (2, 2), (1, 1, 1, 1)),
    Case((1, 4, 40), (4, 33), (3, 3), (1, 1), (0, 1, 0, 1), (2, 1)),
    Case((1, 9, 26), (16, 20), (3, 3), (1, 2), (5, 5, 5, 5), (5, 5)),
)
DEPTHWISE = (
    Case((1, 9, 11), (19, 19), (3, 3), (1, 1), (1, 1, 1, 1), groups=19),
    Case((2, 8, 7), (64, 64), (3, 3), (2, 2), (0, 0, 1, 1), groups=64),
    Case((1, 7, 40), (70, 70), (5, 5), (1, 1), (2, 2, 2, 2), groups=70),
    Case((1, 6, 5), (33, 33), (1, 3), (1, 2), (0, 1, 0, 1), groups=33),
    Case((1, 11, 5), (130, 130), (7, 4), (1, 1), (3, 2, 3, 2), groups=130),
    Case((1, 9, 9), (16, 16), (3, 3), (1, 1), (2, 2, 2, 2), (2, 2), groups=16),
    Case((1, 3, 2), (4, 4), (2, 2), (1, 1), (5, 5, 5, 5), groups=4),
    Case((2, 5, 131), (16, 16), (3, 3), (1, 1), (1, 1, 1, 1), groups=16),
    Case((1, 9, 30), (32, 32), (3, 3), (2, 2), (1, 1, 1, 1), groups=32),
    Case((1, 8, 21), (32, 32), (5, 5), (1, 1), (2, 4, 2, 4), (1, 2), groups=32),
    Case((1, 7, 45), (16, 16), (5, 2), (1, 3), (2, 3, 2, 0), (1, 2), groups=16),
    Case((1, 3, 1), (16, 16), (3, 1), (1, 2), (1, 3, 1, 2), groups=16),
)
ELEMENTS = (("uint8", "int8"), ("int8", "int8"), ("uint8", "uint8"), ("int8", "uint8"))
each_way = pytest.mark.parametrize("plain", [False, True])
"""With what the processor has, and with the instructions of the level alone."""


def _bytes(rng: np.random.Generator, element: str, *shape: int) -> Array:
    """Returns numbers of which many are the least and the largest."""
    limits = np.iinfo(element)
    numbers = rng.integers(limits.min, limits.max + 1, shape)
    return np.where(rng.random(shape) < 0.2, rng.choice([limits.min, limits.max], shape), numbers).astype(element)


def _out_sizes(case: Case) -> tuple[int, int]:
    def size(axis: int) -> int:
        padded = case.image[1 + axis] + case.pads[axis] + case.pads[2 + axis]
        return (padded - (case.kernel[axis] - 1) * case.dilations[axis] - 1) // case.strides[axis] + 1

    return size(0), size(1)


def _sums(case: Case, a: Array, weights: Array, zero: int, zeros: Array | int) -> Array:
    """Returns exact sums (N, H, W, O) of a (N, H, W, C) by weights (O, C / groups, H, W)."""
    of_x, of_w = a.astype(np.int64) - zero, weights.astype(np.int64) - np.reshape(zeros, (-1, 1, 1, 1))
    top, left, bottom, right = case.pads
    padded = np.pad(of_x, ((0, 0), (top, bottom), (left, right), (0, 0)))
    height, width = _out_sizes(case)
    outputs, channels = case.channels[1] // case.groups, case.channels[0] // case.groups
    result = np.zeros((a.shape[0], height, width, case.channels[1]), np.int64)
    for ky, kx in np.ndindex(*case.kernel):
        y, x = ky * case.dilations[0], kx * case.dilations[1]
        seen = padded[:, y :: case.strides[0], x :: case.strides[1]][:, :height, :width]
        for group in range(case.groups):
            of_group = slice(group * outputs, (group + 1) * outputs)
            given = seen[..., group * channels : (group + 1) * channels]
            result[..., of_group] += given @ of_w[of_group, :, ky, kx].T
    return result


def _step(case: Case, a: Array, weights: Array, element: str, **more: object) -> IntegerConvolution:
    window = Window(case.kernel, case.strides, case.pads[:2], case.dilations)
    output = Tensor("y", (a.shape[0], *_out_sizes(case), case.channels[1]), element=element)
    step = IntegerConvolution(output, _tensor("x", a), weights, window=window, groups=case.groups, **more)  # type: ignore[arg-type]
    assert step.sizes == output.shape
    return step


def _tensor(name: str, array: Array) -> Tensor:
    element = {"float32": "fp32"}.get(array.dtype.name, array.dtype.name)
    return Tensor(name, array.shape, element=element)


def _run(level: str, step: NativeStep, arrays: dict[str, Array], *, plain: bool = False, threads: int = 1) -> Array:
    inputs = [_tensor(name, array) for name, array in arrays.items()]
    plan = plan_of([step], inputs, [step.output])
    return run_plan(level, plan, [*arrays.values()], threads=threads, plain_bytes=plain)[0]


def _given(rng: np.random.Generator, case: Case, number: int) -> tuple[Array, Array, Array, Array]:
    """Returns an image, weights and the zero points of both."""
    of_a, of_weights = ELEMENTS[number % 4]
    images, height, width = case.image
    a = _bytes(rng, of_a, images, height, width, case.channels[0])
    weights = _bytes(rng, of_weights, case.channels[1], case.channels[0] // case.groups, *case.kernel)
    return a, weights, _bytes(rng, of_a, 1), _bytes(rng, of_weights, (1, case.channels[1])[number // 2 % 2])


@every_level
@each_way
@pytest.mark.parametrize("threads", [1, 2])
def test_sums_are_exact(level: str, plain: bool, threads: int) -> None:
    """Of all signs, with zero points of both sides, which stand in what lies outside of the image."""
    rng = np.random.default_rng(1)
    for case in (*CASES, *DEPTHWISE):
        for number in range(4):
            a, weights, zero, zeros = _given(rng, case, number)
            found = _run(level, _step(case, a, weights, "int32"), {"x": a}, plain=plain, threads=threads)
            np.testing.assert_array_equal(found, _sums(case, a, weights, 0, 0))
            step = _step(case, a, weights, "int32", zero=_tensor("z", zero), zeros=zeros)
            found = _run(level, step, {"x": a, "z": zero}, plain=plain, threads=threads)
            np.testing.assert_array_equal(found, _sums(case, a, weights, int(zero[0]), zeros.astype(np.int64)))


@every_level
@pytest.mark.parametrize("element", ["uint8", "int8", "fp32"])
def test_ends(level: str, element: str) -> None:
    """Factors, biases, residuals, programs; bytes are the nearest, exactly."""
    rng, sums, added = np.random.default_rng(2), operand(0), operand(1)
    for number, case in enumerate((*CASES, *DEPTHWISE)):
        a, weights, zero, _ = _given(rng, case, number % 2)
        outputs = case.channels[1]
        factors = (2.0 ** rng.integers(-11, -5, (1, outputs)[number % 2])).astype(np.float32)  # exact products
        bias = (rng.integers(-9, 9, outputs) / 4).astype(np.float32) if number % 3 else None
        whole = rng.integers(-500, 500, outputs).astype(np.int32)
        exact = _sums(case, a, weights, int(zero[0]), 0)
        residual, numbers = (rng.integers(-9, 9, shape).astype(np.float32) for shape in (exact.shape, outputs))
        x = (exact + whole) * factors.astype(np.float64) + (0 if bias is None else bias)
        ends = (
            (Epilogue(), x),
            (Epilogue(("relu", sums)), np.maximum(x, 0)),
            (Epilogue(("min", ("max", sums, ("const", -7.0)), ("const", 60.0))), np.clip(x, -7, 60)),
            (Epilogue(("add", sums, added), _tensor("r", residual)), x + residual),
            (Epilogue(("mul", ("abs", sums), operand(2)), None, numbers), np.abs(x) * numbers),
        )
        for to, (end, wanted) in zip((0, 3, 120, 7, 1), ends, strict=True):
            step = _step(
                case, a, weights, element, zero=zero, whole_bias=whole, factors=factors, bias=bias, epilogue=end,
                output_zero=to,
            )  # fmt: skip
            arrays = {"x": a} | ({} if end.residual is None else {"r": residual})
            if element != "fp32":
                limits = np.iinfo(element)
                wanted = np.clip(np.rint(wanted) + to, limits.min, limits.max)
            np.testing.assert_array_equal(_run(level, step, arrays), wanted.astype(np.float32))


@every_level
@pytest.mark.parametrize("threads", [1, 2])
def test_lines_of_bytes(level: str, threads: int) -> None:
    """One and two terms of either sign, of odd sizes; the nearest within bounds, ties to even."""
    rng = np.random.default_rng(5)
    for number, size in enumerate((1, 15, 64, 130, 1000)):
        for elements in (("uint8", "int8"), ("int8", "uint8"), ("uint8",)):
            arrays = {f"x{i}": _bytes(rng, element, size) for i, element in enumerate(elements)}
            terms = tuple(
                ByteTerm(_tensor(name, one), int(rng.integers(0, 100)), float(2.0 ** -rng.integers(0, 4)))
                for name, one in arrays.items()
            )
            x = sum((arrays[term.x.name].astype(np.int64) - term.zero) * term.factor for term in terms)
            for element, zero, least, most in (("uint8", 9, 9, 255), ("int8", -3, -128, 100)):
                step = ByteLine(Tensor("y", (size,), element=element), terms, zero, least, most)
                found = _run(level, step, arrays, threads=threads)
                np.testing.assert_array_equal(found, np.clip(np.rint(x) + zero, least, most), f"{number}")


@every_level
@pytest.mark.parametrize("threads", [1, 2])
def test_lines_with_numbers_of_the_last_axis(level: str, threads: int) -> None:
    """Rows shorter and longer than what is made at once; too large a number is refused, and one of another axis."""
    rng = np.random.default_rng(9)
    for shape in ((7, 1), (3, 5, 19), (2, 64), (5, 130), (40, 192)):
        x, added = _bytes(rng, "uint8", *shape), (rng.integers(-90, 90, shape[-1]) / 4).astype(np.float32)
        term, output = ByteTerm(_tensor("x", x), 100, 0.25), Tensor("y", shape, element="uint8")
        found = _run(level, ByteLine(output, (term,), 9, 3, 250, added), {"x": x}, threads=threads)
        np.testing.assert_array_equal(found, np.clip(np.rint((x - 100.0) * 0.25 + added) + 9, 3, 250))
        for wrong in (np.full(shape[-1], 2.0**29, np.float32), np.ones(shape[-1] + 1, np.float32)):
            with pytest.raises(RefusedError):
                _run(level, ByteLine(output, (term,), 9, 3, 250, wrong), {"x": x})


SQUARE: Expression = ("saturated_uint8", ("round", ("div", ("mul", operand(0), operand(0)), ("const", 99.0))))


def _squared(x: Array) -> Array:
    wide = x.astype(np.int64)
    return np.clip(np.rint(wide * wide / 99), 0, 255)


@every_level
@pytest.mark.parametrize("threads", [1, 2])
def test_tables_of_bytes(level: str, threads: int) -> None:
    """The bytes are of both signs, and their sizes are odd."""
    rng = np.random.default_rng(7)
    for size in (1, 15, 64, 129, 5000):
        for element in ("uint8", "int8"):
            x = _bytes(rng, element, size)
            step = ByteTable(Tensor("y", (size,), element="uint8"), _tensor("x", x), SQUARE)
            np.testing.assert_array_equal(_run(level, step, {"x": x}, threads=threads), _squared(x))


@every_level
@each_way
def test_bytes_of_sums_are_looked_up_last(level: str, plain: bool) -> None:
    """Behind ends of bounds and behind programs, dense and depthwise."""
    rng = np.random.default_rng(8)
    for number, case in enumerate((*CASES, *DEPTHWISE)):
        a, weights, zero, _ = _given(rng, case, number % 2)
        factors = (2.0 ** rng.integers(-11, -5, case.channels[1])).astype(np.float32)
        x = _sums(case, a, weights, int(zero[0]), 0) * factors.astype(np.float64)
        for end, ended in ((operand(0), x), (("abs", operand(0)), np.abs(x))):
            step = _step(
                case, a, weights, "uint8", zero=zero, factors=factors, epilogue=Epilogue(end), output_zero=9,
                table=SQUARE,
            )  # fmt: skip
            wanted = _squared(np.clip(np.rint(ended) + 9, 0, 255))
            np.testing.assert_array_equal(_run(level, step, {"x": a}, plain=plain), wanted)


@every_level
def test_pools_of_bytes(level: str) -> None:
    """The largest of windows that reach beyond the image, some of them wholly: these hold the least byte."""
    rng = np.random.default_rng(6)
    for case in (CASES[0], CASES[1], CASES[2], CASES[8], DEPTHWISE[6]):
        for element in ("uint8", "int8"):
            x = _bytes(rng, element, *case.image, case.channels[0])
            top, left, bottom, right = case.pads
            padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=np.iinfo(element).min)
            (height, width), wanted = _out_sizes(case), []
            for ky, kx in np.ndindex(*case.kernel):
                seen = padded[:, ky * case.dilations[0] :: case.strides[0], kx * case.dilations[1] :: case.strides[1]]
                wanted.append(seen[:, :height, :width])
            output = Tensor("y", (case.image[0], height, width, case.channels[0]), element=element)
            window = Window(case.kernel, case.strides, case.pads[:2], case.dilations)
            found = _run(level, BytePooling(output, _tensor("x", x), window), {"x": x}, threads=2)
            np.testing.assert_array_equal(found, np.max(wanted, axis=0))


@every_level
def test_what_does_not_fit_is_refused(level: str) -> None:
    case = Case((1, 4, 4), (8, 6), (3, 3))
    a, weights = np.zeros((1, 4, 4, 8), np.uint8), np.zeros((6, 8, 3, 3), np.int8)
    more = Case((1, 4, 4), (8, 6), (3, 3), groups=3)
    wrong = (
        _step(Case((1, 4, 4), (8, 5), (3, 3)), a, weights, "uint8"),
        _step(case, a, weights[:, :7], "uint8"),
        _step(more, a, weights, "uint8"),
        _step(case, a, weights.astype(np.int32), "uint8"),
        _step(case, a[:, :, :, 0, None], weights, "uint8"),
        _step(case, a.astype(np.float32), weights, "uint8"),
        _step(case, a, weights, "uint8", zero=np.zeros(1, np.int8)),
        _step(case, a, weights, "uint8", zeros=np.zeros(4, np.int8)),
        _step(case, a, weights, "int32", bias=np.zeros(6, np.float32)),
        _step(case, a, weights, "int8", output_zero=128),
        _step(case, a, weights, "fp32", table=SQUARE),
        _step(case._replace(pads=(70_000, 0, 0, 0)), a, weights, "uint8"),
    )
    for step in wrong:
        with pytest.raises(RefusedError):
            _run(level, step, {"x": np.zeros([int(size) for size in step.a.shape], DTYPES[step.a.element])})
