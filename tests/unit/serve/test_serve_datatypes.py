# SPDX-License-Identifier: Apache-2.0
"""Tensors keep every bit on their way through the protocol; bytes that are no tensor are refused."""

import random
import struct

import ml_dtypes
import numpy as np
import pytest
from byte_mutants import KINDS, mutant
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from nndeploy.bundle.manifest import NamedType
from nndeploy.errors import InputError, UsageError
from nndeploy.serve.datatypes import (
    DATATYPES,
    DTYPES,
    Tensor,
    array_from_elements,
    array_from_raw,
    checked_shape,
    raw_from_array,
    tensor_of,
)
from nndeploy.values.types import OptionalType, SequenceType, TensorType, numpy_dtype

SHAPES = arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


@pytest.mark.parametrize("datatype", sorted(set(DTYPES) - {"BYTES"}))
@settings(max_examples=25)
@given(shape=SHAPES, seed=st.integers(0, 1 << 32))
def test_raw_bytes_are_the_tensor_bit_by_bit(datatype, shape, seed) -> None:
    dtype = numpy_dtype(DTYPES[datatype])
    dice = np.random.default_rng(seed)
    most = 2 if datatype == "BOOL" else 256
    bits = dice.integers(0, most, size=(*shape, dtype.itemsize), dtype=np.uint8)
    array = bits.reshape(-1).view(dtype).reshape(shape) if bits.size else np.zeros(shape, dtype)
    found = array_from_raw("x", datatype, shape, raw_from_array(array))
    assert (found.dtype, found.shape) == (dtype, shape)
    assert found.tobytes() == array.tobytes()


@settings(max_examples=30)
@given(texts=st.lists(st.text(), max_size=6))
def test_texts_go_and_come_as_utf8(texts) -> None:
    array = np.array(texts, dtype=object)
    found = array_from_raw("x", "BYTES", (len(texts),), raw_from_array(array))
    assert [one.decode("utf-8") for one in found.tolist()] == texts


def test_numbers_of_another_byte_order_are_written_little_endian() -> None:
    assert raw_from_array(np.array([1], dtype=">i4")) == b"\1\0\0\0"


@pytest.mark.parametrize(("datatype", "elements", "want"), [
    ("BOOL", [True, False], np.array([True, False])),
    ("UINT8", [[0], [255]], np.array([0, 255], np.uint8)),
    ("INT64", [-1, 1 << 62], np.array([-1, 1 << 62])),
    ("FP16", [0.5, "NaN"], np.array([0.5, np.nan], np.float16)),
    ("BF16", [0.5, -2], np.array([0.5, -2], ml_dtypes.bfloat16)),
    ("BYTES", ["a", ""], np.array(["a", ""], object)),
])  # fmt: skip
def test_listed_elements_are_exactly_those_of_the_datatype(datatype, elements, want) -> None:
    found = array_from_elements("x", datatype, (2,), elements)
    assert (found.dtype, found.shape) == (want.dtype, (2,))
    assert found.tolist() == want.tolist() or found.tobytes() == want.tobytes()


@pytest.mark.parametrize(("datatype", "shape", "raw", "reason"), [
    ("FP32", (2,), b"\0" * 7, "must have 8 bytes (FP32 [2]), got 7"),
    ("FP32", (1 << 60, 1 << 60), b"\0" * 4, "got 4"),
    ("BOOL", (2,), b"\1\2", "a BOOL that is neither 0 nor 1"),
    ("BYTES", (1,), b"\1\0\0", "ends within the length of an element"),
    ("BYTES", (1,), struct.pack("<I", 5) + b"abc", "an element of 5 bytes, and 3 bytes left"),
    ("BYTES", (2,), struct.pack("<I", 1) + b"a", "must have 2 elements ([2]), got 1"),
    ("FP31", (1,), b"\0" * 4, "unknown datatype 'FP31' (hint: did you mean 'FP32'?)"),
])  # fmt: skip
def test_bytes_that_are_no_such_tensor_are_refused(datatype, shape, raw, reason) -> None:
    with pytest.raises(InputError) as found:
        array_from_raw("x", datatype, shape, raw)
    assert reason in str(found.value)


@pytest.mark.parametrize(("datatype", "elements", "reason"), [
    ("FP32", None, "has no data"), ("FP32", [1, 2], "must have 3 elements ([3]), got 2"), ("UINT8", [1, 2, 256], "256"),
    ("INT8", [1, 2, 1.5], "1.5"), ("BOOL", [1, 0, 1], "must be bool, got int"),
    ("FP32", [1, [2], 3], "is not a tensor"), ("BYTES", [1, 2, 3], "must be string, got int"),
    (7, [1, 2, 3], "unknown datatype 7"),
])  # fmt: skip
def test_elements_that_are_no_such_tensor_are_refused(datatype, elements, reason) -> None:
    with pytest.raises(InputError) as found:
        array_from_elements("x", datatype, (3,), elements)
    assert reason in str(found.value)


@pytest.mark.parametrize("shape", [None, 3, "33", [-1], [1.0], [True], [1 << 63], [1] * 65, {"a": 1}])
def test_what_is_no_shape_is_refused(shape) -> None:
    with pytest.raises(InputError, match="has no shape"):
        checked_shape(shape, "input 'x'")


def test_damaged_texts_are_a_tensor_or_refused() -> None:
    dice, good = random.Random(1), raw_from_array(np.array(["one", "two", "", "äöü"], dtype=object))  # noqa: S311 - damage, not secrets
    num_refused = 0
    for i in range(2000):
        try:
            assert array_from_raw("x", "BYTES", (4,), mutant(good, dice, i % KINDS)).shape == (4,)
        except InputError:
            num_refused += 1
    assert 1000 < num_refused < 2000


def test_metadata_say_which_sizes_vary() -> None:
    assert tensor_of(NamedType("x", TensorType("float16", ("N", 3, None)))) == Tensor("x", "FP16", (-1, 3, -1))
    assert tensor_of(NamedType("x", TensorType("string", None))) == Tensor("x", "BYTES", (-1,))
    assert tensor_of(NamedType("x", OptionalType(TensorType("bool", ())))) == Tensor("x", "BOOL", ())


@pytest.mark.parametrize("kind", [SequenceType(TensorType("float32", ())), TensorType("complex64", (1,))])
def test_a_type_that_the_protocol_has_not_is_refused(kind) -> None:
    with pytest.raises(UsageError, match="has no form in the protocol"):
        tensor_of(NamedType("x", kind))


def test_every_datatype_of_the_protocol_is_there_both_ways() -> None:
    assert len(DATATYPES) == len(DTYPES) == 14
