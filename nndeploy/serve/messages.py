# SPDX-License-Identifier: Apache-2.0
"""The messages of the protocol's gRPC form and of health checks, made from a table of their fields.

Message -> its fields as "number type name", where `*` before the type says repeated, `map` a map from texts, and a type
that is none of protobuf's names another message. They live in a pool of their own, so that a client's messages of the
same names can be in the same process.

Source: Open Inference Protocol, open_inference_grpc.proto, package `inference`; ModelStreamInfer is Triton's extension;
grpc.health.v1, health.proto, of which the name of a package is nowhere in a message, and a status is its number.
"""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE = "inference"
SERVICE, HEALTH = f"{PACKAGE}.GRPCInferenceService", "grpc.health.v1.Health"

_Field = descriptor_pb2.FieldDescriptorProto
_ONE_OF = "parameter_choice"
_TENSOR = ("1 string name", "2 string datatype", "3 *int64 shape", "4 map InferParameter parameters")
_FIELDS: dict[str, tuple[str, ...]] = {
    "ServerLiveRequest": (),
    "ServerLiveResponse": ("1 bool live",),
    "ServerReadyRequest": (),
    "ServerReadyResponse": ("1 bool ready",),
    "ModelReadyRequest": ("1 string name", "2 string version"),
    "ModelReadyResponse": ("1 bool ready",),
    "ServerMetadataRequest": (),
    "ServerMetadataResponse": ("1 string name", "2 string version", "3 *string extensions"),
    "ModelMetadataRequest": ("1 string name", "2 string version"),
    "ModelMetadataResponse": (
        "1 string name", "2 *string versions", "3 string platform",
        "4 *ModelMetadataResponse.TensorMetadata inputs", "5 *ModelMetadataResponse.TensorMetadata outputs",
    ),
    "ModelMetadataResponse.TensorMetadata": _TENSOR[:3],
    "InferParameter": (
        "1 bool bool_param", "2 int64 int64_param", "3 string string_param", "4 double double_param",
        "5 uint64 uint64_param",
    ),
    "InferTensorContents": (
        "1 *bool bool_contents", "2 *int32 int_contents", "3 *int64 int64_contents", "4 *uint32 uint_contents",
        "5 *uint64 uint64_contents", "6 *float fp32_contents", "7 *double fp64_contents", "8 *bytes bytes_contents",
    ),
    "ModelInferRequest": (
        "1 string model_name", "2 string model_version", "3 string id", "4 map InferParameter parameters",
        "5 *ModelInferRequest.InferInputTensor inputs", "6 *ModelInferRequest.InferRequestedOutputTensor outputs",
        "7 *bytes raw_input_contents",
    ),
    "ModelInferRequest.InferInputTensor": (*_TENSOR, "5 InferTensorContents contents"),
    "ModelInferRequest.InferRequestedOutputTensor": ("1 string name", "2 map InferParameter parameters"),
    "ModelInferResponse": (
        "1 string model_name", "2 string model_version", "3 string id", "4 map InferParameter parameters",
        "5 *ModelInferResponse.InferOutputTensor outputs", "6 *bytes raw_output_contents",
    ),
    "ModelInferResponse.InferOutputTensor": (*_TENSOR, "5 InferTensorContents contents"),
    "ModelStreamInferResponse": ("1 string error_message", "2 ModelInferResponse infer_response"),
    "HealthCheckRequest": ("1 string service",),
    "HealthCheckResponse": ("1 int32 status",),
}  # fmt: skip

METHODS = ("ServerLive", "ServerReady", "ModelReady", "ServerMetadata", "ModelMetadata", "ModelInfer")
"""Methods that take one NAMERequest and give one NAMEResponse."""


def _described() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="nndeploy/open_inference.proto", package=PACKAGE, syntax="proto3")
    messages: dict[str, descriptor_pb2.DescriptorProto] = {}
    for name in sorted(_FIELDS):  # an outer message stands before those within it
        outer, _, inner = name.rpartition(".")
        messages[name] = messages[outer].nested_type.add(name=inner) if outer else file.message_type.add(name=inner)
    for name, fields in _FIELDS.items():
        for text in fields:
            _add_field(messages[name], name, text)
    messages["InferParameter"].oneof_decl.add(name=_ONE_OF)
    for field in messages["InferParameter"].field:
        field.oneof_index = 0
    return file


def _add_field(message: descriptor_pb2.DescriptorProto, message_name: str, text: str) -> None:
    number, kind, *rest = text.split()
    field = message.field.add(name=rest[-1], number=int(number), label=_Field.LABEL_OPTIONAL)
    if kind == "map":
        entry = message.nested_type.add(name=f"{rest[-1].capitalize()}Entry")
        entry.options.map_entry = True
        _add_field(entry, "", "1 string key")
        _add_field(entry, "", f"2 {rest[0]} value")
        kind = f"*{message_name}.{entry.name}"
    if kind.startswith("*"):
        field.label = _Field.LABEL_REPEATED
        kind = kind[1:]
    scalar = _Field.Type.DESCRIPTOR.values_by_name.get(f"TYPE_{kind.upper()}")
    if scalar is not None:
        field.type = scalar.number
    else:
        field.type = _Field.TYPE_MESSAGE
        field.type_name = f".{PACKAGE}.{kind}"


_POOL = descriptor_pool.DescriptorPool()
_POOL.Add(_described())
MESSAGES: dict[str, Any] = {
    name: message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"{PACKAGE}.{name}")) for name in _FIELDS
}
"""Message -> its class."""
