# SPDX-License-Identifier: Apache-2.0
"""AveragePool(Pad(x, p), pads=q) -> AveragePool(x, pads=p + q, count_include_pad=1).

The zeros of a Pad are elements like others, so the pool has to count its padding as elements: it does already, or has
no padding of its own yet (q = 0).

Conditions: the Pad adds zeros, a constant number of them, none along the batch and channel axes and none negative; the
pool's own padding is explicit; p + q is smaller than the window (larger is not allowed); no `ceil_mode` (a window that
hangs over the end does not count what hangs over) and no dilation. From opset 7, which has `count_include_pad`.

Source: ONNX AveragePool 7, 11, 19; Pad.
"""

import onnx_ir as ir

from nndeploy.graph.edits import GraphEdits
from nndeploy.graph.node_parameters import Ints, counts_padding, pads_of_window, spatial_parameter
from nndeploy.graph.operators import int_attribute
from nndeploy.graph.zero_pad import zero_pad_before
from nndeploy.passes.model_pass import NodePass


class FusePadPool(NodePass):
    """Moves the zeros of a Pad into the padding of the AveragePool after it."""

    name = "fuse-pad-pool"
    ops = frozenset({"AveragePool"})

    def rewrite_node(self, node: ir.Node, edits: GraphEdits) -> bool:
        """Returns whether the node now reads what the Pad before it reads."""
        before = zero_pad_before(node, edits) if edits.opset >= 7 else None
        own = pads_of_window(node, before.rank) if before is not None else None
        if before is None or own is None or not (counts_padding(node) or not any((*own[0], *own[1]))):
            return False
        pads = before.added_to(own)
        if not _is_plain(node, before.rank) or not _is_inside(pads, spatial_parameter(node, "kernel_shape", 0, 1)):
            return False
        before.move_into(node, pads, edits)
        node.attributes.add(ir.AttrInt64("count_include_pad", 1))
        return True


def _is_plain(node: ir.Node, rank: int) -> bool:
    dilations = spatial_parameter(node, "dilations", rank, 1)
    return int_attribute(node, "ceil_mode", 0) == 0 and all(dilation == 1 for dilation in dilations)


def _is_inside(pads: Ints, window: Ints) -> bool:
    return len(pads) == 2 * len(window) and all(pad < size for pad, size in zip(pads, window * 2, strict=True))
