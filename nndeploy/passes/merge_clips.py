# SPDX-License-Identifier: Apache-2.0
"""Clip(Clip(x, a, b), c, d) -> Clip(x, clip(a, c, d), clip(b, c, d)), where Relu is Clip(x, 0, inf).

So Relu(Relu(x)) -> Relu(x), Clip(Relu(x), 0, 6) -> Clip(x, 0, 6), Relu(Clip(x, -1, 6)) -> Clip(x, 0, 6). Two Relus
stay a Relu, everything else becomes a Clip.

Conditions: constant bounds, none NaN, a <= b and c <= d; x is float16, bfloat16, float or double; the first node has no
other reader; from opset 6 (before, Relu and Clip had other attributes).

Source: ONNX Relu, Clip (11: bounds as inputs).
"""

import numpy as np
import onnx_ir as ir

from nndeploy.passes.graph_edits import GraphEdits
from nndeploy.passes.model_pass import NodePass
from nndeploy.passes.node_parameters import clip_bounds
from nndeploy.passes.operators import FLOATS, operand, sole_producer


class MergeClips(NodePass):
    """Makes one Relu or Clip of two in a row."""

    name = "merge-clips"
    ops = frozenset({"Relu", "Clip"})

    def rewrite_node(self, node: ir.Node, edits: GraphEdits) -> bool:
        """Returns whether the node now clips what the one before it reads."""
        first = sole_producer(operand(node, 0), node)
        if edits.opset < 6 or first is None or first.op_type not in self.ops or not edits.is_standard(first):
            return False
        source, bounds = operand(first, 0), _merged(first, node, edits.opset)
        if source is None or node.outputs[0].dtype not in FLOATS or bounds is None:
            return False
        if first.op_type == node.op_type == "Relu":
            node.replace_input_with(0, source)
        else:
            _become_clip(node, source, bounds, edits)
        edits.remove(first)
        return True


def _merged(first: ir.Node, second: ir.Node, opset: int) -> tuple[float, float] | None:
    inner, outer = clip_bounds(first, opset), clip_bounds(second, opset)
    if inner is None or outer is None or not (inner[0] <= inner[1] and outer[0] <= outer[1]):
        return None
    low, high = (min(max(bound, outer[0]), outer[1]) for bound in inner)
    return (low, high) if low < np.inf and high > -np.inf else None


def _become_clip(node: ir.Node, source: ir.Value, bounds: tuple[float, float], edits: GraphEdits) -> None:
    graph, dtype = node.graph, node.outputs[0].dtype
    assert graph is not None, "the node is in its graph"
    assert dtype is not None, "the caller looked at it"
    given = {name: bound for name, bound in zip(("min", "max"), bounds, strict=True) if np.isfinite(bound)}
    if edits.opset < 11:
        edits.become(node, "Clip", (source,), [ir.AttrFloat32(name, bound) for name, bound in given.items()])
        return
    inputs: list[ir.Value | None] = [source]
    for name in ("min", "max"):
        bound = np.array(given.get(name, 0.0), dtype.numpy())
        inputs.append(edits.constant(graph, bound, f"{node.outputs[0].name}.{name}") if name in given else None)
    edits.become(node, "Clip", inputs if inputs[-1] is not None else inputs[:-1])
