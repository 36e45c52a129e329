# SPDX-License-Identifier: Apache-2.0
"""The wire format: what is read, and every way in which it can be malformed."""

import onnx
import pytest
from frontend_builders import block, model_bytes, number, tensor, varint
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from nndeploy.errors import ModelError
from nndeploy.onnx_gate import onnx_messages
from nndeploy.onnx_gate.wire import FIXED32, FIXED64, LENGTH, VARINT, Budget, Fields, Kind, Message, fields_of

WIRE_OF_TYPE = {
    FieldDescriptor.TYPE_INT64: VARINT, FieldDescriptor.TYPE_INT32: VARINT, FieldDescriptor.TYPE_UINT64: VARINT,
    FieldDescriptor.TYPE_ENUM: VARINT, FieldDescriptor.TYPE_FLOAT: FIXED32, FieldDescriptor.TYPE_DOUBLE: FIXED64,
    FieldDescriptor.TYPE_STRING: LENGTH, FieldDescriptor.TYPE_BYTES: LENGTH, FieldDescriptor.TYPE_MESSAGE: LENGTH,
}  # fmt: skip


def read(data: bytes, message: Message, **limits: int) -> Fields:
    budget = Budget(**{"fields": 1000, "max_entries": 100, "max_name_bytes": 64} | limits)
    return fields_of(data, (0, len(data)), message, budget)


def library_messages() -> dict[str, Descriptor]:
    found: dict[str, Descriptor] = {}
    waiting = [onnx.ModelProto.DESCRIPTOR]
    while waiting:
        descriptor = waiting.pop()
        if descriptor.name not in found:
            found[descriptor.name] = descriptor
            waiting += [field.message_type for field in descriptor.fields if field.message_type]
    return found


def test_every_field_of_the_onnx_library_is_known_with_its_type() -> None:
    ours = {
        (name, field.number, field.name, field.wire, field.repeated, field.message)
        for name, message in onnx_messages.MESSAGES.items()
        for field in message.fields
    }
    theirs = {
        (name, f.number, f.name, WIRE_OF_TYPE[f.type], f.is_repeated, f.message_type.name if f.message_type else "")
        for name, descriptor in library_messages().items()
        for f in descriptor.fields
    }
    assert theirs <= ours  # an older library than the table's may lack fields


def test_exclusive_fields_are_those_of_the_onnx_library() -> None:
    theirs = {
        name: {field.name for oneof in descriptor.oneofs for field in oneof.fields}
        for name, descriptor in library_messages().items()
        if descriptor.oneofs
    }
    ours = {name: set(message.oneof) for name, message in onnx_messages.MESSAGES.items() if message.oneof}
    assert ours == theirs


def test_text_fields_are_those_that_protobuf_decodes() -> None:
    theirs = {
        (name, f.name)
        for name, descriptor in library_messages().items()
        for f in descriptor.fields
        if f.type == FieldDescriptor.TYPE_STRING
    }
    ours = {
        (name, f.name)
        for name, message in onnx_messages.MESSAGES.items()
        for f in message.fields
        if f.kind in (Kind.NAME, Kind.TEXT)
    }
    assert ours == theirs


def test_runs_of_counted_scalars_have_tags_of_one_byte() -> None:
    counted = [
        f.number for m in onnx_messages.MESSAGES.values() for f in m.fields if f.repeated and f.kind is Kind.COUNT
    ]
    assert max(counted) < 16


def test_reads_numbers_texts_spans_and_counts() -> None:
    data = number(1, 8) + block(2, b"maker") + block(7, b"\x12\x01g") + block(8) + block(8, number(2, 17))
    found = read(data, onnx_messages.MODEL)
    assert found.number("ir_version") == 8
    assert found.text("producer_name") == "maker"
    assert found.spans == {"graph": [(11, 14)], "opset_import": [(16, 16), (18, 20)]}
    assert data[11:14] == b"\x12\x01g"


def test_reads_negative_numbers() -> None:
    assert read(number(1, -5), onnx_messages.MODEL).number("ir_version") == -5


@pytest.mark.parametrize("packed", [False, True])
def test_reads_lists_of_numbers_packed_or_not(packed: bool) -> None:
    data = block(1, varint(3), varint(300), varint(-1)) if packed else number(1, 3) + number(1, 300) + number(1, -1)
    assert read(data, onnx_messages.TENSOR).numbers["dims"] == [3, 300, -1]


@pytest.mark.parametrize(("data", "field", "count"), [
    (block(4, b"\0" * 12), "float_data", 3), (b"\x25\0\0\0\0" * 4, "float_data", 4),
    (block(10, b"\0" * 16), "double_data", 2), (b"\x51" + b"\0" * 8, "double_data", 1),
    (block(7, varint(1), varint(300), varint(-1)), "int64_data", 3),
    (number(7, 1) + number(7, 300) + number(7, -1), "int64_data", 3),
    (number(7, 1) + block(8, b"w") + number(7, 300), "int64_data", 2), (block(6, b"ab") + block(6), "string_data", 2),
    (block(9, b"abcde"), "raw_data", 5),
])  # fmt: skip
def test_counts_data_without_keeping_it(data: bytes, field: str, count: int) -> None:
    assert read(data, onnx_messages.TENSOR).counts == {field: count}


def test_counts_a_long_packed_list() -> None:
    data = block(7, b"\x80\x01" * 700_000, b"\x01" * 3)
    assert read(data, onnx_messages.TENSOR).counts == {"int64_data": 700_003}


@pytest.mark.parametrize(("data", "message", "words"), [
    (block(30, b""), onnx_messages.MODEL, "ModelProto has no field 30"),
    (block(1, b""), onnx_messages.MODEL, "ModelProto.ir_version has wire type 2"),
    (b"\x3b", onnx_messages.MODEL, "ModelProto.graph has wire type 3"),
    (number(1, 8) * 2, onnx_messages.MODEL, "ModelProto.ir_version is there twice"),
    (block(7) * 2, onnx_messages.MODEL, "ModelProto.graph is there twice"),
    (block(9, b"a") * 2, onnx_messages.TENSOR, "TensorProto.raw_data is there twice"),
    (b"\x15\0\0\0\0" * 2, onnx_messages.ATTRIBUTE, "AttributeProto.f is there twice"),
    (b"\x3a\x05abc", onnx_messages.MODEL, "ModelProto.graph ends 2 bytes after what it lies in"),
    (b"\x3a\xff\xff\xff\xff\x7f", onnx_messages.MODEL, "bytes after what it lies in"),
    (b"\x3a", onnx_messages.MODEL, "the file ends inside a ModelProto"),
    (b"\x08\x80", onnx_messages.MODEL, "the file ends inside a ModelProto"),
    (b"\x80", onnx_messages.MODEL, "the file ends inside a ModelProto"),
    (b"\x88\x80\x00\x01", onnx_messages.MODEL, "more bytes than it needs"),
    (b"\x08" + b"\xff" * 10 + b"\x01", onnx_messages.MODEL, "longer than 64 bits"),
    (b"\x08" + b"\xff" * 9 + b"\x7f", onnx_messages.MODEL, "longer than 64 bits"),
    (block(2, b"\xff\xfe"), onnx_messages.MODEL, "ModelProto.producer_name is not UTF-8"),
    (block(3, b"a" * 65), onnx_messages.NODE, "NodeProto.name is a name of 65 bytes"),
    (block(1) + block(4), onnx_messages.TYPE, "sequence_type and tensor_type, but only one"),
    (block(4, b"\0" * 5), onnx_messages.TENSOR, "float_data has 5 bytes, no multiple of 4"),
    (b"\x25\0\0", onnx_messages.TENSOR, "TensorProto.float_data ends"),
    (b"\x51\0\0", onnx_messages.TENSOR, "TensorProto.double_data ends"),
    (b"\x15\0\0", onnx_messages.ATTRIBUTE, "AttributeProto.f ends"),
    (b"\x38\x80", onnx_messages.TENSOR, "TensorProto.int64_data ends"),
    (block(7, b"\x01\x80"), onnx_messages.TENSOR, "packed list of numbers is malformed"),
    (block(7, b"\xff" * 11 + b"\x01"), onnx_messages.TENSOR, "packed list of numbers is malformed"),
    (block(1, b"\x01\x80") + b"\x01", onnx_messages.TENSOR, "packed list of numbers is malformed"),
])  # fmt: skip
def test_refuses_what_is_malformed(data: bytes, message: Message, words: str) -> None:
    with pytest.raises(ModelError) as caught:
        read(data, message)
    assert words in str(caught.value)


def test_a_length_may_not_reach_into_the_neighbour() -> None:
    inner = b"\x12\x04ab"  # a name of 4 bytes in a graph of 4
    data = b"\x3a" + varint(len(inner)) + inner + b"cd"
    with pytest.raises(ModelError, match=r"GraphProto\.name ends 2 bytes after"):
        fields_of(data, (2, 2 + len(inner)), onnx_messages.GRAPH, Budget(100, 100, 100))


def test_documentation_may_be_longer_than_a_name() -> None:
    assert read(block(6, b"a" * 65), onnx_messages.NODE).text("doc_string") == "a" * 65


def test_refuses_more_fields_than_the_budget_and_keeps_account() -> None:
    budget = Budget(fields=5, max_entries=100, max_name_bytes=64)
    fields_of(block(1) * 3, (0, 6), onnx_messages.GRAPH, budget)
    assert budget.fields == 2
    with pytest.raises(ModelError, match="more fields than the gate reads"):
        fields_of(block(1) * 3, (0, 6), onnx_messages.GRAPH, budget)


def test_refuses_more_entries_of_one_field_than_allowed() -> None:
    with pytest.raises(ModelError, match=r"more than 100 entries of GraphProto\.node"):
        read(block(1) * 101, onnx_messages.GRAPH)


def test_what_is_read_is_what_protobuf_reads() -> None:
    data = model_bytes(tensor(number(1, 2), number(1, 3), number(2, 1), block(9, b"\0" * 24)))
    parsed = onnx.load_from_string(data)
    assert list(parsed.graph.initializer[0].dims) == [2, 3]
    graph = read(data, onnx_messages.MODEL).spans["graph"][0]
    budget = Budget(100, 100, 100)
    span = fields_of(data, graph, onnx_messages.GRAPH, budget).spans["initializer"][0]
    assert fields_of(data, span, onnx_messages.TENSOR, budget).numbers["dims"] == [2, 3]
