# SPDX-License-Identifier: Apache-2.0
"""A Pad that only puts zeros around the spatial axes: what a convolution or pooling can do by itself.

Source: ONNX Pad; Conv and AveragePool, attribute `pads` (all begins, then all ends).
"""

from dataclasses import dataclass

import onnx_ir as ir

from nndeploy.graph.edits import GraphEdits
from nndeploy.graph.node_parameters import Ints, padding_of
from nndeploy.graph.operators import operand


@dataclass(frozen=True, slots=True)
class ZeroPad:
    """Zeros (begins, ends) around each of the `rank` spatial axes of `source`."""

    node: ir.Node
    source: ir.Value
    begins: Ints
    ends: Ints

    @property
    def rank(self) -> int:
        """The number of spatial axes."""
        return len(self.begins)

    def added_to(self, own: tuple[Ints, Ints]) -> Ints:
        """Returns the attribute `pads` of a window that had `own` (begins, ends) on top of this padding."""
        begins = tuple(a + b for a, b in zip(self.begins, own[0], strict=True))
        ends = tuple(a + b for a, b in zip(self.ends, own[1], strict=True))
        return begins + ends

    def move_into(self, window: ir.Node, pads: Ints, edits: GraphEdits) -> None:
        """Makes `window` read `source` with `pads`; removes the Pad when nobody else reads it."""
        window.attributes.pop("auto_pad", None)
        window.attributes.add(ir.AttrInt64s("pads", pads))
        window.replace_input_with(0, self.source)
        output = self.node.outputs[0]
        if not output.uses() and not output.is_graph_output():
            edits.remove(self.node)


def zero_pad_before(node: ir.Node, edits: GraphEdits) -> ZeroPad | None:
    """Returns the Pad that the node reads first; None where it is no Pad, or adds more than zeros around the image."""
    value = operand(node, 0)
    pad = value.producer() if value is not None else None
    if pad is None or pad.op_type != "Pad" or not edits.is_standard(pad):
        return None
    source, padding = operand(pad, 0), padding_of(pad, edits.opset)
    if source is None or padding is None or padding.mode != "constant" or padding.value != 0.0:
        return None
    if any((*padding.begins[:2], *padding.ends[:2])) or min((*padding.begins, *padding.ends), default=0) < 0:
        return None
    return ZeroPad(pad, source, padding.begins[2:], padding.ends[2:])
