# SPDX-License-Identifier: Apache-2.0
"""Operators that ONNX itself defines by a graph of simpler ones are replaced by that graph.

    y = Op(x; attributes)   ->   y = f_Op(x; attributes)      f_Op: the function body in the operator's definition

For a backend without Gelu: y = Gelu(x)  ->  y = x/2 * (1 + Erf(x / sqrt(2))). A body is written in a version of the
operator set, the model's or an older or a newer one. It is taken where each of its operators means the same in the
model's version; else it is converted to that (see `nndeploy.backend_kit.transforms.convert_body`).

Law: outputs do not change beyond rounding. Source: the function bodies of ONNX's operator schemas.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import onnx
import onnx.defs
import onnx_ir as ir
from onnx_ir.passes.common import InlinePass, ShapeInferencePass

from nndeploy.backend_kit.transforms.convert_body import body_in_opset
from nndeploy.backend_kit.transforms.operator_versions import means_same, version_of
from nndeploy.graph.nodes import bodies, captured_values
from nndeploy.plugin.interface import MayTouch

EXPANDED_DOMAIN = "nndeploy.expanded"
GRAPHS = (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)


class ExpandFunction:
    """Replaces operators by their function bodies, one level deep: call it again for what the bodies hold."""

    name = "expand-function"

    def __call__(self, model: ir.Model, may_touch: MayTouch) -> int:
        """Rewrites, in place, nodes of the main graph that `may_touch` allows; returns how many it replaced."""
        count = 0
        for node in list(model.graph):
            if may_touch(node) and (body := function_of(node, model.graph.opset_imports)) is not None:
                body.domain, body.name = EXPANDED_DOMAIN, f"{node.op_type}_{count}"
                function = ir.serde.deserialize_function(body)
                model.functions[function.identifier()] = function
                node.domain, node.op_type = EXPANDED_DOMAIN, body.name
                for name in [a.name for a in node.attributes.values() if a.type in GRAPHS]:
                    del node.attributes[name]  # the body that was made for the node has them inside
                count += 1
        if count:
            InlinePass(lambda function: function.domain == EXPANDED_DOMAIN)(model)
            model.graph.opset_imports.pop(EXPANDED_DOMAIN, None)
            ShapeInferencePass()(model)
        return count


def function_of(node: ir.Node, opset_imports: Mapping[str, int]) -> onnx.FunctionProto | None:
    """Returns the body that defines `node`, with its default attributes filled in, or None where there is none."""
    domain = "" if node.domain == "ai.onnx" else node.domain
    version = version_of(opset_imports, domain)
    if version is None or any(captured_values(inside) for inside in bodies(node)):
        return None
    try:
        schema: Any = onnx.defs.get_schema(node.op_type, version, domain)  # its stubs lack the functions
    except onnx.defs.SchemaError:
        return None
    for written_for in _versions(schema, version):
        body = _body(schema, node, written_for)
        if body is None or not _produces(body, node):
            continue
        if not _means_same_in_model(body.node, _said(body), opset_imports):
            body = body_in_opset(body, schema, node, version_of(opset_imports, ""))
        if body is not None:
            del body.opset_import[:]
            body.opset_import.extend(onnx.helper.make_opsetid(d, v) for d, v in opset_imports.items())
            _give_defaults(body, schema)
            return body
    return None


def _versions(schema: Any, version: int) -> list[int]:
    """Returns the versions for which a schema has a body: the newest that the model knows first, newer ones last."""
    have = {*schema.function_opset_versions, *schema.context_dependent_function_opset_versions}
    return sorted((v for v in have if v <= version), reverse=True) + sorted(v for v in have if v > version)


def _body(schema: Any, node: ir.Node, version: int) -> onnx.FunctionProto | None:
    """Returns a schema's body for opset `version`; one that depends on the inputs' types is made for `node`."""
    if version in schema.function_opset_versions:
        has_graphs = any(True for _ in bodies(node))  # one made for the node has them inside
        return None if has_graphs else onnx.FunctionProto.FromString(schema.get_function_with_opset_version(version))
    if any(value is not None and value.type is None for value in node.inputs):
        return None
    types = [_type_bytes(value) for value in node.inputs]
    call = ir.serde.serialize_node(node).SerializeToString()
    data = schema.get_context_dependent_function_with_opset_version(version, call, types)
    return onnx.FunctionProto.FromString(data) if data else None


def _type_bytes(value: ir.Value | None) -> bytes:
    declared = onnx.TypeProto() if value is None else ir.serde.serialize_value(value).type
    return bytes(declared.SerializeToString())


def _said(body: onnx.FunctionProto) -> dict[str, int]:
    """Returns the operator sets of a body; one of another domain that does not say ONNX's is of the newest there is."""
    return {"": onnx.defs.onnx_opset_version(), **{said.domain: said.version for said in body.opset_import}}


def _means_same_in_model(
    nodes: Iterable[onnx.NodeProto], said: Mapping[str, int], opset_imports: Mapping[str, int]
) -> bool:
    """Returns whether the operators of a body, and of the graphs inside it, mean the same in the model."""
    for node in nodes:
        written, have = version_of(said, node.domain), version_of(opset_imports, node.domain)
        if written is None or have is None or not means_same(node.domain, node.op_type, written, have):
            return False
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                if not _means_same_in_model(graph.node, said, opset_imports):
                    return False
    return True


def _produces(body: onnx.FunctionProto, node: ir.Node) -> bool:
    """Drops the outputs that the node does not have; returns whether the body computes all that are left.

    An output in the middle that nobody reads and the body does not compute becomes a copy of the first input.
    """
    del body.output[len(node.outputs) :]
    known = {*body.input, *(output for inner in body.node for output in inner.output)}
    for i, value in enumerate(node.outputs):
        if body.output[i] not in known and body.input and not value.uses() and not value.is_graph_output():
            body.node.append(onnx.helper.make_node("Identity", [body.input[0]], [body.output[i]]))
            known.add(body.output[i])
    return known.issuperset(body.output)


def _give_defaults(body: onnx.FunctionProto, schema: onnx.defs.OpSchema) -> None:
    """Moves attributes with a default from the body's plain list to the one that holds defaults."""
    defaults = {name: a.default_value for name, a in schema.attributes.items() if a.default_value.type}
    plain = [name for name in body.attribute if name not in defaults]
    body.attribute_proto.extend(defaults[name] for name in body.attribute if name in defaults)
    del body.attribute[:]
    body.attribute.extend(plain)
