# SPDX-License-Identifier: Apache-2.0
"""Clip(Clip(x, a, b), c, d) -> Clip(x, clip(a, c, d), clip(b, c, d)), where Relu is Clip(x, 0, inf).

So Relu(Relu(x)) -> Relu(x), Clip(Relu(x), 0, 6) -> Clip(x, 0, 6), Relu(Clip(x, -1, 6)) -> Clip(x, 0, 6). Two Relus
stay a Relu, everything else becomes a Clip.

Conditions: constant bounds, none NaN, a <= b and c <= d; x is float16, bfloat16, float or double; the first node has no
other reader; from opset 6 (before, Relu and Clip had other attributes).

Source: ONNX Relu, Clip (11: bounds as inputs).
"""

from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from nndeploy.graph.edits import GraphEdits
from nndeploy.graph.node_parameters import clip_bounds, clip_defaults
from nndeploy.graph.operators import FLOATS, operand, sole_producer
from nndeploy.passes.model_pass import NodePass

Bounds: TypeAlias = tuple[float, float]


class MergeClips(NodePass):
    """Makes one Relu or Clip of two in a row."""

    name = "merge-clips"
    ops = frozenset({"Relu", "Clip"})

    def rewrite_node(self, node: ir.Node, edits: GraphEdits) -> bool:
        """Returns whether the node now clips what the one before it reads."""
        middle = operand(node, 0)
        first = middle.producer() if middle is not None else None
        if edits.opset < 6 or first is None or first.op_type not in self.ops or not edits.is_standard(first):
            return False
        if sole_producer(middle, node) is not first:
            return False
        source, dtype = operand(first, 0), node.outputs[0].dtype
        if source is None or dtype is None or dtype not in FLOATS:
            return False
        bounds = _merged(*(clip_bounds(clip, edits.opset, dtype) for clip in (first, node)))
        if bounds is None:
            return False
        if first.op_type == node.op_type == "Relu":
            node.replace_input_with(0, source)
        else:
            _become_clip(node, source, bounds, edits)
        edits.remove(first)
        return True


def _merged(inner: Bounds | None, outer: Bounds | None) -> Bounds | None:
    if inner is None or outer is None or not (inner[0] <= inner[1] and outer[0] <= outer[1]):
        return None
    low, high = (min(max(bound, outer[0]), outer[1]) for bound in inner)
    return low, high


def _become_clip(node: ir.Node, source: ir.Value, bounds: Bounds, edits: GraphEdits) -> None:
    graph, dtype = node.graph, node.outputs[0].dtype
    assert graph is not None, "the node is in its graph"
    assert dtype is not None, "the caller looked at it"
    defaults = clip_defaults(edits.opset, dtype)
    written = [
        (name, bound) for name, bound, default in zip(("min", "max"), bounds, defaults, strict=True) if bound != default
    ]
    if edits.opset < 11:
        edits.become(node, "Clip", (source,), [ir.AttrFloat32(name, bound) for name, bound in written])
        return
    inputs: list[ir.Value | None] = [source, None, None]
    for name, bound in written:
        array = np.array(bound, dtype.numpy())
        inputs[("", "min", "max").index(name)] = edits.constant(graph, array, f"{node.outputs[0].name}.{name}")
    edits.become(node, "Clip", inputs if inputs[2] is not None else inputs[: 1 + (inputs[1] is not None)])
