# SPDX-License-Identifier: Apache-2.0
"""Concat(Concat(x, y, axis=a), z, axis=a) -> Concat(x, y, z, axis=a): what was joined before is not copied again.

Concat(x, e, y) -> Concat(x, y) where the size of e is zero along the axis.

Conditions: the first node has no other reader, the axes are the same one, and the new node has few enough inputs for
every backend's kernels.

Source: ONNX Concat (4: the axis must be given; 11: it may be counted from the end).
"""

import onnx_ir as ir

from nndeploy.graph.edits import GraphEdits
from nndeploy.graph.operators import int_attribute, sole_producer
from nndeploy.passes.model_pass import NodePass

MAX_INPUTS = 8
"""Own kernels join no more."""


class MergeConcats(NodePass):
    """Makes one Concat of those that build on each other, of what has elements."""

    name = "merge-concats"
    ops = frozenset({"Concat"})

    def rewrite_node(self, node: ir.Node, edits: GraphEdits) -> bool:
        """Returns whether the node now joins what Concats before it joined, or fewer inputs."""
        shape = node.outputs[0].shape
        if edits.opset < 4 or shape is None:
            return False
        axis, count = int_attribute(node, "axis", 0) % len(shape), len(node.inputs)
        joined = [value for value in node.inputs if value is None or value.shape is None or value.shape[axis] != 0]
        if 0 < len(joined) < count:
            edits.become(node, "Concat", joined, [ir.AttrInt64("axis", axis)])
            return True
        inputs: list[ir.Value | None] = []
        merged: dict[ir.Node, None] = {}
        for value in node.inputs:
            first = sole_producer(value, node)
            if first is not None and first.op_type == "Concat" and edits.is_standard(first):
                more = len(first.inputs) - 1
                if int_attribute(first, "axis", 0) % len(shape) == axis and count + more <= MAX_INPUTS:
                    inputs += first.inputs
                    count += more
                    merged[first] = None
                    continue
            inputs.append(value)
        if not merged:
            return False
        edits.become(node, "Concat", inputs, [ir.AttrInt64("axis", axis)])
        for first in merged:
            edits.remove(first)
        return True
