# SPDX-License-Identifier: Apache-2.0
"""Operators that move elements, from ONNX text to numbers, at fixed sizes and at sizes in ranges, against ONNX."""

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx_ir as ir
import pytest
from native_models import Array, built, dynamic, each_float_level, model_of, run
from onnx.reference import ReferenceEvaluator

from nndeploy.values.types import DimRange

RANGES = {"n": DimRange(1, 3, 1), "h": DimRange(1, 40, 40), "w": DimRange(1, 40, 40)}
SIZES = ({"n": 2, "h": 16, "w": 33}, {"n": 3, "h": 33, "w": 7}, {"n": 1, "h": 1, "w": 1})

Make = Callable[[Sequence[int]], Array]


def below(*sizes: int, element: str = "int64", least: int | None = None) -> Make:
    """Returns what makes places of an axis, or tuples of places along axes."""

    def made(shape: Sequence[int]) -> Array:
        lows = -np.array(sizes) if least is None else least
        return np.random.default_rng(sum(shape)).integers(lows, sizes, tuple(shape)).astype(element)

    return made


def check(text: str, level: str, constants: Mapping[str, Array] | None = None, **numbers: Make) -> None:
    """Compares a model whose inputs are of sizes n, h and w with ONNX: at sizes in range, and fixed at each of them."""
    model, known = dynamic(text, RANGES, constants), constants or {}
    artifact = built(model, RANGES)
    for number, sizes in enumerate(SIZES):
        given = {value.name or "": _array(value, sizes, numbers) for value in model.graph.inputs}
        _compare(model, run(artifact, given, level, threads=1 + number % 2), given)
        fixed = model_of(_with_sizes(text, sizes), known)
        _compare(fixed, run(built(fixed), given, level, threads=2 - number % 2), given)


def _array(value: ir.Value, sizes: Mapping[str, int], numbers: Mapping[str, Make]) -> Array:
    shape = [dim if isinstance(dim, int) else sizes[str(dim.value)] for dim in value.shape or ()]
    if value.name in numbers:
        return numbers[value.name](shape)
    assert value.dtype is not None
    return np.random.default_rng(sum(shape)).integers(-99, 99, shape).astype(value.dtype.numpy())


def _with_sizes(text: str, sizes: Mapping[str, int]) -> str:
    """Returns the text with the sizes of its inputs as numbers."""
    inputs, rest = text.split("=>", 1)
    return re.sub(r"(?<=[\[,])(n|h|w)(?=[\],])", lambda found: str(sizes[found[1]]), inputs) + "=>" + rest


def _compare(model: ir.Model, found: Mapping[str, Array], inputs: Mapping[str, Array]) -> None:
    wanted = ReferenceEvaluator(ir.to_proto(model)).run(None, dict(inputs))
    for value, expected in zip(model.graph.outputs, wanted, strict=True):
        what = f"{value.name} at {[array.shape for array in inputs.values()]}"
        np.testing.assert_array_equal(found[value.name or ""], expected, err_msg=what)


@each_float_level
@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("g (float[n,h,7] x, int64[w] i) => (float[p,q,r] y) { y = Gather<axis=2>(x, i) }", below(7)),
        ("g (float[n,7,w] x, int32[h] i) => (float[p,q,r] y) { y = Gather<axis=1>(x, i) }", below(7, element="int32")),
        ("g (int64[7,w] x, int64[n,h] i) => (int64[p,q,r] y) { y = Gather(x, i) }", below(7)),
        (
            """g (float[n,7,w] x) => (float[p,q,r,s] y) <int64[2,2] i = {0, -1, 3, 6}> {
            t = Transpose<perm=[0,2,1]>(x) y = Gather<axis=2>(t, i) }""",
            None,
        ),
        ("g (float[n,7,w] x, int64[n,h,w] i) => (float[p,q,r] y) { y = GatherElements<axis=1>(x, i) }", below(7)),
        ("g (bool[n,h,7] x, int64[n,h,w] i) => (bool[p,q,r] y) { y = GatherElements<axis=2>(x, i) }", below(7)),
        (
            """g (float[7,3] x) => (float[p,q] y) <int64[2,3] i = {0, -1, 3, 6, 1, 1}> {
            y = GatherElements<axis=0>(x, i) }""",
            None,
        ),
        ("g (float[7,5,w] x, int64[n,h,2] i) => (float[p,q,r] y) { y = GatherND(x, i) }", below(7, 5)),
        ("g (float[n,7,5,w] x, int64[n,h,2] i) => (float[p,q,r] y) { y = GatherND<batch_dims=1>(x, i) }", below(7, 5)),
        (
            """g (float[2,3,5] x) => (float[p,q,r] y) <int64[2,2,1] i = {0, -1, 2, 1}> {
            y = GatherND<batch_dims=1>(x, i) }""",
            None,
        ),
    ],
)
def test_numbers_pick(level: str, text: str, numbers: Make | None) -> None:
    check(text, level, **({"i": numbers} if numbers else {}))


@each_float_level
@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        (
            """g (float[n,40,w] x, int64[n,h,w] i, float[n,h,w] u) => (float[p,q,r] y) {
            y = ScatterElements<axis=1, reduction="add">(x, i, u) }""",
            below(40),
        ),
        (
            """g (float[n,h,40] x, int64[n,h,w] i, float[n,h,w] u) => (float[p,q,r] y) {
            y = ScatterElements<axis=-1, reduction="max">(x, i, u) }""",
            below(40),
        ),
        ("g (int32[40,w] x, int64[h,1] i, int32[h,w] u) => (int32[p,q] y) { y = ScatterND(x, i, u) }", below(40)),
        (
            """g (float[4,5,w] x, int64[n,h,2] i, float[n,h,w] u) => (float[p,q,r] y) {
            y = ScatterND<reduction="mul">(x, i, u) }""",
            below(4, 5),
        ),
    ],
)
def test_updates_are_put_where_numbers_say(level: str, text: str, numbers: Make) -> None:
    check(
        text,
        level,
        i=numbers,
        u=lambda shape: (
            np.random.default_rng(1).integers(-1, 2, shape).astype(np.float32)
            if "float[" in text.split("i,")[1]
            else np.arange(np.prod(shape)).reshape(shape).astype(np.int32)
        ),
    )
