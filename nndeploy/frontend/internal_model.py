# SPDX-License-Identifier: Apache-2.0
"""A checked ONNX model becomes the model that passes and backends work on.

    ONNX model -> without its large weights -> values named -> types inferred -> onnx_ir, weights put back

The libraries on the way copy a model several times, so the large weights stay out of it: they stand in as inputs of
the same type. The internal model shares them with the ONNX model and copies nothing. In it every node and value has a
name of its own, and every value has the type that onnx could infer.
"""

from collections.abc import Mapping

import onnx
import onnx.helper
import onnx_ir as ir

from nndeploy.errors import NndeployError, one_line
from nndeploy.frontend.declared_outputs import add_declared
from nndeploy.frontend.inference import infer_types
from nndeploy.frontend.stored_weights import mapped
from nndeploy.frontend.traversal import graphs_of
from nndeploy.frontend.unique_names import name_values
from nndeploy.graph.map_types import say_map_type
from nndeploy.graph.onnx_types import value_type_from_onnx
from nndeploy.onnx_gate.tensor_rules import EXTERNAL
from nndeploy.values.types import ValueType

_LARGE_BYTES = 4096
"""Least size of a large tensor: more than any shape, axes or similar tensor has, which inference must see."""


def without_large_weights(model: onnx.ModelProto) -> tuple[onnx.ModelProto, dict[str, onnx.TensorProto]]:
    """Returns a copy of the model in which large initializers are inputs, and these initializers by name."""
    large = {tensor.name: tensor for tensor in model.graph.initializer if _is_large(tensor)}
    light = onnx.ModelProto()
    _copy_fields(model, light, but="graph")
    _copy_fields(model.graph, light.graph, but="initializer")
    light.graph.initializer.extend(tensor for tensor in model.graph.initializer if tensor.name not in large)
    light.graph.input.extend(
        onnx.helper.make_tensor_value_info(name, tensor.data_type, tensor.dims) for name, tensor in large.items()
    )
    return light, large


def internal_model_from_onnx(
    light: onnx.ModelProto, large: Mapping[str, onnx.TensorProto]
) -> tuple[ir.Model, onnx.ModelProto, tuple[str, ...]]:
    """Returns the internal model of what `without_large_weights` returned, the same as ONNX without weights, warnings.

    Where something fails that nobody foresaw, the types are those that the model declares itself.

    Raises:
        ModelError: a node cannot work on what it gets.
    """
    name_values(light)
    declared = {output.name: output.type for output in light.graph.output}
    is_open = any(_is_open(value.type) for value in light.graph.input)
    warnings: tuple[str, ...] = ()
    try:
        flat = infer_types(light)
        warnings = tuple(add_declared(flat, declared, is_open))
        model = ir_model(flat)
    except NndeployError:
        raise
    except Exception as err:  # a mistake of ours or of a library is no reason to refuse a model
        flat, warnings = light, (one_line(f"the types of values are not known: {type(err).__name__}: {err}")[:300],)
        model = ir_model(light)
    for name, tensor in large.items():
        _put_back(model.graph, name, tensor)
    return model, flat, warnings


def _is_open(value_type: onnx.TypeProto) -> bool:
    tensor = value_type.tensor_type
    return not tensor.HasField("shape") or any(not dim.HasField("dim_value") for dim in tensor.shape.dim)


def _is_large(tensor: onnx.TensorProto) -> bool:
    return tensor.data_location == EXTERNAL or tensor.ByteSize() > _LARGE_BYTES


def _copy_fields(
    source: onnx.ModelProto | onnx.GraphProto, target: onnx.ModelProto | onnx.GraphProto, but: str
) -> None:
    for field, _ in source.ListFields():
        if field.name != but:
            value = getattr(source, field.name)
            if hasattr(value, "MergeFrom"):
                getattr(target, field.name).MergeFrom(value)
            else:
                setattr(target, field.name, value)


def ir_model(flat: onnx.ModelProto) -> ir.Model:
    """Returns the model in onnx_ir, which knows no maps: such a value has its type in its metadata."""
    known = onnx.ModelProto()
    known.CopyFrom(flat)
    types: dict[str, ValueType] = {}
    for graph in graphs_of(known.graph):
        for value in (*graph.input, *graph.output, *graph.value_info):
            if _holds_map(value.type):
                types[value.name] = value_type_from_onnx(value.type)
                value.ClearField("type")
    model = ir.from_proto(known)
    for ir_value in (*model.graph.inputs, *(v for node in model.graph.all_nodes() for v in node.outputs)):
        if ir_value.name in types:
            say_map_type(ir_value, types[ir_value.name])
    return model


def _holds_map(proto: onnx.TypeProto) -> bool:
    match proto.WhichOneof("value"):
        case "sequence_type":
            return _holds_map(proto.sequence_type.elem_type)
        case "optional_type":
            return _holds_map(proto.optional_type.elem_type)
        case kind:
            return bool(kind == "map_type")


def _put_back(graph: ir.Graph, name: str, tensor: onnx.TensorProto) -> None:
    value = next(v for v in graph.inputs if v.name == name)
    graph.inputs.remove(value)
    value.const_value = ir.serde.deserialize_tensor(tensor)
    graph.register_initializer(value)
    mapped(value)
