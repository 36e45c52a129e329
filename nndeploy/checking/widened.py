# SPDX-License-Identifier: Apache-2.0
"""A model of 16-bit floats -> the same one in 32 bits: what an engine gives that keeps more than it must.

    x: float16, y = Conv(x, w: float16)   ->   y = Cast16(Conv(Cast32(x), w: float32))

Inputs and outputs stay what they are; constants keep their values exactly, and those in a file stay there, with a Cast
behind each. Engines for CPUs compute such models so.
"""

from copy import deepcopy

import numpy as np
import onnx_ir as ir

SHORT = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
WIDE = ir.DataType.FLOAT
_TYPE_NAMES = ("to", "dtype", "output_dtype")


def has_short_floats(graph: ir.Graph) -> bool:
    """Returns whether some value of the main graph, or a constant in it, is a 16-bit float."""
    values = [*graph.inputs, *graph.initializers.values(), *(value for node in graph for value in node.outputs)]
    return any(value.dtype in SHORT for value in values)


def widened(model: ir.Model) -> ir.Model:
    """Returns a copy of a model that computes in 32 bits what it computed in 16; its interface stays."""
    copy = model.clone()
    given = [*copy.graph.inputs, *filter(_is_stored, copy.graph.initializers.values())]
    kept = {value: value.dtype for value in (*given, *copy.graph.outputs) if value.dtype in SHORT}
    for graph in (copy.graph, *copy.graph.subgraphs()):
        _widen(graph)
    for value, dtype in kept.items():
        assert dtype is not None
        if value in given:
            _cast_input(copy.graph, value, dtype)
    for index, value in enumerate(copy.graph.outputs):
        if value in kept and value not in given:
            _cast_output(copy.graph, index, value, kept[value])
    return copy


def _is_stored(value: ir.Value) -> bool:
    """Whether a constant lies in a file: with other data it would lie in the model."""
    return isinstance(value.const_value, ir.ExternalTensor)


def _widen(graph: ir.Graph) -> None:
    for value in graph.initializers.values():
        if value.const_value is not None and value.dtype in SHORT and not _is_stored(value):
            value.const_value = _wide(value.const_value)
    for value in (*graph.inputs, *graph.initializers.values(), *(v for node in graph for v in node.outputs)):
        if value.dtype in SHORT:
            _set_dtype(value, WIDE)
    for node in graph:
        for name, attribute in list(node.attributes.items()):
            if attribute.type is ir.AttributeType.TENSOR and attribute.as_tensor().dtype in SHORT:
                node.attributes[name] = ir.AttrTensor(name, _wide(attribute.as_tensor()))
            elif name in _TYPE_NAMES and attribute.type is ir.AttributeType.INT and attribute.as_int() in SHORT:
                node.attributes[name] = ir.AttrInt64(name, int(WIDE))


def _wide(tensor: ir.TensorProtocol) -> ir.TensorProtocol:
    return ir.tensor(tensor.numpy().astype(np.float32), name=tensor.name)


def _set_dtype(value: ir.Value, dtype: ir.DataType) -> None:
    value.type = deepcopy(value.type)  # a clone of a model shares the types of its values with the model
    value.dtype = dtype


def _cast_input(graph: ir.Graph, value: ir.Value, dtype: ir.DataType) -> None:
    users = list(value.uses())
    cast = ir.node("Cast", [value], {"to": int(WIDE)})
    cast.outputs[0].dtype = WIDE
    _set_dtype(value, dtype)
    for node, index in users:
        node.replace_input_with(index, cast.outputs[0])
    first = graph[0] if len(graph) else None
    if first is None:
        graph.append(cast)
    else:
        graph.insert_before(first, cast)


def _cast_output(graph: ir.Graph, index: int, value: ir.Value, dtype: ir.DataType | None) -> None:
    assert dtype is not None
    cast = ir.node("Cast", [value], {"to": int(dtype)})
    name = value.name or ""
    value.name = f"{name}__wide"
    cast.outputs[0].name = name
    cast.outputs[0].dtype, cast.outputs[0].shape = dtype, value.shape
    graph.append(cast)
    graph.outputs[index] = cast.outputs[0]
