# SPDX-License-Identifier: Apache-2.0
"""(f(x, w) + b) * s -> f(x, w * s) + b * s, and (f(x, w) + b) / s -> f(x, w / s) + b / s.

f is Conv, ConvTranspose or Gemm; s is one constant, or one for each channel. -(f(x, w) + b) is the case s = -1.

Conditions: w, b and s are constant and floating-point; s does not broadcast f's output; nobody else reads f's output;
w is not shared by other nodes, or small; the folded constants are finite and keep their precision in the type of w;
from opset 7 (before, Mul broadcast in another way).

Source: ONNX Mul, Div, Neg.
"""

import numpy as np
import onnx_ir as ir

from nndeploy.graph.constants import Float64
from nndeploy.graph.edits import GraphEdits
from nndeploy.graph.linear_filter import LinearFilter, channel_constant, filter_before
from nndeploy.passes.model_pass import NodePass


class FuseConvScale(NodePass):
    """Folds a multiplication, division or change of sign into the Conv, ConvTranspose or Gemm before it."""

    name = "fuse-conv-scale"
    ops = frozenset({"Mul", "Div", "Neg"})

    def rewrite_node(self, node: ir.Node, edits: GraphEdits) -> bool:
        """Returns whether the node became the filter before it."""
        for index in (0, 1) if node.op_type == "Mul" else (0,):
            before = filter_before(node, index, edits) if edits.opset >= 7 else None
            scale = _scale(node, 1 - index, before) if before is not None else None
            if before is not None and scale is not None:
                return before.become(node, scale, None, edits)
        return False


def _scale(node: ir.Node, constant_at: int, before: LinearFilter) -> Float64 | None:
    if node.op_type == "Neg":
        return np.full(before.num_channels, -1.0)
    constant = channel_constant(node, constant_at, before)
    if constant is None or node.op_type == "Mul":
        return constant
    with np.errstate(divide="ignore"):
        return 1.0 / constant
