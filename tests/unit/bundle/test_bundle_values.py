# SPDX-License-Identifier: Apache-2.0
"""Values members: every kind of value comes back, without a copy, and nothing else is read."""

import json
import struct
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from nndeploy.bundle.values import ALIGNMENT, decode_values, encode_values
from nndeploy.errors import BundleError, DataError
from nndeploy.files.strict_json import canonical_json
from nndeploy.values.types import ML_DTYPES, NUMPY_DTYPES, Value, numpy_dtype

NUMERIC = (*NUMPY_DTYPES, *ML_DTYPES)


def same(a: Value, b: Value) -> bool:
    """Whether two values are equal to the last bit, kind, dtype and shape included."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        return a.tolist() == b.tolist() if a.dtype == object else a.tobytes() == b.tobytes()
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return type(a) is type(b) and (a is None or a == b or (a != a and b != b))


def an_array(dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    bits = np.arange(int(np.prod(shape))) % 2
    return bits.reshape(shape).astype(numpy_dtype(dtype))


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (2, 3)])
@pytest.mark.parametrize("dtype", NUMERIC)
def test_arrays_of_every_type_come_back(dtype: str, shape: tuple[int, ...]) -> None:
    array = an_array(dtype, shape)
    decoded = decode_values(encode_values({"x": array}))["x"]
    assert same(decoded, array)
    assert not decoded.flags.writeable


STRINGS = hnp.arrays(object, hnp.array_shapes(min_dims=0, min_side=0), elements=st.text(max_size=5))
NUMBERS = hnp.arrays(
    st.sampled_from([np.dtype(name) for name in NUMPY_DTYPES]), hnp.array_shapes(min_dims=0, min_side=0)
)
VALUES = st.recursive(
    NUMBERS | STRINGS | st.none() | st.integers(-(2**63), 2**64 - 1) | st.floats(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.integers(-(2**63), 2**64), inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=4))
def test_values_come_back_and_equal_values_give_equal_bytes(values: dict[str, Value]) -> None:
    data = encode_values(values)
    decoded = decode_values(data)
    assert same(decoded, values)
    assert encode_values(decoded) == data
    assert encode_values(dict(reversed(values.items()))) == data


def test_the_safetensors_library_finds_the_numbers() -> None:
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([True, False])
    tensors = safetensors.numpy.load(encode_values({"b": b, "a": a, "c": None}))
    assert same(dict(tensors), {"0": a, "1": b})


def test_decoding_copies_nothing() -> None:
    data = encode_values({"x": np.arange(1000, dtype=np.float64), "h": np.ones(3, ml_dtypes.bfloat16)})
    whole = np.frombuffer(data, np.uint8)
    decoded = decode_values(data)
    assert all(np.shares_memory(array, whole) for array in decoded.values())


def test_data_begin_on_a_boundary_and_each_tensor_on_a_multiple_of_its_element() -> None:
    values = {name: an_array(name, (3,)) for name in NUMERIC}
    data = encode_values(values)
    assert (8 + int.from_bytes(data[:8], "little")) % ALIGNMENT == 0
    start = np.frombuffer(data, np.uint8).__array_interface__["data"][0]
    for array in decode_values(data).values():
        assert (array.__array_interface__["data"][0] - start) % array.itemsize == 0


@pytest.mark.parametrize(("given_value", "expected"), [
    (np.float32(1.5), np.array(1.5, np.float32)), (True, np.array(True)), (3, 3), (2.5, 2.5), (-0.0, -0.0),
    (float("nan"), float("nan")), (float("inf"), float("inf")), (float("-inf"), float("-inf")),
    (np.float64(2.5), np.array(2.5)), (1j, np.array(1j)), ("text", np.array("text", object)),
    (b"text", np.array("text", object)), ((None,), [None]),
    (np.array([b"a", "b", b"\xff"], object), np.array(["a", "b", b"\xff"], object)),
    (np.array(["a", "bc"]), np.array(["a", "bc"], object)), (np.array([b"a", b"bc"]), np.array(["a", "bc"], object)),
    (np.array([["a"], ["bc"]], np.dtypes.StringDType()), np.array([["a"], ["bc"]], object)),
    (np.arange(4, dtype=">i4"), np.arange(4, dtype="<i4")),
    (np.arange(6).reshape(2, 3).T, np.arange(6).reshape(2, 3).T.copy()), (np.arange(6)[::-2], np.array([5, 3, 1])),
    (np.array([0, 2, 255], np.uint8).view(bool), np.array([False, True, True])),
    (np.array(7, np.uint8).view(bool), np.array(True)), ({np.int32(2): None, 1: None}, {1: None, 2: None}),
    ({b"k": None}, {"k": None}), ({}, {}),
], ids=repr)  # fmt: skip
def test_normalises(given_value: Value, expected: Value) -> None:
    assert same(decode_values(encode_values({"x": given_value}))["x"], expected)


def deep(levels: int) -> Value:
    value: Value = None
    for _ in range(levels):
        value = [value]
    return value


def test_nesting_is_limited() -> None:
    assert same(decode_values(encode_values({"x": deep(8)}))["x"], deep(8))
    with pytest.raises(DataError, match="nested deeper than 8"):
        encode_values({"x": deep(9)})


@pytest.mark.parametrize(("value", "message"), [
    pytest.param(object(), "a object, is no value", id="object"), ({1, 2}, "a set, is no value"),
    (np.array(["2026-11-20"], "datetime64[D]"), r"datetime64\[D\] is no value"),
    (np.zeros(1, [("a", "i4")]), "is no value"), (np.zeros(1, np.longdouble), "is no value"),
    (np.array([1, "a"], object), "a int stands where text should"), (2**64, "18446744073709551616, a int, is no value"),
    (-(2**63) - 1, "a int, is no value"), (np.array(["\ud800"], object), "is not Unicode"),
    ({1: None, "a": None}, "all integers or all strings"), ({b"a": None, "a": None}, "all integers or all strings"),
    ({True: None}, "a bool stands where text should"), ({b"\xff": None}, "is no text"),
    ({1.5: None}, "a float stands where text should"),
], ids=repr)  # fmt: skip
def test_refuses_to_encode(value: Value, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        encode_values({"x": value})
    assert caught.value.where.startswith("x")


def test_refuses_a_name_that_is_no_text() -> None:
    with pytest.raises(DataError, match="is not Unicode"):
        encode_values({"\udfff": None})


def test_refuses_more_text_than_a_header_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nndeploy.bundle.values.MAX_HEADER_BYTES", 1000)
    with pytest.raises(DataError, match="at most 1000 are allowed"):
        encode_values({"x": np.array(["t" * 1000], object)})


TENSOR = {"kind": "tensor", "data": "0", "dtype": "float32", "shape": [2]}
ENTRY = {"data_offsets": [0, 8], "dtype": "F32", "shape": [2]}


def forged(tree: object, entries: dict[str, object] | None = None, body: bytes = b"", padding: bytes = b"") -> bytes:
    """A member with a tree of our choice, padded as it should be."""
    metadata = {"nndeploy.values.1": canonical_json(tree).decode()}
    header = canonical_json({"__metadata__": metadata, **(entries or {})})
    header += padding or b" " * (-(len(header) + 8) % ALIGNMENT)
    return struct.pack("<Q", len(header)) + header + body


def test_a_forged_member_that_changes_nothing_is_read() -> None:
    body = np.array([1, 2], np.float32).tobytes()
    assert forged({"x": TENSOR}, {"0": ENTRY}, body) == encode_values({"x": np.array([1, 2], np.float32)})
    assert forged({"x": {"kind": "none"}}) == encode_values({"x": None})


@pytest.mark.parametrize(("node", "message"), [
    (None, "not a value"),
    ([], "not a value"),
    ({"kind": "pickle"}, "not a value"),
    ({"kind": "none", "more": 1}, "not a value"),
    ({"kind": "number", "value": True}, "not a value"),
    ({"kind": "number", "value": "1"}, "not a value"),
    ({"kind": "number", "value": 2**64}, "not a value"),
    ({"kind": "number", "value": None}, "not a value"),
    ({"kind": "number", "value": 1, "more": 1}, "not a value"),
    ({**TENSOR, "more": 1}, "not a value"),
    ({**TENSOR, "data": "1"}, "should be called '0'"),
    ({**TENSOR, "data": 0}, "not a value"),
    ({**TENSOR, "dtype": "object"}, "unknown element type 'object'"),
    ({**TENSOR, "dtype": "string"}, "unknown element type 'string'"),
    ({**TENSOR, "shape": [-2]}, "not a shape"),
    ({**TENSOR, "shape": [2.0]}, "not a shape"),
    ({**TENSOR, "shape": [True]}, "not a shape"),
    ({**TENSOR, "shape": [1] * 65}, "not a shape"),
    ({**TENSOR, "shape": [2**62, 2**62]}, "not a shape"),
    ({**TENSOR, "shape": [0, 2**62]}, "not a shape"),
    ({**TENSOR, "shape": "2"}, "not a value"),
    ({**TENSOR, "shape": [3]}, "does not agree with their tree"),
    ({**TENSOR, "shape": [2, 1]}, "does not agree with their tree"),
    ({**TENSOR, "dtype": "int32"}, "does not agree with their tree"),
    ({"kind": "none"}, "does not agree with their tree"),
    ({"kind": "sequence", "items": {}}, "not a value"),
    ({"kind": "sequence", "items": [TENSOR, TENSOR]}, "should be called '1'"),
    ({"kind": "map", "key": "int", "entries": [[1]]}, "not pairs with such keys"),
    ({"kind": "map", "key": "int", "entries": ["ab"]}, "not pairs with such keys"),
    ({"kind": "map", "key": "int", "entries": [["1", TENSOR]]}, "not pairs with such keys"),
    ({"kind": "map", "key": "int", "entries": [[True, TENSOR]]}, "not pairs with such keys"),
    ({"kind": "map", "key": "float", "entries": [[1.5, TENSOR]]}, "not pairs with such keys"),
    ({"kind": "map", "key": "string", "entries": [["b", TENSOR], ["a", TENSOR]]}, "not sorted"),
    ({"kind": "map", "key": "int", "entries": [[1, TENSOR], [1, TENSOR]]}, "not sorted"),
    ({"kind": "map", "key": "int", "entries": []}, "not sorted"),
    ({"kind": "strings", "shape": [2], "items": ["a"]}, "1 strings for the shape"),
    ({"kind": "strings", "shape": [2**40], "items": ["a"]}, "1 strings for the shape"),
    ({"kind": "strings", "shape": [1], "items": [1]}, "not a string"),
    ({"kind": "strings", "shape": [1], "items": [{"base64": 1}]}, "not a string"),
    ({"kind": "strings", "shape": [1], "items": [{"base64": "/w==", "more": 1}]}, "not a string"),
    ({"kind": "strings", "shape": [1], "items": [{"base64": "/w"}]}, "not base 64"),
    ({"kind": "strings", "shape": [1], "items": [{"base64": "/w=\n="}]}, "not base 64"),
    ({"kind": "strings", "shape": [1], "items": [{"base64": "/x=="}]}, "not the one base 64"),
    ({"kind": "strings", "shape": [1], "items": [{"base64": "YQ=="}]}, "not the one base 64"),
], ids=str)  # fmt: skip
def test_refuses_a_forged_tree(node: object, message: str) -> None:
    with pytest.raises(BundleError, match=message):
        decode_values(forged({"x": node}, {"0": ENTRY}, bytes(8)))


def test_refuses_a_tree_that_is_too_deep() -> None:
    node: object = {"kind": "none"}
    for _ in range(9):
        node = {"kind": "sequence", "items": [node]}
    with pytest.raises(BundleError, match="nested deeper than 8"):
        decode_values(forged({"x": node}))


@pytest.mark.parametrize(("entry", "body", "padding", "message"), [
    *((entry, bytes(8), (), "does not agree with their tree") for entry in (
        {**ENTRY, "data_offsets": [0, 4]}, {**ENTRY, "data_offsets": [8, 16]}, {**ENTRY, "data_offsets": [0, 2**70]},
        {**ENTRY, "dtype": "F64"}, {**ENTRY, "shape": [1]}, {**ENTRY, "more": 1}, None,
    )),
    *((ENTRY, bytes(n), (), f"need 8 bytes of data, the member has {n}") for n in (0, 7, 9)),
    *((ENTRY, bytes(8), (padding,), "not canonical|does not agree") for padding in (b" " * 200, b"\n" * 8, b"\t ")),
], ids=str)  # fmt: skip
def test_refuses_a_header_data_and_padding_that_disagree_with_the_tree(entry, body, padding, message) -> None:
    with pytest.raises(BundleError, match=message):
        decode_values(forged({"x": TENSOR}, {"0": entry}, body, *padding))


def test_refuses_a_bool_that_is_neither_true_nor_false() -> None:
    data = encode_values({"x": np.array([True, False])})
    with pytest.raises(BundleError, match="neither 0 nor 1"):
        decode_values(data[:-1] + b"\2")


def with_header(header: bytes) -> bytes:
    return struct.pack("<Q", len(header)) + header


@pytest.mark.parametrize(("data", "message"), [
    (b"", "0 bytes are too few"),
    (b"1234567", "7 bytes are too few"),
    (struct.pack("<Q", 1), "claims 1 bytes, the member has 8"),
    (struct.pack("<Q", 2**63) + bytes(100), "claims 9223372036854775808 bytes"),
    (with_header(b"{"), "not JSON"),
    (with_header(b"[]"), "have no tree"),
    (with_header(b"{}"), "have no tree"),
    (with_header(b'{"__metadata__":1}'), "have no tree"),
    (with_header(b'{"__metadata__":{"nndeploy.values.1":1}}'), "have no tree"),
    (with_header(b'{"__metadata__":{"nndeploy.values.1":"{"}}'), "the tree of these values: not JSON"),
    (with_header(b'{"__metadata__":{"nndeploy.values.1":"[]"}}'), "is no object"),
    (with_header(b'{"__metadata__":{"nndeploy.values.1":"{\\"a\\":1,\\"a\\":1}"}}'), "the key 'a' twice"),
], ids=str)  # fmt: skip
def test_refuses_what_is_no_values_member(data: bytes, message: str) -> None:
    with pytest.raises(BundleError) as caught:
        decode_values(data)
    assert message in str(caught.value)


def test_a_file_of_the_safetensors_library_without_a_tree_is_refused() -> None:
    with pytest.raises(BundleError, match=r"not canonical|have no tree"):
        decode_values(safetensors.numpy.save({"x": np.ones(2)}))


def test_no_changed_byte_of_the_header_is_taken() -> None:
    data = encode_values({"x": np.arange(3, dtype=np.int32), "s": ["a", {1: b"\xff"}]})
    header_end = 8 + int.from_bytes(data[:8], "little")
    for position in range(header_end):
        for value in (data[position] ^ 1, data[position] ^ 0x20, 0, 0x7F):
            mutant = data[:position] + bytes([value]) + data[position + 1 :]
            if mutant == data:
                continue
            try:
                decoded = decode_values(mutant)
            except DataError:
                continue
            assert encode_values(decoded) == mutant  # other text in a string is another value, not another form


def test_the_tree_is_json_that_people_can_read() -> None:
    data = encode_values({"x": np.ones((2,), ml_dtypes.bfloat16)})
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    tree = json.loads(header["__metadata__"]["nndeploy.values.1"])
    assert tree == {"x": {"kind": "tensor", "data": "0", "dtype": "bfloat16", "shape": [2]}}
    assert header["0"] == {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}
