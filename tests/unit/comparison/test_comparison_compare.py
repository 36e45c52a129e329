# SPDX-License-Identifier: Apache-2.0
"""What "agrees with the reference" means, for every kind of value."""

import json
import math
from dataclasses import asdict

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from nndeploy.bundle.manifest import Tolerance
from nndeploy.comparison.compare import EXACT, Comparison, compare_values, tolerance_for
from nndeploy.values.types import MapType, OptionalType, SequenceType, TensorType

LOOSE = Tolerance(rtol=1e-2, atol=1e-3)


def f32(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


def texts(*values: str | bytes) -> np.ndarray:
    return np.array(values, dtype=object)


INT64 = np.array([2**63 - 1, -(2**63)], dtype=np.int64)
UINT64 = np.array([2**64 - 1], dtype=np.uint64)


@pytest.mark.parametrize(("got", "want", "tolerance", "agrees"), [
    (f32(0.0009, 101.0), f32(0.0, 100.0), LOOSE, True),  # absolute plus relative
    (f32(0.0011, 100.0), f32(0.0, 100.0), LOOSE, False), (f32(0.0, 101.1), f32(0.0, 100.0), LOOSE, False),
    (f32(math.inf), f32(-math.inf), Tolerance(1.0, 1.0), False),
    (INT64 - np.array([1, 0]), INT64, EXACT, False), (UINT64 - np.uint64(1), UINT64, EXACT, False),
    (np.array(["a", "b"]), texts("a", "b"), EXACT, True), (texts(b"a", b"b"), texts("a", "b"), EXACT, True),
    (np.array([True]), np.array([False]), Tolerance(1.0, 1.0), False),
    (np.array([1 + 1j]), np.array([1 + 1.001j]), LOOSE, True), (np.array([1 + 1j]), np.array([1 - 1j]), LOOSE, False),
    (f32(1000.0, 0.5), f32(1000.0, 0.0), Tolerance(0.0, 0.0, span=1e-3), True),  # of the largest element
    (f32(1000.0, 0.5), f32(1000.0, 0.0), Tolerance(0.0, 0.0, span=1e-4), False),
    (f32(), f32(), Tolerance(0.0, 0.0, span=1e-4), True), ([], [], EXACT, True),
])  # fmt: skip
def test_values_agree_within_their_tolerance(got: object, want: object, tolerance: Tolerance, agrees: bool) -> None:
    assert compare_values(got, want, tolerance).ok == agrees


def test_figures_are_of_the_largest_error() -> None:
    found = compare_values(f32(1.0, 2.5, 4.0), f32(1.0, 2.0, 5.0), LOOSE)
    assert not found.ok
    assert found.max_abs == 1.0
    assert found.max_rel == 0.25
    assert found.cosine is not None
    assert 0.98 < found.cosine < 1.0


def test_nan_agrees_with_nan_and_infinity_with_itself() -> None:
    value = f32(math.nan, math.inf, -math.inf, 1.0)
    assert compare_values(value, value.copy()) == Comparison(True, 0.0, 0.0, None)


@pytest.mark.parametrize("got", [f32(math.nan, 1.0), f32(math.inf, 1.0), f32(-math.inf, 1.0)])
@pytest.mark.parametrize("want", [f32(0.0, 1.0), f32(3.0, 1.0)])
def test_non_finite_on_one_side_never_agrees(got: np.ndarray, want: np.ndarray) -> None:
    wide_open = Tolerance(rtol=1e9, atol=1e9)
    for found in (compare_values(got, want, wide_open), compare_values(want, got, wide_open)):
        assert not found.ok
        assert found.note == "1 of 2 elements are NaN or infinite on one side only"


def test_figures_of_huge_numbers_stay_finite() -> None:
    found = compare_values(np.array([1e308, 1.0]), np.array([-1e308, 5e-324]))
    assert not found.ok
    json.dumps(asdict(found), allow_nan=False)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
def test_integers_are_compared_in_steps(dtype: str) -> None:
    want = np.array([0, 10, 100], dtype=dtype)
    got = np.array([1, 10, 100], dtype=dtype)
    assert compare_values(got, want, Tolerance(rtol=0.0, atol=1.0)).ok
    assert not compare_values(got, want, EXACT).ok
    assert compare_values(got, want).max_abs == 1.0
    assert compare_values(INT64[::-1], INT64).max_abs == float(2**64 - 1)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "int4", "uint4", "int2"])
def test_small_element_types_are_compared(name: str) -> None:
    dtype = getattr(ml_dtypes, name)
    want = np.array([0, 1, 1], dtype=dtype)
    assert compare_values(want, want.copy()).ok
    found = compare_values(np.array([1, 1, 1], dtype=dtype), want)
    assert not found.ok
    assert found.max_abs == 1.0


@pytest.mark.parametrize(("got", "want", "note"), [
    (f32(1.0), f32(1.0, 2.0), "shape [1] instead of [2]"),
    (np.zeros(1, np.float64), f32(0.0), "float64 instead of float32"),
    (f32(0.0), np.array(["a"], dtype=object), "float32 instead of string"),
    (None, f32(0.0), "absent instead of present"),
    (f32(0.0), None, "present instead of absent"),
    ([f32(0.0)], f32(0.0), "a list instead of a tensor"),
    (f32(0.0), [f32(0.0)], "a ndarray instead of a list"),
    (f32(0.0), {1: 2.0}, "a ndarray instead of a map"),
    ([f32(0.0)], [f32(0.0), f32(0.0)], "1 elements instead of 2"),
    ([f32(0.0), f32(0.0, 1.0)], [f32(0.0), f32(0.0)], "[1]: shape [2] instead of [1]"),
    ({1: 2.0}, {1: 2.0, 3: 1.0}, "other keys: 3"),
    (texts("a", "c"), texts("a", "b"), "1 of 2 elements differ"),
])  # fmt: skip
def test_what_cannot_be_compared_says_why(got: object, want: object, note: str) -> None:
    found = compare_values(got, want, LOOSE)
    assert not found.ok
    assert found.note == note


def test_absent_agrees_with_absent() -> None:
    assert compare_values(None, None) == Comparison(True)


def test_lists_and_maps_give_the_worst_figures() -> None:
    found = compare_values(
        [{0: 0.5, 1: 0.5}, {0: 0.25, 1: 0.75}], [{0: 0.5, 1: 0.5}, {0: 0.5, 1: 0.75}], Tolerance(0.0, 0.3)
    )
    assert found.ok
    assert found.max_abs == 0.25
    assert found.max_rel == 0.5


def test_maps_of_scores_are_held_to_their_largest() -> None:
    """A score near 0 beside others is rounding; alone in all rows it is not."""
    tolerance = Tolerance(rtol=1e-5, atol=1e-5, span=1e-5)
    near = [{"a": np.float32(1), "b": np.float32(1e-9)}, {"a": np.float32(2e-8), "b": np.float32(3)}]
    other = [{"b": -1e-9, "a": 1.0}, {"b": 3.0, "a": 1e-8}]
    assert compare_values(other, near, tolerance).ok
    assert not compare_values([{**other[0], "b": 0.1}, other[1]], near, tolerance).ok
    assert not compare_values([{"a": 1e-9}], [{"a": 2e-9}], tolerance).ok
    assert not compare_values([{"c": 1.0}], [{"a": 1.0}], tolerance).ok


def test_empty_values_agree() -> None:
    assert compare_values(np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32)) == Comparison(True)


def test_tolerance_is_that_of_the_element_type() -> None:
    tolerances = {"float32": LOOSE}
    inner = TensorType("float32", ())
    for outer in (inner, SequenceType(inner), OptionalType(SequenceType(inner)), MapType("int64", inner)):
        assert tolerance_for(outer, tolerances) is LOOSE
    assert tolerance_for(TensorType("int64", ()), tolerances) is EXACT


@given(hnp.arrays(
    st.sampled_from([np.float16, np.float32, np.float64, np.int8, np.uint64, np.int64, np.bool_, np.complex64]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
))  # fmt: skip
def test_a_value_agrees_with_itself(value: np.ndarray) -> None:
    found = compare_values(value, value.copy())
    assert found.ok
    assert found.max_abs in (None, 0.0)
    json.dumps(asdict(found), allow_nan=False)
