# SPDX-License-Identifier: Apache-2.0
"""Numbers and nested lists become tensors exactly, or are refused."""

import json

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from nndeploy.errors import InputError
from nndeploy.runtime.plain_data import plain_from_value, tensor_from_plain, value_from_plain
from nndeploy.values.types import ML_DTYPES, MapType, OptionalType, SequenceType, TensorType, dtype_name, numpy_dtype

F32 = TensorType("float32", None)


@pytest.mark.parametrize(("data", "dtype", "want"), [
    ([[1, 2.5]], "float32", np.array([[1, 2.5]], np.float32)), (3, "float64", np.array(3.0)),
    ([1, 2.0], "int8", np.array([1, 2], np.int8)), ([2**63], "uint64", np.array([2**63], np.uint64)),
    ([2**53 + 1, 1.0], "int64", np.array([2**53 + 1, 1])), ([True, False], "bool", np.array([True, False])),
    (["a", "ü"], "string", np.array(["a", "ü"], object)), ("a", "string", np.array("a", object)),
    ([[1, 2], [3, 4.5]], "complex64", np.array([1 + 2j, 3 + 4.5j], np.complex64)),
    ([1.5], "bfloat16", np.array([1.5], ml_dtypes.bfloat16)), ([-8, 7], "int4", np.array([-8, 7], ml_dtypes.int4)),
    ([], "float32", np.zeros(0, np.float32)), ([[], []], "int64", np.zeros((2, 0), np.int64)),
])  # fmt: skip
def test_exact_data_becomes_a_tensor(data, dtype, want) -> None:
    found = tensor_from_plain(data, dtype, "x")
    assert found.dtype == want.dtype
    assert found.shape == want.shape
    assert found.tolist() == want.tolist()


def test_strings_stand_for_what_is_not_finite() -> None:
    found = tensor_from_plain([1, "NaN", "-Infinity"], "float32", "x")
    assert np.isnan(found[1])
    assert found[2] == -np.inf


@pytest.mark.parametrize(("data", "dtype", "message"), [
    ([1.5], "int32", "x must be int32, got 1.5"), ([float("nan")], "int32", "x must be int32, got nan"),
    ([300], "uint8", r"x must be uint8 \(0..255\), got 300"), ([-1], "uint8", "got -1"),
    ([8], "int4", r"\(-8..7\), got 8"), ([2**80], "int64", "got 1208925819614629174706176"),
    ([True], "float32", "x must be float32, got bool"), ([True, 2], "int64", "got bool"),
    ([1], "bool", "x must be bool, got int"), (["a"], "float32", "x must hold numbers, not 'a'"),
    (["1.5"], "float32", "x must hold numbers, not '1.5'"), (["NaN"], "int32", "x must be int32, got str"),
    ([1, "a"], "string", "x must be string, got int"), ([None], "float32", "x must be float32, got null"),
    ([[1], [1, 2]], "float32", "x is not a tensor"), ([1e39], "float32", "cannot hold a number this large"),
    ([1e6], "float16", "cannot hold a number this large"), ([10**400], "float64", "x holds a number that is too large"),
    ([1e9], "float8_e4m3fn", "cannot hold a number this large"), ([[1, 2, 3]], "complex64", r"\[real, imaginary\]"),
    (1, "complex64", r"\[real, imaginary\]"), ({"a": 1}, "float32", "got dict"),
])  # fmt: skip
def test_inexact_data_is_refused(data, dtype, message) -> None:
    with pytest.raises(InputError, match=message):
        tensor_from_plain(data, dtype, "x")


def test_lists_that_nest_too_deep_are_refused() -> None:
    data: object = 1
    for _ in range(500):
        data = [data]
    with pytest.raises(InputError):
        tensor_from_plain(data, "float32", "x")


def test_sequences_optionals_and_maps_follow_their_type() -> None:
    kind = SequenceType(MapType("int64", TensorType("float32", ())))
    found = value_from_plain([{"1": 0.5}, {"-2": 1}], kind, "x")
    assert [{k: float(v) for k, v in part.items()} for part in found] == [{1: 0.5}, {-2: 1.0}]
    assert value_from_plain(None, OptionalType(F32), "x") is None
    assert value_from_plain([1], OptionalType(F32), "x").dtype == np.float32


@pytest.mark.parametrize(("data", "kind", "message"), [
    (1, SequenceType(F32), "x must be a list, not a int"),
    ([1, ["a"]], SequenceType(F32), r"x\[1\] must hold numbers"),
    ([], MapType("int64", F32), "x must be a map, not a list"),
    ({"a": 1}, MapType("int64", F32), "a key of x must be int64, not 'a'"),
    ({1: 1}, MapType("string", F32), "a key of x must be string, not 1"),
    (None, F32, "x must be float32, got null"),
])  # fmt: skip
def test_values_of_another_type_are_refused(data, kind, message) -> None:
    with pytest.raises(InputError, match=message):
        value_from_plain(data, kind, "x")


def test_other_values_become_plain() -> None:
    value = [None, {1: np.float32(0.5)}, np.array([b"a", "b"], object), np.array([1 + 2j]), np.float64("nan")]
    assert plain_from_value(value) == [None, {"1": 0.5}, ["a", "b"], [[1.0, 2.0]], "NaN"]


arrays = hnp.arrays(
    st.sampled_from([np.float16, np.float32, np.float64, np.int8, np.int64, np.uint64, np.bool_, np.complex64]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=1, max_side=3),
)


@given(arrays)
def test_plain_data_gives_the_tensor_back(value) -> None:
    data = json.loads(json.dumps(plain_from_value(value), allow_nan=False))
    found = tensor_from_plain(data, dtype_name(value.dtype), "x")
    np.testing.assert_array_equal(found, value)
    assert found.dtype == value.dtype


@pytest.mark.parametrize("dtype", ML_DTYPES)
def test_small_element_types_come_back(dtype) -> None:
    value = np.array([[1, 0.5 if dtype.startswith("f") and dtype != "float8_e8m0fnu" else 1]]).astype(
        numpy_dtype(dtype)
    )
    found = tensor_from_plain(json.loads(json.dumps(plain_from_value(value))), dtype, "x")
    assert found.dtype == value.dtype
    assert found.tolist() == value.tolist()
