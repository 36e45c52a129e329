# SPDX-License-Identifier: Apache-2.0
"""Products of bytes of the kernel library: exact sums at odd shapes, with every set of instructions, and their ends."""

import numpy as np
import pytest
from kernel_library import RefusedError, every_level, plan_of, run_plan
from nndeploy_native.expressions import operand
from nndeploy_native.steps.integer_product import IntegerProduct
from nndeploy_native.steps.step import Epilogue
from nndeploy_native.tensors import Array, Tensor

SHAPES = (
    (1, 3, 5), (1, 70, 131), (2, 300, 97), (3, 17, 2), (4, 33, 33), (7, 40, 300), (9, 16, 16), (13, 45, 64),
    (15, 31, 1), (29, 1, 40), (64, 512, 110), (131, 65, 4), (1, 1, 1), (5, 1024, 100),
)  # fmt: skip
"""Rows, inner, columns."""
ELEMENTS = (("uint8", "int8"), ("int8", "int8"), ("uint8", "uint8"), ("int8", "uint8"))
each_way = pytest.mark.parametrize("plain", [False, True])
"""With what the processor has, and with the instructions of the level alone."""


def _bytes(rng: np.random.Generator, element: str, *shape: int) -> Array:
    """Returns numbers of which many are the least and the largest."""
    limits = np.iinfo(element)
    numbers = rng.integers(limits.min, limits.max + 1, shape)
    return np.where(rng.random(shape) < 0.2, rng.choice([limits.min, limits.max], shape), numbers).astype(element)


def _tensor(name: str, array: Array) -> Tensor:
    element = {"float32": "fp32"}.get(array.dtype.name, array.dtype.name)
    return Tensor(name, array.shape, element=element)


def _run(level: str, step: IntegerProduct, arrays: dict[str, Array], *, plain: bool, threads: int = 1) -> Array:
    inputs = [_tensor(name, array) for name, array in arrays.items()]
    plan = plan_of([step], inputs, [step.output])
    return run_plan(level, plan, [*arrays.values()], threads=threads, plain_bytes=plain)[0]


def _sums(a: Array, weights: Array, zero: int = 0, zeros: Array | int = 0) -> Array:
    return (a.astype(np.int64) - zero) @ (weights.astype(np.int64) - zeros)


@every_level
@each_way
@pytest.mark.parametrize("threads", [1, 2])
def test_sums_are_exact(level: str, plain: bool, threads: int) -> None:
    """Of all signs, with zero points of both sides, weights in rows and in columns."""
    rng = np.random.default_rng(1)
    for number, (rows, inner, columns) in enumerate(SHAPES):
        of_a, of_weights = ELEMENTS[number % 4]
        a, weights = _bytes(rng, of_a, rows, inner), _bytes(rng, of_weights, inner, columns)
        zero, zeros = _bytes(rng, of_a, 1), _bytes(rng, of_weights, (1, columns)[number % 2])
        output = Tensor("y", (rows, columns), element="int32")
        for given in (weights, np.ascontiguousarray(weights.T).T):
            step = IntegerProduct(output, _tensor("x", a), given)
            np.testing.assert_array_equal(_run(level, step, {"x": a}, plain=plain, threads=threads), _sums(a, weights))
            step = IntegerProduct(output, _tensor("x", a), given, _tensor("z", zero), zeros)
            found = _run(level, step, {"x": a, "z": zero}, plain=plain, threads=threads)
            np.testing.assert_array_equal(found, _sums(a, weights, int(zero[0]), zeros.astype(np.int64)))


@every_level
def test_sums_wrap(level: str) -> None:
    """So many products that they do not fit int32."""
    a, weights = np.full((2, 70_000), 255, np.uint8), np.full((70_000, 3), -128, np.int8)
    step = IntegerProduct(Tensor("y", (2, 3), element="int32"), _tensor("x", a), weights)
    wanted = _sums(a, weights).astype(np.int32)
    for plain in (False, True):
        np.testing.assert_array_equal(_run(level, step, {"x": a}, plain=plain), wanted)


@every_level
@pytest.mark.parametrize("element", ["uint8", "int8", "fp32"])
def test_ends(level: str, element: str) -> None:
    """Factors, a factor that is a value, biases, residuals, programs; bytes are the nearest, exactly."""
    rng, sums, added = np.random.default_rng(2), operand(0), operand(1)
    for number, (rows, inner, columns) in enumerate(SHAPES[1:12]):
        a, weights = _bytes(rng, "uint8", rows, inner), _bytes(rng, "int8", inner, columns)
        factors = (2.0 ** rng.integers(-9, -3, (1, columns)[number % 2])).astype(np.float32)  # exact products
        factor = (2.0 ** rng.integers(-2, 2, (columns, 1)[number % 2])).astype(np.float32)
        bias = (rng.integers(-9, 9, columns) / 4).astype(np.float32)
        whole = rng.integers(-500, 500, columns).astype(np.int32)
        residual, numbers = (rng.integers(-9, 9, shape).astype(np.float32) for shape in ((rows, columns), columns))
        x = (_sums(a, weights) + whole) * factors.astype(np.float64) * factor + bias
        other = _tensor("r", residual)
        ends = (
            (Epilogue(), x),
            (Epilogue(("relu", sums)), np.maximum(x, 0)),
            (Epilogue(("min", ("max", sums, ("const", -1.0)), ("const", 2.0))), np.clip(x, -1, 2)),
            (Epilogue(("add", sums, added), other), x + residual),
            (Epilogue(("mul", ("abs", sums), operand(2)), None, numbers), np.abs(x) * numbers),
        )
        for zero, (end, wanted) in zip((0, 3, 0, 7, 1), ends, strict=True):
            step = IntegerProduct(
                Tensor("y", (rows, columns), element=element), _tensor("x", a), weights, whole_bias=whole,
                factors=factors, factor=_tensor("f", factor), bias=bias, epilogue=end, output_zero=zero,
            )  # fmt: skip
            arrays = {"x": a, "f": factor} | ({} if end.residual is None else {"r": residual})
            if element != "fp32":
                limits = np.iinfo(element)
                wanted = np.clip(np.rint(wanted) + zero, limits.min, limits.max)
            np.testing.assert_array_equal(_run(level, step, arrays, plain=False), wanted.astype(np.float32))


@every_level
def test_what_does_not_fit_is_refused(level: str) -> None:
    a, weights = np.zeros((3, 8), np.uint8), np.zeros((8, 5), np.int8)
    whole = Tensor("y", (3, 5), element="uint8")
    x, z = _tensor("x", a), _tensor("z", np.zeros(2, np.uint8))
    wrong = (
        IntegerProduct(Tensor("y", (3, 4), element="uint8"), x, weights),
        IntegerProduct(whole, x, weights[:7]),
        IntegerProduct(whole, x, weights, z),
        IntegerProduct(whole, x, weights, _tensor("z", np.zeros(2, np.int8))),
        IntegerProduct(whole, x, weights, zeros=np.zeros(3, np.int8)),
        IntegerProduct(whole, x, weights, zeros=np.zeros(5, np.uint8)),
        IntegerProduct(whole, x, weights, whole_bias=np.zeros(4, np.int32)),
        IntegerProduct(whole, x, weights, factors=np.zeros(4, np.float32)),
        IntegerProduct(whole, x, weights, factor=_tensor("z", np.zeros(4, np.float32))),
        IntegerProduct(whole, x, weights, bias=np.zeros(6, np.float32)),
        IntegerProduct(whole, x, weights, output_zero=-1),
        IntegerProduct(Tensor("y", (3, 5), element="int8"), x, weights, output_zero=128),
        IntegerProduct(Tensor("y", (3, 5), element="int32"), x, weights, bias=np.zeros(5, np.float32)),
        IntegerProduct(Tensor("y", (3, 5), element="bool"), x, weights),
        IntegerProduct(whole, x, weights.reshape(8, 5, 1)),
        IntegerProduct(whole, x, weights.astype(np.int32)),
    )
    for step in wrong:
        inputs = {"x": a}
        for one in step.inputs:
            if one.name == "z":
                inputs["z"] = np.zeros(
                    [int(size) for size in one.shape], "float32" if one.element == "fp32" else one.element
                )
        with pytest.raises(RefusedError):
            _run(level, step, inputs, plain=False)
