# SPDX-License-Identifier: Apache-2.0
"""(f(x, w) + b) + t -> f(x, w) + (b + t), and (f(x, w) + b) - t -> f(x, w) + (b - t).

f is Conv, ConvTranspose or Gemm; t is one constant, or one for each channel.

Conditions: w, b and t are constant and floating-point; t does not broadcast f's output; nobody else reads f's output;
b + t is finite and keeps its precision in the type of w; from opset 7 (before, Add broadcast in another way).

Source: ONNX Add, Sub.
"""

import onnx_ir as ir

from nndeploy.graph.edits import GraphEdits
from nndeploy.graph.linear_filter import channel_constant, filter_before
from nndeploy.passes.model_pass import NodePass


class FuseConvBias(NodePass):
    """Folds an addition or subtraction into the Conv, ConvTranspose or Gemm before it."""

    name = "fuse-conv-bias"
    ops = frozenset({"Add", "Sub"})

    def rewrite_node(self, node: ir.Node, edits: GraphEdits) -> bool:
        """Returns whether the node became the filter before it."""
        for index in (0, 1) if node.op_type == "Add" else (0,):
            before = filter_before(node, index, edits) if edits.opset >= 7 else None
            shift = channel_constant(node, 1 - index, before) if before is not None else None
            if before is not None and shift is not None:
                return before.become(node, None, shift if node.op_type == "Add" else -shift, edits)
        return False
