# SPDX-License-Identifier: Apache-2.0
"""Conv(Pad(x, p), w, pads=q) -> Conv(x, w, pads=p + q).

Conditions: the Pad adds zeros, a constant number of them, none along the batch and channel axes and none negative
(which would cut); the Conv's own padding is explicit (`auto_pad` is NOTSET or VALID). Other readers keep the Pad.

Source: ONNX Conv (pads with zeros), Pad.
"""

import onnx_ir as ir

from nndeploy.graph.edits import GraphEdits
from nndeploy.graph.node_parameters import pads_of_window
from nndeploy.graph.zero_pad import zero_pad_before
from nndeploy.passes.model_pass import NodePass


class FusePadConv(NodePass):
    """Moves the zeros of a Pad into the padding of the Conv after it."""

    name = "fuse-pad-conv"
    ops = frozenset({"Conv"})

    def rewrite_node(self, node: ir.Node, edits: GraphEdits) -> bool:
        """Returns whether the node now reads what the Pad before it reads."""
        before = zero_pad_before(node, edits)
        own = pads_of_window(node, before.rank) if before is not None else None
        if before is None or own is None:
            return False
        before.move_into(node, before.added_to(own), edits)
        return True
