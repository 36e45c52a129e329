# SPDX-License-Identifier: Apache-2.0
"""The kernel library refuses a plan whose step does not fit its tensors: it reads and writes nothing of it."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from kernel_library import LEVELS_HERE, RefusedError, plan_of, run_plan
from nndeploy_native.expressions import Expression, operand
from nndeploy_native.plan import DTYPES
from nndeploy_native.plan_writer import PlanWriter
from nndeploy_native.steps.attention import Attention
from nndeploy_native.steps.bytes import ByteLine, ByteMean, ByteTerm, ByteTimes, Quantise
from nndeploy_native.steps.convolution import Convolution, Window, Windows
from nndeploy_native.steps.elementwise import Operand
from nndeploy_native.steps.grams import Grams, GramTables, TextGrams, Tokens
from nndeploy_native.steps.indexed import OneHot, Picked, ReverseSequence, Scattered, Triangle
from nndeploy_native.steps.integer_convolution import IntegerConvolution
from nndeploy_native.steps.integer_product import IntegerProduct
from nndeploy_native.steps.inverted_residual import InvertedResidual
from nndeploy_native.steps.matmul import BitWeights, DoubleProduct, OfBlocks, Product
from nndeploy_native.steps.movement import (
    Append,
    Convert,
    Gather,
    Move,
    PaddedAt,
    PaddedCopy,
    PaddedImage,
    StridedCopy,
    View,
    ViewAt,
)
from nndeploy_native.steps.normalisation import InstanceNorm, Normalise
from nndeploy_native.steps.pairwise_shares import PairwiseShares
from nndeploy_native.steps.pooling import PooledPlaces, Pooling
from nndeploy_native.steps.recurrent import Recurrent, States
from nndeploy_native.steps.reduction import AlongAxis
from nndeploy_native.steps.resize import KEPT, Resize, ResizeAxis, ResizedAxis
from nndeploy_native.steps.sampling import AffineGrid, GridSample, RoiAlign, RoiMaxPool
from nndeploy_native.steps.separable import Separable
from nndeploy_native.steps.step import Epilogue, NativeStep
from nndeploy_native.steps.trees import LEAF, Trees, TreeTables
from nndeploy_native.tensors import Array, Layout, Tensor, fixed_shape

from nndeploy.backend_kit.kernels.resize_tables import Mode

FAR = 2**40


def t(name: str, *shape: int, element: str = "fp32") -> Tensor:
    return Tensor(name, shape, element=element)


def image(name: str, *shape: int) -> Tensor:
    """Returns a tensor in blocks of channels."""
    return Tensor(name, shape, Layout.BLOCKED)


def zeros(*shape: int, dtype: str = "float32") -> Array:
    return np.zeros(shape, dtype)


def run(step: NativeStep) -> None:
    """Runs a step with zeros; what it reads and gives in blocks is plain outside."""
    read = [*dict.fromkeys(step.inputs)]
    plain = [replace(one, name=f"p {one.name}", layout=Layout.PLAIN) if one.is_blocked else one for one in read]
    steps: list[NativeStep] = [Convert(a, b) for a, b in zip(read, plain, strict=True) if a != b]
    output = replace(step.output, name="p y", layout=Layout.PLAIN)
    steps += [step, Convert(output, step.output)] if step.output.is_blocked else [step]
    made = output if step.output.is_blocked else step.output
    arrays = [np.zeros(fixed_shape(one.shape), DTYPES[one.element]) for one in plain]
    run_plan(LEVELS_HERE[0], plan_of(steps, plain, [made]), arrays)


X, WHOLE = t("x", 3, 4, 5), t("x", 3, 4, 5, element="int64")


def _along_axes() -> Iterator[NativeStep]:
    lrn = {"window": 3, "alpha": 0.1, "beta": 0.75, "bias": 1.0}
    for sizes in ((3, 4, 4), (3, 0, 5), (-3, -4, 5)):
        yield AlongAxis(t("y", 3, 5), X, "reduce_sum", *sizes)
    yield AlongAxis(t("y", 3, 5), X, "reduce_max", FAR, 4, FAR)
    none: dict[str, float] = {}
    for kind, shape, numbers, element, x in (
        ("reduce_mean", (3, 6), none, "fp32", X), ("reduce_sum", (3, 5), none, "int64", X),
        ("reduce_l2", (3, 5), none, "int64", WHOLE), ("softmax", (3, 4, 6), none, "fp32", X),
        ("softmax", (3, 4, 5), none, "int64", WHOLE), ("arg_max", (3, 5), {"is_last": 0}, "fp32", X),
        ("arg_max", (3, 5), {"is_last": 2}, "int64", X), ("arg_min", (3, 1, 4), {"is_last": 0}, "int64", X),
        ("hardmax", (3, 4, 5), none, "int64", X),
        ("cumulate", (3, 4, 5), {"is_exclusive": 0, "is_reverse": 3}, "fp32", X),
        ("cumulate", (3, 4, 5), {"is_exclusive": 0, "is_reverse": 0}, "int64", X),
        ("top_places", (3, 5, 5), {"is_smallest": 0}, "int64", X),
        ("top_places", (3, 1), {"is_smallest": 0}, "int64", X),
        ("top_places", (3, 2, 5), {"is_smallest": 0}, "fp32", X),
        ("lrn", (3, 4, 5), {**lrn, "window": 0}, "fp32", X), ("lrn", (3, 4, 5), {**lrn, "window": 257}, "fp32", X),
        ("lrn", (3, 4, 5), {**lrn, "alpha": 1e300}, "fp32", X), ("lrn", (3, 4, 5), lrn, "fp32", WHOLE),
    ):  # fmt: skip
        yield AlongAxis(t("y", *shape, element=element), x, kind, 3, 4, 5, numbers)


def _norms() -> Iterator[NativeStep]:
    y = t("y", 3, 4, 5)
    yield Normalise(y, X, "standard", 12, 5, 1, parts=2)
    yield Normalise(y, X, "standard", 12, 5, 1, parts=0)
    yield Normalise(y, X, "l2", 12, 5, 1, scale=X, parts=5)
    yield Normalise(y, X, "rms", 12, 5, 1, bias=X, groups=FAR, parts=5)
    yield Normalise(y, X, "rms", 12, 5, 1, epsilon=1e300)
    yield Normalise(replace(y, element="int64"), WHOLE, "rms", 12, 5, 1)
    x, s, b, made = image("x", 1, 18, 2, 3), t("s", 18), t("b", 18), image("y", 1, 18, 2, 3)
    short = Epilogue(operand(2), channel=zeros(16))
    yield InstanceNorm(made, replace(x, layout=Layout.PLAIN), s, b, 1e-5, Epilogue())
    yield InstanceNorm(image("y", 1, 18, 3, 2), x, s, b, 1e-5, Epilogue())
    yield InstanceNorm(made, x, t("s", 17), b, 1e-5, Epilogue())
    yield InstanceNorm(made, x, s, t("b", 2, 18), 1e-5, Epilogue())
    yield InstanceNorm(made, x, s, b, 1e-5, short)


def _appended() -> Iterator[NativeStep]:
    past = t("past", 2, 3, 7, 5)
    for shape, count, element, length in (
        ((2, 3, 2, 5), 3, "int32", 9), ((2, 3, 2, 5), 2, "int32", 1), ((2, 3, 2, 5), 2, "int32", 10),
        ((2, 3, 2, 5), 2, "int32", -1), ((2, 4, 2, 5), 2, "int32", 9), ((2, 3, 2, 5), 2, "bool", 9),
    ):  # fmt: skip
        places = t("places", count, element=element)
        yield Append(t("y", 2, 3, 9, 5), past, t("new", *shape), 2, places, length)


def _attention() -> Iterator[NativeStep]:
    q, k, v = (View.of(t(name, 2, *shape)) for name, shape in (("q", (5, 8)), ("k", (21, 8)), ("v", (21, 9))))
    k = k.transposed((0, 2, 1))
    step = Attention(t("y", 2, 5, 9), q, k, v, ("add", operand(0), operand(1)), (Operand((1,), None, zeros(1)),))
    yield replace(step, q=replace(q, offset=1))
    yield replace(step, k=replace(k, offset=1))
    yield replace(step, v=replace(v, offset=1))
    yield replace(step, q=replace(q, sizes=(2, 5, 9)))
    yield replace(step, v=replace(v, sizes=(2, 22, 9)))
    yield replace(step, others=(Operand((5, 20), t("m", 5, 20)),))
    yield replace(step, strides=(5, 9, 1))
    for name, element in (("q", "fp16"), ("k", "int64"), ("v", "int64")):
        view = getattr(step, name)
        yield replace(step, **{name: replace(view, base=replace(view.base, element=element))})


def _bits() -> Iterator[NativeStep]:
    numbers, blocks = zeros(64 * 40 // 2, dtype="uint8"), OfBlocks(zeros(80) + 1, 1, 2)
    good = BitWeights(numbers, 4, False, 64, 40, (1, 64), 32, blocks, OfBlocks(zeros(40, dtype="uint8"), 1, 2))
    halves = BitWeights(zeros(64 * 40, dtype="float16"), 16, False, 64, 40, (1, 64), 64, None)
    for weights in (
        replace(good, numbers=good.numbers[:-1]), replace(good, inner=65), replace(good, steps=(1, 65)),
        replace(good, scales=replace(blocks, numbers=blocks.numbers[:-1])), replace(good, bits=5),
        replace(good, scales=replace(blocks, block_step=41)), replace(good, columns=2**30, inner=2**30, steps=(1, 1)),
        replace(halves, numbers=halves.numbers[:-1]), replace(good, zero=16), replace(good, bits=16),
        replace(good, scales=None), replace(halves, bits=8), replace(halves, scales=blocks),
        replace(halves, is_signed=True), replace(good, block=0), replace(good, steps=(0, 1)),
        replace(good, steps=(1, 2**31)), replace(good, bits=2), replace(halves, rounds_rows=True),
    ):  # fmt: skip
        inner = weights.inner if weights.inner < 1000 else 64
        yield Product(t("y", 2, weights.columns), View.of(t("x", 2, inner)), weights)
    yield Product(t("y", 2, 40), View.of(t("x", 2, 65)), good)


def _bytes() -> Iterator[NativeStep]:
    output, x = t("y", 2, 5, 3, element="uint8"), t("x", 2, 3, 5)
    for scale in (2.0**-61, -0.5, float("nan")):
        yield Quantise(output, x, scale, 3, 2, 3, 5)
    for zero, *sizes in ((256, 2, 3, 5), (3, 1, 3, 5), (3, 2, 5, 3), (3, 2, 3, 4), (3, 2, 0, 5), (3, 30, 1, 0)):
        yield Quantise(output, x, 0.5, zero, *sizes)
    yield Quantise(t("y", 2, 5, 3), x, 0.5, 3, 2, 3, 5)
    yield Quantise(t("y", 2, 5, 2, element="uint8"), x, 0.5, 3, 2, 3, 5)
    yield Quantise(output, replace(x, element="int32"), 0.5, 3, 2, 3, 5)
    row = t("x", 5, 19, element="uint8")
    for wrong in (np.full(19, 2.0**29, np.float32), zeros(20) + 1):
        yield ByteLine(replace(row, name="y"), (ByteTerm(row, 100, 0.25),), 9, 3, 250, wrong)
    image, numbers = t("x", 2, 4, 6, element="uint8"), t("b", 2, 1, 6)
    for of, by in ((image, t("b", 2, 1, 5)), (image, t("b", 3, 1, 6)), (t("x", 2, 5, 6, element="uint8"), numbers)):
        yield ByteTimes(replace(image, name="y"), of, by, 3, 0.5, 4)
    yield ByteTimes(replace(image, name="y"), image, replace(numbers, element="int32"), 3, 0.5, 4)
    yield ByteTimes(t("y", 2, 4, 6), image, numbers, 3, 0.5, 4)
    yield ByteTimes(replace(image, name="y"), image, numbers, 256, 0.5, 4)
    yield ByteMean(t("y", 2, 5), image, 3, 0.5)
    yield ByteMean(t("y", 2, 6), image, 256, 0.5)
    yield ByteMean(t("y", 2, 6, element="uint8"), image, 3, 0.5)


def _of_bytes() -> Iterator[NativeStep]:
    a, weights, y = t("x", 3, 8, element="uint8"), zeros(8, 5, dtype="int8"), t("y", 3, 5, element="uint8")
    yield IntegerProduct(t("y", 3, 4, element="uint8"), a, weights)
    yield IntegerProduct(y, a, weights[:7])
    yield IntegerProduct(y, a, weights, t("z", 2, element="uint8"))
    yield IntegerProduct(y, a, weights, t("z", 1, element="int8"))
    yield IntegerProduct(y, a, weights, zeros=zeros(3, dtype="int8"))
    yield IntegerProduct(y, a, weights, zeros=zeros(5, dtype="uint8"))
    yield IntegerProduct(y, a, weights, whole_bias=zeros(4, dtype="int32"))
    yield IntegerProduct(y, a, weights, factors=zeros(4))
    yield IntegerProduct(y, a, weights, factor=t("z", 4))
    yield IntegerProduct(y, a, weights, bias=zeros(6))
    yield IntegerProduct(y, a, weights, output_zero=-1)
    yield IntegerProduct(replace(y, element="int8"), a, weights, output_zero=128)
    yield IntegerProduct(replace(y, element="int32"), a, weights, bias=zeros(5))
    yield IntegerProduct(replace(y, element="bool"), a, weights)
    yield IntegerProduct(y, a, weights.reshape(8, 5, 1))
    yield IntegerProduct(y, a, weights.astype(np.int32))
    a, weights, y = t("x", 1, 4, 4, 8, element="uint8"), zeros(6, 8, 3, 3, dtype="int8"), t("y", 1, 2, 2, 6)
    y = replace(y, element="uint8")
    good = IntegerConvolution(y, a, weights, window=Window((3, 3)))
    yield replace(good, output=t("y", 1, 2, 2, 5, element="uint8"))
    yield replace(good, weights=weights[:, :7])
    yield replace(good, groups=3)
    yield replace(good, weights=weights.astype(np.int32))
    yield replace(good, a=t("x", 1, 4, 4, 1, element="uint8"))
    yield replace(good, a=replace(a, element="fp32"))
    yield replace(good, zero=zeros(1, dtype="int8"))
    yield replace(good, zeros=zeros(4, dtype="int8"))
    yield replace(good, output=replace(y, element="int32"), bias=zeros(6))
    yield replace(good, output=replace(y, element="int8"), output_zero=128)
    square: Expression = ("saturated_uint8", ("mul", operand(0), operand(0)))
    yield replace(good, output=replace(y, element="fp32"), table=square)
    yield replace(good, window=Window((3, 3), pads=(70_000, 0)), output=t("y", 1, 70_002, 2, 6, element="uint8"))


def _convolutions() -> Iterator[NativeStep]:
    x, hidden, other, y = (image(name, 1, 8, 5, 5) for name in ("xb", "h", "g", "yb"))
    low, plain, kernel = replace(hidden, shape=(1, 8, 4, 5)), t("x", 1, 8, 5, 5), Window((3, 3), pads=(1, 1))
    expand = Convolution(low, x, zeros(8, 8, 1, 1), None, Window((1, 1)))
    first = Convolution(other, hidden, zeros(8, 1, 3, 3), None, kernel, 8)
    second = Convolution(y, other, zeros(8, 8, 1, 1), None, Window((1, 1)))
    yield InvertedResidual(expand, Separable(replace(first, x=low), second))
    yield InvertedResidual(expand, Separable(first, second))
    yield Separable(replace(first, x=plain, window=replace(kernel, pads=(1, -1))), second)
    yield Separable(replace(first, x=plain), replace(second, x=low))
    yield replace(second, x=x, is_transposed=True, weights=zeros(8, 7, 3, 3), window=kernel)
    yield replace(second, x=plain, is_transposed=True)


def _indexed() -> Iterator[NativeStep]:
    n, u, f, y = t("n", 2, 2, element="int32"), t("u", 2, 2), t("f", 2, 2), t("y", 3, 4, 5)
    three, lengths = t("m", 3, 9, 5, element="int64"), t("n", 5, element="int64")
    for kind, shape, numbers, axis in (
        ("gather", (3, 2, 2, 5), f, 1), ("gather", (3, 2, 2, 4), n, 1), ("gather", (3, 2, 2, 5), n, 3),
        ("gather_elements", (2, 2), n, 1), ("gather_elements", (3, 9, 5), three, 0),
        ("gather_elements", (3, 9, 4), three, 1), ("gather_elements", (3, 9, 5), three, 3),
        ("gather_nd", (2, 4), n, 0), ("gather_nd", (2, 5), n, 1), ("gather_nd", (2,), n, 2),
        ("gather_nd", (3, 9, 4), three, 1),
    ):  # fmt: skip
        yield Picked(kind, t("y", *shape), X, numbers, axis)
    yield Scattered(y, X, n, u, "none", 1)
    yield Scattered(y, X, three, t("u", 3, 9, 4), "none", 1)
    yield Scattered(y, X, three, t("u", 3, 9, 5), "none", 0)
    yield Scattered(t("y", 3, 4, 4), X, three, t("u", 3, 9, 5), "none", 1)
    yield Scattered(y, X, n, u, "add", None)
    yield Scattered(y, X, f, t("u", 2, 5), "add", None)
    yield Scattered(y, X, three, u, "add", None)
    yield Scattered(t("y", 3, 4), X, n, t("u", 2, 5), "add", None)
    yield Scattered(y, X, three, t("u", 3, 9, 5, element="int32"), "none", 1)
    truths = (replace(one, element="bool") for one in (y, X))
    yield Scattered(*truths, three, t("u", 3, 9, 5, element="bool"), "add", 1)
    for shape, numbers, count, axis in (
        ((2, 7, 3), n, 2, 1), ((2, 7, 2), n, 1, 1), ((2, 7, 2), n, 2, 3), ((2, 7, 2), f, 2, 1),
    ):  # fmt: skip
        yield OneHot(t("y", *shape), numbers, t("v", count), axis)
    yield ReverseSequence(y, X, lengths, is_time_first=True)
    yield ReverseSequence(t("y", 3, 4), X, t("n", 4, element="int64"), is_time_first=True)
    yield ReverseSequence(y, X, t("n", 4), is_time_first=True)
    yield Triangle(t("y", 3, 4), X, 0, is_upper=True)
    yield Triangle(y, X, n, is_upper=True)
    yield Triangle(y, X, t("n", 1), is_upper=True)
    yield Triangle(t("y", 7), t("x", 7), 0, is_upper=True)


def _views() -> Iterator[NativeStep]:
    x, numbers = t("x", 3, 6), t("n", 4, element="int64")
    for offset, sizes, strides, out in (
        (0, (4, 6), (6, 1), (4, 6)), (-1, (3, 6), (6, 1), (3, 6)), (1, (3, 6), (6, 1), (3, 6)),
        (0, (3, 6), (-6, 1), (3, 6)), (0, (6, 3), (1, 7), (6, 3)), (0, (3, 6), (6, 1), (3, 5)),
        (0, (3, 6), (6, 1), (4, 6)), (0, (3, 6), (FAR, FAR), (3, 6)), (0, (3, 6), (FAR, -FAR), (3, 6)),
        (0, (FAR, FAR), (0, 0), (3, 6)),
    ):  # fmt: skip
        yield StridedCopy(t("y", *out), View(x, offset, sizes, strides))
    for offset, sizes, strides, begins, out in (
        (0, (4, 6), (6, 1), (0, 0), (4, 6)), (-1, (3, 6), (6, 1), (0, 0), (3, 6)), (0, (3, 6), (6, 2), (0, 0), (3, 6)),
        (0, (3, 6), (-6, 1), (0, 0), (3, 6)), (0, (3, 6), (6, 1), (1, 0), (3, 6)), (0, (3, 6), (6, 1), (-1, 0), (4, 6)),
        (0, (1, 1), (FAR, FAR), (FAR, 0), (3, 6)), (0, (3, 6), (FAR, FAR), (0, 0), (3, 6)),
    ):  # fmt: skip
        yield PaddedCopy(t("y", *out), View(x, offset, sizes, strides), begins)
    for offset, sizes, strides, which, element in (
        (0, (4, 6), (6, 1), (0, 1), "int64"), (1, (3, 6), (6, 1), (0, 1), "int64"),
        (0, (3, 6), (6, FAR), (0, 1), "int64"), (0, (3, 6), (6, 1), (0, 4), "int64"),
        (0, (3, 6), (6, 1), (0, 1), "fp32"),
    ):  # fmt: skip
        yield PaddedAt(t("y", 4, 6), View(x, offset, sizes, strides), replace(numbers, element=element), which)
    two = t("n", 2, element="int64")
    for sizes, move in (
        ((3, 3), Move(0, 6, 1, 0, 4)), ((3, 3), Move(0, 6, 1, -1, 3)), ((3, 3), Move(0, 6, 1, 3, 2)),
        ((3, 3), Move(0, 6, -1, 0, 1)), ((3, 3), Move(2, 6, 1, 0, 3)), ((3, 3), Move(0, 0, 1, 0, 3)),
        ((3, 3), Move(0, 6, FAR, 0, FAR)), ((3, 3), Move(0, 6, FAR, -(2**39), 2**39)), ((3, 4), Move(0, 6, 1, 0, 3)),
    ):  # fmt: skip
        yield ViewAt(t("y", 3, 3), View(x, 0, sizes, (6, 1)), two, (move,))
    yield ViewAt(t("y", 3, 3), View(x, 0, (3, 3), (6, 1)), t("n", 2), (Move(0, 6, 1, 0, 3),))


def _images() -> Iterator[NativeStep]:
    x = image("x", 1, 3, 3, 5)
    for rows, columns, out in (
        ((0, 0, 4), (0, 0, 5), (1, 3, 4, 5)), ((0, 1, 3), (0, 0, 5), (1, 3, 4, 5)),
        ((0, -1, 3), (0, 0, 5), (1, 3, 4, 5)),
        ((-1, 0, 3), (0, 0, 5), (1, 3, 4, 5)), ((2, 0, 3), (0, 0, 5), (1, 3, 4, 5)),
        ((0, 0, 3), (9, 0, 5), (1, 3, 4, 5)),
        ((0, 0, 3), (0, 0, 0), (1, 3, 4, 5)), ((0, 0, 3), (0, 0, 5), (1, 4, 4, 5)),
        ((0, 0, 3), (0, 0, 5), (2, 3, 4, 5)),
    ):  # fmt: skip
        yield PaddedImage(image("y", *out), x, rows, columns)
    x, five = image("x", 1, 3, 4, 1), np.array([3, 1, 2, 11, 7, 0])
    yield Gather(t("y", 5), x, five)
    yield Gather(t("y", 7), x, five)
    yield Picked("gather", t("y", 2, 12), x, t("n", 2, element="int32"), 0)
    for place, given in (
        (place, given) for place in (-2, 12, 2**31 - 1, -(2**31)) for given in (x, t("x", 1, 3, 4, 1))
    ):
        yield Gather(t("y", 5), given, np.array([0, 3, 1, place, 5]))
    x, other, y = image("x", 1, 3, 4, 4), image("y", 1, 4, 4, 4), image("y", 1, 3, 4, 4)
    yield Pooling(other, x, Window((1, 1)), (0, 0), "max")
    yield Pooling(y, x, Window((1, 1), pads=(-1, 0)), (0, 0), "max")
    yield Pooling(y, x, Window((0, 1)), (0, 0), "mean")
    yield Pooling(y, x, Window((1, 1)), (0, 0), "max", depth=3)
    yield Pooling(y, x, Window((1, 1)), (0, 0), "max", depth=0)
    numbers, windows = t("y", 1, 3, 3, 3, element="int64"), Windows((2, 2), (1, 1), (1, 1), (0, 0), (0, 0))
    good = PooledPlaces(numbers, t("x", 1, 3, 4, 4), windows, False)
    yield replace(good, output=replace(numbers, shape=(2, 3, 3, 3)))
    yield replace(good, output=replace(numbers, shape=(1, 3, 9)))
    yield replace(good, output=replace(numbers, element="int32"))
    yield replace(good, windows=replace(windows, kernel=(0, 2)))
    yield replace(good, windows=replace(windows, begins=(-1, 0)))
    yield replace(good, windows=replace(windows, strides=(0, 1)))


def _resized() -> Iterator[NativeStep]:
    x, rule, linear = image("x", 1, 3, 4, 6), ResizedAxis(), Mode("linear", "half_pixel", "floor", -0.75, False, False)
    y = image("y", 1, 3, 8, 6)
    for shape, depth in (((1, 4, 4, 6), 1), ((2, 3, 4, 6), 1), ((1, 3, 8, 6), 3), ((1, 3, 9, 6), 2), ((1, 3, 8, 6), 0)):
        yield Resize(image("y", *shape), x, linear, rule, rule, depth)
    yield Resize(y, x, replace(linear, antialias=True), ResizedAxis(0.001), rule)  # far more taps than places
    yield Resize(y, x, linear, ResizedAxis(float("nan")), rule)
    yield Resize(y, x, replace(linear, cubic=float("inf")), rule, rule)
    yield Resize(y, x, linear, rule, ResizedAxis(-1.0))
    yield Resize(t("y", 1, 3, 8, 6), x, linear, rule, rule)
    plain = t("x", 1, 3, 4, 6)
    for shape, axis in (((1, 3, 5, 7), 2), ((1, 3, 4, 6, 1), 2), ((1, 3, 4, 6), 4), ((1, 3, 4, 2**30), 3)):
        yield ResizeAxis(t("y", *shape), plain, axis, linear, rule)
    yield ResizeAxis(image("y", 1, 3, 5, 6), plain, 2, linear, KEPT)


def _sampled() -> Iterator[NativeStep]:
    x, out, rois = image("x", 2, 3, 4, 6), image("y", 2, 3, 5, 5), t("r", 2, 4)
    sample = GridSample(out, x, t("g", 2, 5, 5, 2), 2, "linear", "zeros", False)
    align = RoiAlign(out, x, rois, t("i", 2, element="int64"), False, 0, 1.0, 0.0, False)
    yield replace(sample, output=replace(out, shape=(2, 4, 5, 5)))
    yield replace(sample, output=replace(out, shape=(2, 3, 5, 4)))
    yield replace(sample, axes=3, depth=2)
    yield replace(sample, depth=2)
    yield replace(sample, depth=0)
    yield replace(align, output=replace(out, shape=(3, 3, 5, 5)))
    yield replace(align, output=replace(out, shape=(2, 4, 5, 5)))
    yield replace(align, samples=65)
    yield replace(align, scale=float("nan"))
    yield replace(align, images=t("i", 3, element="int64"))
    yield RoiMaxPool(out, x, rois, 1.0)
    yield AffineGrid(t("y", 2, 4, 5, 3), t("m", 2, 2, 3), False)
    yield AffineGrid(t("y", 3, 4, 5, 2), t("m", 2, 2, 3), False)


def _trees() -> Iterator[NativeStep]:
    stump = TreeTables(
        np.array([[0, 0, 1]], np.int32), np.array([0.5, 0, 0], np.float32),
        np.array([[1, 1, 3], [0, 0, LEAF], [0, 1, LEAF]], np.int32), np.array([1, 2], np.float32),
    )  # fmt: skip

    def changed(name: str, place: tuple[int, int], number: int) -> TreeTables:
        array = getattr(stump, name).copy()
        array[place] = number
        return replace(stump, **{name: array})

    wrong = [
        *(changed("nodes", (0, 1), child) for child in (0, 2, 3, -1, 2**31 - 1)),
        *(changed("nodes", (0, 0), feature) for feature in (2, -1)),
        *(changed("nodes", (0, 2), relations) for relations in (16, -2)),
        *(changed("nodes", (2, 1), leaf) for leaf in (2, -1)), *(changed("trees", (0, 0), root) for root in (3, -1)),
        *(changed("trees", (0, 1), first) for first in (1, -1)), *(changed("trees", (0, 2), count) for count in (0, 2)),
        *(replace(stump, trees=np.array([[0, 0, 1], [at, 0, 1]], np.int32)) for at in (0, 2)),
        replace(stump, nodes=stump.nodes[:2]), replace(stump, leaves=stump.leaves[:1]),
    ]  # fmt: skip
    for tables in wrong:
        yield Trees(t("y", 3, 1), t("x", 3, 2), tables, "sum", 1, None)
    for x, out, base in (((3, 2), 4, None), ((3, 1), 3, None), ((3, 2), 3, zeros(2)), ((6,), 3, None)):
        yield Trees(t("y", out, 1), t("x", *x), stump, "sum", 1, base)


def _grams() -> Iterator[NativeStep]:
    pair = GramTables(
        np.array([7, 9], np.int64), np.array([-1, 0], np.int32), np.array([-1, 1], np.int32), None, False, 0, 2
    )
    twice = np.array([7, 7], np.int64)
    wrong = [
        replace(pair, parents=np.array([-2, 0], np.int32)), replace(pair, parents=np.array([0, 0], np.int32)),
        replace(pair, parents=np.array([-1, 1], np.int32)), replace(pair, columns=np.array([-2, 1], np.int32)),
        replace(pair, columns=np.array([0, 2], np.int32)), replace(pair, columns=np.array([0], np.int32)),
        replace(pair, weights=zeros(3)), replace(pair, keys=pair.keys.astype(np.int32)),
        replace(pair, keys=twice, parents=np.array([-1, -1], np.int32)),
    ]  # fmt: skip
    numbers, texts, ends = t("x", 3, 5, element="int64"), t("x", 9, element="uint8"), t("e", 3, element="int64")
    set_ = np.ones(256, np.uint8)
    tokens = Tokens(np.array([97, 98], np.uint8), np.array([1, 2], np.int32), set_, "NONE", True, 1)
    for tables in wrong:
        yield Grams(t("y", 3, 2), numbers, tables)
        yield TextGrams(t("y", 3, 2), texts, ends, tokens, tables)
    for x, out in ((t("x", 3, 5), (3, 2)), (t("x", 3, 5, element="uint8"), (3, 2)), (numbers, (2, 2)), (numbers, (2,))):
        yield Grams(t("y", *out), x, pair)
    for word_ends in ([2, 1], [1, 3], [-1, 1]):
        odd = replace(tokens, word_ends=np.array(word_ends, np.int32))
        yield TextGrams(t("y", 3, 2), texts, ends, odd, pair)
    yield TextGrams(t("y", 3, 2), texts, ends, replace(tokens, set=set_[1:]), pair)
    yield TextGrams(t("y", 3, 2), texts, ends, replace(tokens, set=set_.astype(np.int8)), pair)
    yield TextGrams(t("y", 3, 2), texts, ends, replace(tokens, words=zeros(2)), pair)
    yield TextGrams(t("y", 4, 2), texts, ends, tokens, pair)
    yield TextGrams(t("y", 3, 2), t("x", 9, element="int8"), ends, tokens, pair)
    yield TextGrams(t("y", 3, 2), texts, t("e", 3, element="int32"), tokens, pair)


def _recurrent_and_weights() -> Iterator[NativeStep]:
    weights, x, y = zeros(4, 5), View.of(t("x", 3, 4)), t("y", 3, 5)
    yield Product(y, x, weights.reshape(2, 10), None)
    yield Product(y, x, weights, None, Epilogue(("add", operand(0), operand(1)), t("r", 3, 4)))
    yield Product(y, x, weights, zeros(4))
    gates, recurrent = t("g", 2, 3, 1, 4, 4), zeros(1, 16, 4)
    yield Recurrent("lstm", t("y", 3, 3, 1, 4), gates, recurrent)
    yield Recurrent("lstm", t("y", 2, 3, 1, 4), gates, recurrent, States(t("h", 1, 2, 4)))
    of_bytes, y = recurrent.astype(np.int8), t("y", 2, 3, 1, 4)
    yield Recurrent("lstm", y, gates, of_bytes, scales=zeros(1, 15))
    yield Recurrent("lstm", y, gates, of_bytes, scales=zeros(3, 1, 16))
    yield Recurrent("gru", y, t("g", 2, 3, 1, 3, 4), of_bytes[:, :12], scales=zeros(1, 12))


def _of_doubles() -> Iterator[NativeStep]:
    a, b, y = (t(name, *shape, element="fp64") for name, shape in (("a", (3, 4)), ("b", (4, 5)), ("y", (3, 5))))
    yield DoubleProduct(y, t("a", 3, 4), b, 3, 4, 5)
    yield DoubleProduct(y, a, t("b", 4, 5, element="int64"), 3, 4, 5)
    yield DoubleProduct(t("y", 3, 5), a, b, 3, 4, 5)
    for sizes in ((3, 5, 4), (4, 4, 5), (3, 4, 6), (3, 0, 5), (-3, 4, 5)):
        yield DoubleProduct(y, a, b, *sizes)
    yield AlongAxis(y, t("x", 3, 5, element="fp64"), "softmax", 3, 5, 1)
    yield AlongAxis(t("y", 3, 1, element="fp64"), y, "reduce_l2", 3, 5, 1)
    yield Product(t("y", 3, 5), View.of(a), zeros(4, 5), None)


def _shares() -> Iterator[NativeStep]:
    scores, shares, each = t("x", 4, 3), t("y", 4, 3), zeros(3)
    yield PairwiseShares(shares, scores, 4, each, each)
    yield PairwiseShares(shares, scores, 3, each, zeros(2))
    yield PairwiseShares(t("y", 5, 3), scores, 3, each, each)
    yield PairwiseShares(t("y", 4, 4), scores, 3, each, each)
    yield PairwiseShares(t("y", 4, 1), t("x", 4, 0), 1, zeros(1)[:0], zeros(1)[:0])


FAMILIES = (
    _along_axes, _norms, _appended, _attention, _bits, _bytes, _of_bytes, _convolutions, _indexed, _views, _images,
    _resized, _sampled, _trees, _grams, _recurrent_and_weights, _of_doubles, _shares,
)  # fmt: skip


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(step, id=f"{family.__name__[1:]}-{number}")
        for family in FAMILIES
        for number, step in enumerate(family())
    ],
)
def test_what_does_not_fit_is_refused(step: NativeStep) -> None:
    with pytest.raises(RefusedError):
        run(step)


PRODUCT = (3, 4, 5, 4, 0, 4, 1, 0, 5, 1, 5)
"""Rows, inner, columns, columns of b, then (offset, step of rows, step of columns) of a and b, step of output rows."""


def _of_words(numbers: tuple[int, ...], axes: tuple[int, ...]) -> None:
    writer, inputs, y = PlanWriter({}, ["a", "b"], ["y"], {}), [t("a", 3, 4), t("b", 4, 5)], t("y", 3, 5)
    words = [*(writer.tensor(one) for one in inputs), -1, -1, -1, -1, *map(writer.size, numbers), len(axes) // 4]
    writer.step("product", "product", [*words, *map(writer.size, axes), writer.tensor(y)])
    run_plan(
        LEVELS_HERE[0], (writer.finished(inputs, [y]), bytes(writer.weights.content())), [zeros(3, 4), zeros(4, 5)]
    )


@pytest.mark.parametrize(
    ("numbers", "axes"),
    [
        ((3, 4, 5, 4, 1, 4, 1, 0, 5, 1, 5), ()),  # a ends before its last row
        ((3, 4, 5, 4, 0, 4, 1, 1, 5, 1, 5), ()),  # and b
        ((3, 4, 5, 4, -1, 4, 1, 0, 5, 1, 5), ()),
        ((3, 4, 5, 4, 0, 4, 1, 0, 5, -1, 5), ()),
        ((3, 4, 5, 4, 0, 4, 0, 0, 5, 1, 5), ()),  # sums over one element
        ((3, 4, 5, 4, 0, 1 << 39, 1, 0, 5, 1, 5), ()),
        ((3, 5, 5, 5, 0, 4, 1, 0, 5, 1, 5), ()),
        ((3, 3, 5, 4, 0, 4, 1, 0, 5, 1, 5), ()),  # sums of other lengths
        ((3, 4, 5, 4, 0, 4, 1, 0, 5, 1, 4), ()),  # rows of the output that overlap
        ((3, 4, 5, 4, 0, 4, 1, 0, 5, 1, 6), ()),  # or lie apart
        ((5, 4, 3, 4, 0, 1, 1, 0, 1, 1, 3), (2, 0, 0, 15)),  # twice as many elements as the output holds
        ((3, 4, 0, 4, 0, 4, 1, 0, 5, 1, 5), ()),
        (PRODUCT, (0, 0, 0, 0)),
        ((1, 4, 5, 4, 0, 4, 1, 0, 5, 1, 5), (3, 4, 0, 0)),  # all rows in one place
        ((1, 4, 5, 4, 0, 4, 1, 0, 5, 1, 5), (3, 5, 0, 5)),  # the last row begins behind a
    ],
)
def test_matrices_that_do_not_fit_are_refused(numbers: tuple[int, ...], axes: tuple[int, ...]) -> None:
    with pytest.raises(RefusedError, match="product"):
        _of_words(numbers, axes)
    _of_words(PRODUCT, ())
