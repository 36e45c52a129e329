# SPDX-License-Identifier: Apache-2.0
"""Views of views: f, g of Reshape, Flatten, Squeeze, Unsqueeze, which all keep the elements and their order.

* Squeeze(Unsqueeze(x, a), a) -> x, and Unsqueeze(Squeeze(x, a), a) -> x
* g(f(x)) -> x, where all sizes of x and of the result are known and equal
* g(f(x)) -> Reshape(x, sizes of the result), where these are known and positive, one of them possibly not (-1)
* Reshape(f(x), s) -> Reshape(x, s), where s is constant and copies no size (no 0 in it)

Conditions: f has no other reader, unless the pair cancels.

Source: ONNX Reshape (5: target as an input, before as an attribute), Squeeze and Unsqueeze (13: axes as an input).
"""

import numpy as np
import onnx_ir as ir

from nndeploy.graph.edits import GraphEdits
from nndeploy.graph.node_parameters import axes_of, reshape_target
from nndeploy.graph.operators import operand, sole_producer, static_shape
from nndeploy.passes.model_pass import NodePass

_VIEWS = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze"})


class MergeReshapes(NodePass):
    """Makes one Reshape, or nothing, of two views."""

    name = "merge-reshapes"
    ops = _VIEWS

    def rewrite_node(self, node: ir.Node, edits: GraphEdits) -> bool:
        """Returns whether the node was removed or now reads what the view before it reads."""
        middle = operand(node, 0)
        first = middle.producer() if middle is not None else None
        if first is None or first.op_type not in _VIEWS or not edits.is_standard(first):
            return False
        source = operand(first, 0)
        if source is None:
            return False
        if _cancels(first, node, source, edits.opset) and edits.bypass(node, source):
            return True
        if sole_producer(middle, node) is not first:
            return False
        return _reshape_source(node, first, source, edits)


def _cancels(first: ir.Node, node: ir.Node, source: ir.Value, opset: int) -> bool:
    if {first.op_type, node.op_type} == {"Squeeze", "Unsqueeze"}:
        axes = axes_of(first, opset)
        if axes is not None and axes == axes_of(node, opset):
            return True
    shape = static_shape(source)
    return shape is not None and shape == static_shape(node.outputs[0])


def _reshape_source(node: ir.Node, first: ir.Node, source: ir.Value, edits: GraphEdits) -> bool:
    target = reshape_target(node, edits.opset) if node.op_type == "Reshape" else None
    if target is not None and 0 not in target:
        node.replace_input_with(0, source)
    elif (sizes := _sizes_of_result(node)) is not None:
        _become_reshape(node, source, sizes, edits)
    else:
        return False
    edits.remove(first)
    return True


def _sizes_of_result(node: ir.Node) -> list[int] | None:
    shape = node.outputs[0].shape
    if shape is None:
        return None
    sizes = [dim if isinstance(dim, int) else -1 for dim in shape]
    return sizes if 0 not in sizes and sizes.count(-1) <= 1 else None


def _become_reshape(node: ir.Node, source: ir.Value, sizes: list[int], edits: GraphEdits) -> None:
    if edits.opset < 5:
        edits.become(node, "Reshape", (source,), (ir.AttrInt64s("shape", sizes),))
        return
    graph = node.graph
    assert graph is not None, "the node is in its graph"
    target = edits.constant(graph, np.array(sizes, np.int64), f"{node.outputs[0].name}.shape")
    edits.become(node, "Reshape", (source, target))
