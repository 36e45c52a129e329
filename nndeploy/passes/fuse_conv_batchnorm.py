# SPDX-License-Identifier: Apache-2.0
"""BatchNormalization(f(x, w) + b) -> f(x, w * a) + ((b - mean) * a + bias), a = scale / sqrt(variance + epsilon).

f is Conv, ConvTranspose or Gemm. One rounding of w * a instead of one of each step; the sum of products is the same.

Conditions: inference; w, b and the four parameters are constant; nobody else reads f's output; w is not shared by
other nodes, or small; the folded constants are finite and keep their precision in the type of w.

Source: ONNX BatchNormalization (spatial, not training).
"""

import onnx_ir as ir

from nndeploy.graph.batchnorm import batchnorm_of
from nndeploy.graph.edits import GraphEdits
from nndeploy.graph.linear_filter import filter_before
from nndeploy.passes.model_pass import NodePass


class FuseConvBatchnorm(NodePass):
    """Folds a BatchNormalization into the Conv, ConvTranspose or Gemm before it."""

    name = "fuse-conv-batchnorm"
    ops = frozenset({"BatchNormalization"})

    def rewrite_node(self, node: ir.Node, edits: GraphEdits) -> bool:
        """Returns whether the node became the filter before it."""
        before = filter_before(node, 0, edits)
        norm = batchnorm_of(node, edits.opset) if before is not None else None
        if before is None or norm is None or norm.mean.size != before.num_channels:
            return False
        return before.become(node, norm.factor, norm.shift, edits)
