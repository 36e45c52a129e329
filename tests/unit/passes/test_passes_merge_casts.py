# SPDX-License-Identifier: Apache-2.0
"""Two casts become one, or none, where the first loses nothing."""

import itertools

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given
from hypothesis import strategies as st
from passes_harness import GraphBuilder, assert_same_outputs, examples, graph, nodes, rewritten, run_onnxruntime

from nndeploy.passes.merge_casts import keeps_every_number

NAME = "merge-casts"
TYPES = {
    np.dtype(name): getattr(ir.DataType, name.upper())
    for name in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16")
} | {
    np.dtype(np.float32): ir.DataType.FLOAT,
    np.dtype(np.float64): ir.DataType.DOUBLE,
    np.dtype(ml_dtypes.bfloat16): ir.DataType.BFLOAT16,
}


def test_lossless_round_trip_disappears() -> None:
    model = graph("(float16[2] x) => (float16[2] y) { a = Cast<to = 1>(x) b = Cast<to = 10>(a) y = Neg(b) }")
    assert rewritten(NAME, model) == 1
    assert nodes(model) == ["a = Cast<to=1>(x)", "y = Neg(x)"]


def test_two_lossless_steps_become_one() -> None:
    model = graph("(float16[2] x) => (double[2] y) { a = Cast<to = 1>(x) y = Cast<to = 11>(a) }")
    assert rewritten(NAME, model) == 1
    assert nodes(model) == ["y = Cast<to=11>(x)"]


def test_first_cast_with_other_readers_stays_but_a_round_trip_is_still_cut() -> None:
    model = graph(
        "(int8[2] x) => (float[2] y, int64[2] z) { a = Cast<to = 6>(x) y = Cast<to = 1>(a) z = Cast<to = 7>(a) }"
    )
    assert rewritten(NAME, model) == 0
    model = graph("(int8[2] x) => (int8[2] y, int32[2] a) { a = Cast<to = 6>(x) b = Cast<to = 3>(a) y = Neg(b) }")
    assert rewritten(NAME, model) == 1
    assert nodes(model)[-1] == "y = Neg(x)"


@pytest.mark.parametrize(
    ("source", "first", "second"),
    [
        ("float", 10, 1),  # float16 loses
        ("float", 6, 1),  # so does int32
        ("int32", 1, 6),  # float does not hold every int32
        ("int64", 11, 7),  # double does not hold every int64
        ("int8", 2, 3),  # uint8 has no negative numbers
        ("int32", 9, 6),  # bool loses
        ("int32", 11, 3),  # out of the range of int8 a double is undefined
        ("float", 11, 6),  # and so is a float
    ],
)
def test_lossy_or_undefined_casts_stay(source: str, first: int, second: int) -> None:
    names = {1: "float", 3: "int8", 6: "int32", 7: "int64"}
    model = graph(
        f"({source}[2] x) => ({names[second]}[2] y) {{ a = Cast<to = {first}>(x) y = Cast<to = {second}>(a) }}"
    )
    assert rewritten(NAME, model) == 0


def test_wrapping_integers_wrap_the_same_way_in_one_step() -> None:
    model = graph("(int16[2] x) => (uint8[2] y) { a = Cast<to = 7>(x) y = Cast<to = 2>(a) }")
    assert rewritten(NAME, model) == 1


LIMITS = [0, 1, 2, 127, 128, 255, 256, 257, 2048, 2049, 32767, 65504, 65535, 2**24 + 1, 2**31 - 1, 2**53 + 1, 2**63 - 1]


def _numbers_at_the_limits(dtype: np.dtype) -> np.ndarray:
    if dtype.kind in "iub":
        low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        return np.array([n for n in (*LIMITS, *(-n for n in LIMITS), low, high) if low <= n <= high], dtype=dtype)
    info = ml_dtypes.finfo(dtype)
    numbers = [0, 1, -1, 1 + float(info.eps), info.max, info.tiny, info.smallest_subnormal]
    return np.array([float(number) for number in numbers]).astype(dtype)


@pytest.mark.parametrize(("source", "target"), list(itertools.permutations(TYPES, 2)), ids=str)
def test_lossless_means_that_every_number_comes_back(source: np.dtype, target: np.dtype) -> None:
    """The table against brute force on the numbers at the limits of each type."""
    array = _numbers_at_the_limits(source)
    with np.errstate(all="ignore"):
        there = array.astype(target)
        comes_back = bool((there.astype(source) == array).all())
        stays_finite = target.kind in "iub" or bool(np.isfinite(there.astype(np.float64)).all())
    if keeps_every_number(TYPES[source], TYPES[target]):
        assert comes_back
        assert stays_finite
    elif source.kind not in "iu" or target.kind not in "iu":
        assert not (comes_back and stays_finite), "the table is stricter than it has to be"


FAST = [np.dtype(t) for t in (np.bool_, np.int8, np.int32, np.int64, np.uint8, np.float16, np.float32, np.float64)]


@examples()
@given(chain=st.lists(st.sampled_from(FAST), min_size=3, max_size=4), seed=st.integers(0, 99), keep=st.booleans())
def test_outputs_stay(chain: list[np.dtype], seed: int, keep: bool) -> None:
    build = GraphBuilder(17, np.float32)
    value = x = build.input([64], chain[0])
    made = []
    for target in chain[1:]:
        value = build.node("Cast", value, to=int(TYPES[target]))
        made.append(value)
    generator = np.random.default_rng(seed)
    numbers = generator.integers(-(2**7), 2**7, 64) if chain[0].kind in "if" else generator.integers(0, 2**7, 64)
    proto = build.model(*dict.fromkeys((made[0], value))) if keep else build.model(value)
    assert_same_outputs(NAME, proto, {x: numbers.astype(chain[0])}, tolerance=0, run=run_onnxruntime)
