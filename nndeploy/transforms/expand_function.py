# SPDX-License-Identifier: Apache-2.0
"""Operators that ONNX itself defines by a graph of simpler ones are replaced by that graph.

    y = Op(x; attributes)   ->   y = f_Op(x; attributes)      f_Op: the function body in the operator's definition

For a backend without Gelu: y = Gelu(x)  ->  y = x/2 * (1 + Erf(x / sqrt(2))). The body is taken only where each of
its operators means the same in the model's operator set as in the body's.

Law: outputs do not change beyond rounding. Source: the function bodies of ONNX's operator schemas.
"""

from collections.abc import Mapping

import onnx
import onnx.defs
import onnx_ir as ir
from onnx_ir.passes.common import InlinePass, ShapeInferencePass

from nndeploy.plugin.interface import MayTouch
from nndeploy.transforms.operator_versions import means_same, version_of

EXPANDED_DOMAIN = "nndeploy.expanded"


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
    if version is None or any(
        a.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS) for a in node.attributes.values()
    ):
        return None
    try:
        schema = onnx.defs.get_schema(node.op_type, version, domain)
    except onnx.defs.SchemaError:
        return None
    body = _body(schema, node)
    if body is None or not all(_is_in_model(inner, body, opset_imports) for inner in body.node):
        return None
    del body.opset_import[:]
    body.opset_import.extend(onnx.helper.make_opsetid(d, v) for d, v in opset_imports.items())
    _give_defaults(body, schema)
    return body


def _body(schema: onnx.defs.OpSchema, node: ir.Node) -> onnx.FunctionProto | None:
    """Returns the newest body of a schema; one that depends on the inputs' types is made for those of `node`."""
    if schema.has_function:
        data = schema.get_function_with_opset_version(max(schema.function_opset_versions))
    elif schema.has_context_dependent_function and not any(v is not None and v.type is None for v in node.inputs):
        types = [_type_bytes(value) for value in node.inputs]
        newest = max(schema.context_dependent_function_opset_versions)
        data = schema.get_context_dependent_function_with_opset_version(
            newest, ir.serde.serialize_node(node).SerializeToString(), types
        )
    else:
        return None
    return onnx.FunctionProto.FromString(data) if data else None


def _type_bytes(value: ir.Value | None) -> bytes:
    if value is None:
        return onnx.TypeProto().SerializeToString()
    return ir.serde.serialize_value(value).type.SerializeToString()


def _is_in_model(inner: onnx.NodeProto, body: onnx.FunctionProto, opset_imports: Mapping[str, int]) -> bool:
    """Returns whether an operator of a body means the same in the model; bodies inside it are not looked into."""
    said = version_of({imported.domain: imported.version for imported in body.opset_import}, inner.domain)
    have = version_of(opset_imports, inner.domain)
    has_body = any(attribute.HasField("g") or attribute.graphs for attribute in inner.attribute)
    return (
        said is not None and have is not None and not has_body and means_same(inner.domain, inner.op_type, said, have)
    )


def _give_defaults(body: onnx.FunctionProto, schema: onnx.defs.OpSchema) -> None:
    """Moves attributes with a default from the body's plain list to the one that holds defaults."""
    defaults = {name: a.default_value for name, a in schema.attributes.items() if a.default_value.type}
    plain = [name for name in body.attribute if name not in defaults]
    body.attribute_proto.extend(defaults[name] for name in body.attribute if name in defaults)
    del body.attribute[:]
    body.attribute.extend(plain)
