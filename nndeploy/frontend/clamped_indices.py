# SPDX-License-Identifier: Apache-2.0
"""Indices that are clamped to the axes that they count along, where the user asks for it; else they are an error.

    y = Gather(x, i)    ->    n = Shape(x)[axis];  y = Gather(x, Min(Max(i, -n), n - 1))

Before opset 12, whose Max takes no integers, they are Less and Where.

Law: for indices in range outputs do not change.
"""

import numpy as np
import onnx
import onnx_ir as ir
from onnx_ir.passes.common import ShapeInferencePass

from nndeploy.errors import UsageError
from nndeploy.graph.indexing import INDEXED, TUPLES, Indexed
from nndeploy.graph.nodes_before import NodesBefore
from nndeploy.graph.operators import int_attribute, opset_of

LEAST_OPSET = 9
"""The first with Where, and with Less of integers."""
FIRST_INTEGER_MAX = 12
_OF_INT32 = frozenset({("com.microsoft", "EmbedLayerNormalization")})
"""Operators whose indices are int32 alone."""


def clamped(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns a model with clamped indices.

    Raises:
        UsageError: its operator set is too old.
    """
    found = ir.from_proto(model)
    clamp_indices(found)
    return ir.to_proto(found)


def clamp_indices(model: ir.Model) -> None:
    """Clamps the indices of a model in place, in bodies and functions too; initializers stay as they are.

    Raises:
        UsageError: its operator set is too old.
    """
    nodes = [*model.graph.all_nodes(), *(node for one in model.functions.values() for node in one.all_nodes())]
    found = [(node, one) for node in nodes for one in INDEXED.get((node.domain, node.op_type), ())]
    if found and opset_of(model) < LEAST_OPSET:
        raise UsageError(f"indices are clamped from opset {LEAST_OPSET} on, the model has {opset_of(model)}")
    for node, one in found:
        if one.indices < len(node.inputs):
            _clamp(node, one, opset_of(model))
    if found:
        ShapeInferencePass()(model)


def _clamp(node: ir.Node, one: Indexed, opset: int) -> None:
    indices = node.inputs[one.indices]
    if indices is None or indices.is_initializer():
        return
    before = NodesBefore(node, f"clamp{one.indices}.")
    sizes = _sizes(node, one, before)
    last, first = before.add("Sub", sizes, before.constant(np.array(1, np.int64))), before.add("Neg", sizes)
    wide = before.add("Cast", indices, attributes={"to": ir.DataType.INT64.value})
    if opset >= FIRST_INTEGER_MAX:
        both = before.add("Min", before.add("Max", wide, first), last)
    else:
        high = before.add("Where", before.add("Less", wide, sizes), wide, last)
        both = before.add("Where", before.add("Less", high, first), first, high)
    if (node.domain, node.op_type) in _OF_INT32:
        both = before.add("Cast", both, attributes={"to": ir.DataType.INT32.value})
    node.replace_input_with(one.indices, both)


def _sizes(node: ir.Node, one: Indexed, before: NodesBefore) -> ir.Value:
    """Returns the sizes of the axes that indices count along."""
    shape = before.add("Shape", node.inputs[one.data])
    if one.axis == TUPLES:
        return _of_tuples(node, before, shape)
    axis = int_attribute(node, one.axis, 0) if one.axis else 0
    return before.add("Gather", shape, before.constant(np.array(axis, np.int64)), attributes={"axis": 0})


def _of_tuples(node: ir.Node, before: NodesBefore, shape: ir.Value) -> ir.Value:
    """Returns the sizes that the last axis of the indices counts along: those behind the axes of the batch."""
    begin = before.constant(np.array([int_attribute(node, "batch_dims", 0)], np.int64))
    count = before.add("Shape", before.add("Shape", node.inputs[1]))  # [rank of the indices]
    last = before.add("Sub", count, before.constant(np.array([1], np.int64)))
    depth = before.add("Gather", before.add("Shape", node.inputs[1]), last, attributes={"axis": 0})
    return before.add("Slice", shape, begin, before.add("Add", begin, depth))
