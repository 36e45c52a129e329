# SPDX-License-Identifier: Apache-2.0
"""y = Constant(value) -> initializer y = value.

Initializers are what every other pass and every backend knows as weights; many exporters write Constant nodes
instead. Runs in bodies too: the initializer stays in the body of its node.

Left alone: a Constant that is an output of its graph (an output must come from a node) and sparse tensors.

Source: ONNX Constant, all versions.
"""

import onnx_ir as ir

from nndeploy.graph.constants import constant_node_tensor
from nndeploy.graph.edits import GraphEdits
from nndeploy.passes.model_pass import NodePass


class ConstantsToInitializers(NodePass):
    """Turns Constant nodes into initializers of their graph, under the same name."""

    name = "constants-to-initializers"
    enters_bodies = True
    ops = frozenset({"Constant"})

    def rewrite_node(self, node: ir.Node, edits: GraphEdits) -> bool:
        """Returns whether the node became an initializer."""
        tensor = constant_node_tensor(node)
        if tensor is None or node.outputs[0].is_graph_output():
            return False
        edits.become_constants(node, [tensor])
        return True
