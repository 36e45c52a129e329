# SPDX-License-Identifier: Apache-2.0
"""y = f(a, b), z = f(a, b) -> every reader of z reads y.

Two nodes are the same when operator, attributes, inputs (the same values in the same order) and the outputs that are
asked for are the same.

Conditions: an operator of a domain that ONNX defines, deterministic (no random numbers, no Dropout that may be
training), without bodies and without text or large tensors among its attributes; z is no output of the graph, or y can
take its place. Main graph only.

Source: ONNX operator definitions: every operator outside `RANDOM_OPS` and training is a function of its inputs.
"""

from collections.abc import Hashable

import onnx_ir as ir

from nndeploy.graph.edits import GraphEdits
from nndeploy.graph.operators import RANDOM_OPS, is_inference_dropout
from nndeploy.passes.model_pass import ModelPass

MAX_TENSOR_BYTES = 1 << 16
"""Tensors among attributes are compared by their bytes up to this size; larger ones are weights, seldom equal."""

_DOMAINS = frozenset({"", "ai.onnx.ml"})


class EliminateCommonSubexpressions(ModelPass):
    """Computes once what is computed twice."""

    name = "eliminate-common-subexpressions"

    def rewrite(self, model: ir.Model) -> int:
        """Rewrites the model in place; returns how many nodes it removed."""
        edits, first_of_kind, count = GraphEdits(model), dict[Hashable, ir.Node](), 0
        for node in tuple(model.graph):
            if _is_function_of_inputs(node, edits):
                first = first_of_kind.setdefault(_kind(node), node)
                count += first is not node and edits.bypass(node, *first.outputs)
        return count


def _is_function_of_inputs(node: ir.Node, edits: GraphEdits) -> bool:
    if node.domain not in _DOMAINS or node.op_identifier() in edits.model.functions or not node.outputs:
        return False
    if node.op_type in RANDOM_OPS:
        return False
    return node.op_type != "Dropout" or is_inference_dropout(node, edits.opset)


def _kind(node: ir.Node) -> Hashable:
    attributes = tuple(sorted((name, _attribute_key(attribute)) for name, attribute in node.attributes.items()))
    inputs = tuple(id(value) for value in node.inputs)
    asked_for = tuple(bool(output.name) for output in node.outputs)
    return node.op_identifier(), node.version, attributes, inputs, asked_for


def _attribute_key(attribute: ir.Attr) -> tuple[str, ...]:
    match attribute.type:
        case ir.AttributeType.INT | ir.AttributeType.STRING:
            return str(attribute.type), str(attribute.value)
        case ir.AttributeType.FLOAT:
            return str(attribute.type), attribute.as_float().hex()
        case ir.AttributeType.INTS | ir.AttributeType.STRINGS:
            return str(attribute.type), *(str(item) for item in attribute.value)
        case ir.AttributeType.FLOATS:
            return str(attribute.type), *(number.hex() for number in attribute.as_floats())
        case ir.AttributeType.TENSOR if _is_small(attribute.as_tensor()):
            tensor = attribute.as_tensor()
            return str(attribute.type), str(tensor.dtype), str(tensor.shape), tensor.tobytes().hex()
    return str(attribute.type), str(id(attribute))  # a body, or a large tensor: equal to no other


def _is_small(tensor: ir.TensorProtocol) -> bool:
    return tensor.dtype != ir.DataType.STRING and tensor.nbytes <= MAX_TENSOR_BYTES
