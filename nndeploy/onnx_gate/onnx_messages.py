# SPDX-License-Identifier: Apache-2.0
"""The messages of an ONNX file: which field numbers each has, and what the gate keeps of them.

Plain data for `wire.py`. A test compares it with the installed onnx library, field by field.

Source: onnx.proto of onnx 1.23 (IR version 14).
"""

from nndeploy.onnx_gate.wire import FIXED32, FIXED64, LENGTH, VARINT, Field, Kind, Message


def _number(number: int, name: str) -> Field:
    return Field(number, name, Kind.NUMBER, VARINT)


def _numbers(number: int, name: str) -> Field:
    return Field(number, name, Kind.NUMBER, VARINT, repeated=True)


def _name(number: int, name: str) -> Field:
    return Field(number, name, Kind.NAME, LENGTH)


def _names(number: int, name: str) -> Field:
    return Field(number, name, Kind.NAME, LENGTH, repeated=True)


def _text(number: int, name: str) -> Field:
    return Field(number, name, Kind.TEXT, LENGTH)


def _one(number: int, name: str, message: str) -> Field:
    return Field(number, name, Kind.MESSAGE, LENGTH, message=message)


def _many(number: int, name: str, message: str) -> Field:
    return Field(number, name, Kind.MESSAGE, LENGTH, repeated=True, message=message)


def _size(number: int, name: str) -> Field:
    return Field(number, name, Kind.COUNT, LENGTH)


def _count(number: int, name: str, wire: int) -> Field:
    return Field(number, name, Kind.COUNT, wire, repeated=True)


_DOC = "doc_string"
_METADATA = "metadata_props"
_PAIR = "StringStringEntryProto"

MODEL = Message("ModelProto", (
    _number(1, "ir_version"), _text(2, "producer_name"), _text(3, "producer_version"), _name(4, "domain"),
    _number(5, "model_version"), _text(6, _DOC), _one(7, "graph", "GraphProto"),
    _many(8, "opset_import", "OperatorSetIdProto"), _many(14, _METADATA, _PAIR),
    _many(20, "training_info", "TrainingInfoProto"), _many(25, "functions", "FunctionProto"),
    _many(26, "configuration", "DeviceConfigurationProto"),
))  # fmt: skip
OPERATOR_SET_ID = Message("OperatorSetIdProto", (_name(1, "domain"), _number(2, "version")))
GRAPH = Message("GraphProto", (
    _many(1, "node", "NodeProto"), _name(2, "name"), _many(5, "initializer", "TensorProto"), _text(10, _DOC),
    _many(11, "input", "ValueInfoProto"), _many(12, "output", "ValueInfoProto"),
    _many(13, "value_info", "ValueInfoProto"), _many(14, "quantization_annotation", "TensorAnnotation"),
    _many(15, "sparse_initializer", "SparseTensorProto"), _many(16, _METADATA, _PAIR),
))  # fmt: skip
NODE = Message("NodeProto", (
    _names(1, "input"), _names(2, "output"), _name(3, "name"), _name(4, "op_type"),
    _many(5, "attribute", "AttributeProto"), _text(6, _DOC), _name(7, "domain"), _name(8, "overload"),
    _many(9, _METADATA, _PAIR), _many(10, "device_configurations", "NodeDeviceConfigurationProto"),
))  # fmt: skip
ATTRIBUTE = Message("AttributeProto", (
    _name(1, "name"), Field(2, "f", Kind.COUNT, FIXED32), _number(3, "i"), _size(4, "s"), _one(5, "t", "TensorProto"),
    _one(6, "g", "GraphProto"), _count(7, "floats", FIXED32), _count(8, "ints", VARINT), _count(9, "strings", LENGTH),
    _many(10, "tensors", "TensorProto"), _many(11, "graphs", "GraphProto"), _text(13, _DOC),
    _one(14, "tp", "TypeProto"), _many(15, "type_protos", "TypeProto"), _number(20, "type"),
    _name(21, "ref_attr_name"), _one(22, "sparse_tensor", "SparseTensorProto"),
    _many(23, "sparse_tensors", "SparseTensorProto"),
))  # fmt: skip
TENSOR = Message("TensorProto", (
    _numbers(1, "dims"), _number(2, "data_type"), _one(3, "segment", "Segment"), _count(4, "float_data", FIXED32),
    _count(5, "int32_data", VARINT), _count(6, "string_data", LENGTH), _count(7, "int64_data", VARINT),
    _name(8, "name"), _size(9, "raw_data"), _count(10, "double_data", FIXED64), _count(11, "uint64_data", VARINT),
    _text(12, _DOC), _many(13, "external_data", _PAIR), _number(14, "data_location"), _many(16, _METADATA, _PAIR),
))  # fmt: skip
SPARSE_TENSOR = Message(
    "SparseTensorProto", (_one(1, "values", "TensorProto"), _one(2, "indices", "TensorProto"), _numbers(3, "dims"))
)
FUNCTION = Message("FunctionProto", (
    _name(1, "name"), _names(4, "input"), _names(5, "output"), _names(6, "attribute"), _many(7, "node", "NodeProto"),
    _text(8, _DOC), _many(9, "opset_import", "OperatorSetIdProto"), _name(10, "domain"),
    _many(11, "attribute_proto", "AttributeProto"), _many(12, "value_info", "ValueInfoProto"), _name(13, "overload"),
    _many(14, _METADATA, _PAIR),
))  # fmt: skip
TRAINING_INFO = Message("TrainingInfoProto", (
    _one(1, "initialization", "GraphProto"), _one(2, "algorithm", "GraphProto"),
    _many(3, "initialization_binding", _PAIR), _many(4, "update_binding", _PAIR),
))  # fmt: skip
TYPE = Message("TypeProto", (
    _one(1, "tensor_type", "Tensor"), _one(4, "sequence_type", "Sequence"), _one(5, "map_type", "Map"),
    _name(6, "denotation"), _one(7, "opaque_type", "Opaque"), _one(8, "sparse_tensor_type", "SparseTensor"),
    _one(9, "optional_type", "Optional"),
), frozenset({
    "tensor_type", "sequence_type", "map_type", "opaque_type", "sparse_tensor_type", "optional_type",
}))  # fmt: skip

_OTHERS: tuple[Message, ...] = (
    Message("Segment", (_number(1, "begin"), _number(2, "end"))),
    Message(_PAIR, (_name(1, "key"), _text(2, "value"))),
    Message(
        "ValueInfoProto",
        (_name(1, "name"), _one(2, "type", "TypeProto"), _text(3, _DOC), _many(4, _METADATA, _PAIR)),
    ),
    Message("Tensor", (_number(1, "elem_type"), _one(2, "shape", "TensorShapeProto"))),
    Message("SparseTensor", (_number(1, "elem_type"), _one(2, "shape", "TensorShapeProto"))),
    Message("Sequence", (_one(1, "elem_type", "TypeProto"),)),
    Message("Optional", (_one(1, "elem_type", "TypeProto"),)),
    Message("Map", (_number(1, "key_type"), _one(2, "value_type", "TypeProto"))),
    Message("Opaque", (_name(1, "domain"), _name(2, "name"))),
    Message("TensorShapeProto", (_many(1, "dim", "Dimension"),)),
    Message(
        "Dimension",
        (_number(1, "dim_value"), _name(2, "dim_param"), _name(3, "denotation")),
        frozenset({"dim_value", "dim_param"}),
    ),
    Message("TensorAnnotation", (_name(1, "tensor_name"), _many(2, "quant_parameter_tensor_names", _PAIR))),
    Message("DeviceConfigurationProto", (_name(1, "name"), _number(2, "num_devices"), _names(3, "device"))),
    Message(
        "NodeDeviceConfigurationProto",
        (_name(1, "configuration_id"), _many(2, "sharding_spec", "ShardingSpecProto"), _number(3, "pipeline_stage")),
    ),
    Message("ShardingSpecProto", (
        _name(1, "tensor_name"), _count(2, "device", VARINT),
        _many(3, "index_to_device_group_map", "IntIntListEntryProto"), _many(4, "sharded_dim", "ShardedDimProto"),
    )),
    Message("IntIntListEntryProto", (_number(1, "key"), _count(2, "value", VARINT))),
    Message("ShardedDimProto", (_number(1, "axis"), _many(2, "simple_sharding", "SimpleShardedDimProto"))),
    Message(
        "SimpleShardedDimProto",
        (_number(1, "dim_value"), _name(2, "dim_param"), _number(3, "num_shards")),
        frozenset({"dim_value", "dim_param"}),
    ),
)  # fmt: skip

MESSAGES: dict[str, Message] = {
    message.name: message
    for message in (
        MODEL, OPERATOR_SET_ID, GRAPH, NODE, ATTRIBUTE, TENSOR, SPARSE_TENSOR, FUNCTION, TRAINING_INFO, TYPE, *_OTHERS,
    )
}  # fmt: skip

WELL_FORMED: dict[str, Message] = {
    name: MESSAGES[message]
    for owner in (MODEL, GRAPH, NODE, ATTRIBUTE, TENSOR, FUNCTION, TRAINING_INFO)
    for name, message in owner.inner.items()
    if MESSAGES[message] in (TYPE, *_OTHERS)
}
"""Field of a message that the gate has rules for -> the inner message that it has none for."""
