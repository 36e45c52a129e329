# SPDX-License-Identifier: Apache-2.0
"""The body of a function in another version of ONNX's operator set, by ONNX's own converter.

    body of opset 11: ReduceMin(x)   ->   as a model: graph inputs with the node's types, its attributes filled in
                                     ->   converted to the model's version, checked   ->   a body again

Law: None where the converter does not know how; names of inputs and outputs stay. Whoever takes the body compares
outputs, as after every transform.
"""

from typing import Any

import onnx
import onnx.helper
import onnx_ir as ir

from nndeploy.backend_kit.opset import converted

MODEL_IR_VERSION = 8


def body_in_opset(
    body: onnx.FunctionProto, schema: Any, node: ir.Node, version: int | None
) -> onnx.FunctionProto | None:
    """Returns the body of `node` in `version` of ONNX's operator set, without attributes; None where there is none."""
    said = {opset.domain: opset.version for opset in body.opset_import}
    inputs = _typed_inputs(body, node)
    is_plain = all(inner.domain == "" and not _has_graphs(inner) for inner in body.node)
    if version is None or inputs is None or set(said) != {""} or not is_plain or not body.node:
        return None
    filled = _with_attributes(body, schema, node)
    outputs = [onnx.helper.make_empty_tensor_value_info(name) for name in body.output]
    graph = onnx.helper.make_graph(filled, body.name or "body", inputs, outputs)
    model = onnx.helper.make_model(graph, opset_imports=body.opset_import, ir_version=MODEL_IR_VERSION)
    graph_now = _graph_in_opset(model, version)
    if graph_now is None or [value.name for value in graph_now.output] != list(body.output):
        return None
    constants = [onnx.helper.make_node("Constant", [], [tensor.name], value=tensor) for tensor in graph_now.initializer]
    return onnx.helper.make_function(
        body.domain, body.name, list(body.input), list(body.output), [*constants, *graph_now.node], []
    )


def _graph_in_opset(model: onnx.ModelProto, version: int) -> onnx.GraphProto | None:
    try:
        inferred = onnx.shape_inference.infer_shapes(model)  # the converter's adapters ask for types
    except Exception:  # types that the body was not written for
        return None
    result = converted(inferred, version).model
    return None if result is None else result.graph


def _typed_inputs(body: onnx.FunctionProto, node: ir.Node) -> list[onnx.ValueInfoProto] | None:
    """Returns the body's inputs with the types of the node's; None where one is left out or has no type."""
    infos = []
    if len(node.inputs) != len(body.input):
        return None
    for name, value in zip(body.input, node.inputs, strict=True):
        if value is None or value.type is None:
            return None
        info = ir.serde.serialize_value(value)
        info.name = name
        infos.append(info)
    return infos


def _has_graphs(node: onnx.NodeProto) -> bool:
    return any(attribute.HasField("g") or attribute.graphs for attribute in node.attribute)


def _with_attributes(body: onnx.FunctionProto, schema: Any, node: ir.Node) -> list[onnx.NodeProto]:
    """Returns the body's nodes in which what refers to an attribute has the value of the node's, or the default."""
    given = {a.name: a for a in ir.serde.serialize_node(node).attribute}
    defaults = {name: a.default_value for name, a in schema.attributes.items() if a.default_value.type}
    values = defaults | given
    filled = []
    for inner in body.node:
        copy = onnx.NodeProto()
        copy.CopyFrom(inner)
        del copy.attribute[:]
        for attribute in inner.attribute:
            if not attribute.ref_attr_name:
                copy.attribute.append(attribute)
            elif attribute.ref_attr_name in values:
                value = onnx.AttributeProto()
                value.CopyFrom(values[attribute.ref_attr_name])
                value.name = attribute.name
                copy.attribute.append(value)
        filled.append(copy)
    return filled
