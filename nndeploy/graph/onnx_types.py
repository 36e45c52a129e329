# SPDX-License-Identifier: Apache-2.0
"""The types of an ONNX model's inputs and outputs as `nndeploy.values.types`; what those cannot say is refused here."""

from collections.abc import Sequence

import onnx

from nndeploy.bundle.manifest import NamedType
from nndeploy.errors import ModelError, NndeployError
from nndeploy.graph.element_names import DTYPES
from nndeploy.values.types import MAX_RANK, Dim, MapType, OptionalType, SequenceType, TensorType, ValueType


def named_types_from_onnx(values: Sequence[onnx.ValueInfoProto], kind: str) -> tuple[NamedType, ...]:
    """Returns name and type of a graph's inputs or outputs (`kind` says which, for messages).

    Raises:
        ModelError: one has no type, or one that nndeploy does not know.
    """
    named = []
    for value in values:
        try:
            named.append(NamedType(value.name, value_type_from_onnx(value.type)))
        except NndeployError as err:
            err.within(f"{kind} {value.name!r:.80}")
            raise
    return tuple(named)


def value_type_from_onnx(proto: onnx.TypeProto) -> ValueType:
    """Returns the type that a TypeProto describes; sizes that are not known are None.

    Raises:
        ModelError: it describes none, or one that nndeploy does not know.
    """
    match proto.WhichOneof("value"):
        case "tensor_type":
            return TensorType(_dtype(proto.tensor_type.elem_type), _shape(proto.tensor_type))
        case "sequence_type":
            return SequenceType(value_type_from_onnx(proto.sequence_type.elem_type))
        case "optional_type":
            return OptionalType(value_type_from_onnx(proto.optional_type.elem_type))
        case "map_type":
            return MapType(_dtype(proto.map_type.key_type), value_type_from_onnx(proto.map_type.value_type))
        case None:
            raise ModelError("it has no type")
        case kind:
            raise ModelError(
                f"it has a {kind.replace('_', ' ')}, which nndeploy does not run", hint="use a dense tensor"
            )


def _dtype(number: int) -> str:
    if number not in DTYPES:
        known = number in onnx.TensorProto.DataType.values() and number != onnx.TensorProto.UNDEFINED
        name = onnx.TensorProto.DataType.Name(number) if known else str(number)
        raise ModelError(f"it has the element type {name}, which nndeploy does not run")
    return DTYPES[number]


def _shape(tensor: onnx.TypeProto.Tensor) -> tuple[Dim, ...] | None:
    if not tensor.HasField("shape"):
        return None
    if len(tensor.shape.dim) > MAX_RANK:
        raise ModelError(f"it has {len(tensor.shape.dim)} dimensions", hint=f"at most {MAX_RANK}")
    return tuple(_dim(dim) for dim in tensor.shape.dim)


def _dim(dim: onnx.TensorShapeProto.Dimension) -> Dim:
    if dim.HasField("dim_value"):
        return dim.dim_value if dim.dim_value >= 0 else None
    return dim.dim_param or None
