# SPDX-License-Identifier: Apache-2.0
"""Values that are quantised to int8 and only dequantised again become uint8.

    QuantizeLinear(x, s, z)   ->  QuantizeLinear(x, s, z + 128)        saturate(round(x / s) + z) + 128, exactly
    DequantizeLinear(q, s, z) ->  DequantizeLinear(q, s, z + 128)      (q + 128 - (z + 128)) * s, exactly

x86-64 multiplies uint8 by int8; int8 by int8 takes half as long again. Conditions: one constant zero point of int8, the
same in all of them; nobody else reads the bytes.
"""

import numpy as np
import onnx_ir as ir

from nndeploy.graph.constants import constant_array
from nndeploy.graph.edits import GraphEdits
from nndeploy.graph.operators import operand
from nndeploy.plugin.interface import MayTouch

SHIFT = 128


class UnsignedActivations:
    """Makes uint8 of what is quantised to int8."""

    name = "unsigned-activations"

    def __call__(self, model: ir.Model, may_touch: MayTouch) -> int:
        """Rewrites, in place, nodes that `may_touch` allows; returns how many values it changed."""
        edits, count = GraphEdits(model), 0
        for node in tuple(model.graph):
            readers = _readers_of(node, edits)
            if readers and all(map(may_touch, (node, *readers))):
                _shift(node, readers, edits)
                count += 1
        return count


def _readers_of(node: ir.Node, edits: GraphEdits) -> tuple[ir.Node, ...]:
    """Returns the nodes that dequantise what a node quantises to int8; none where others read it."""
    zero = _zero_of(node, "QuantizeLinear", edits)
    if zero is None or "output_dtype" in node.attributes or node.outputs[0].is_graph_output():
        return ()
    uses = tuple(node.outputs[0].uses())
    fits = all(use.idx == 0 and _zero_of(use.node, "DequantizeLinear", edits) == zero for use in uses)
    return tuple(use.node for use in uses) if fits else ()


def _zero_of(node: ir.Node, operator: str, edits: GraphEdits) -> int | None:
    """Returns the one constant zero point of int8 of an operator; None where there is none."""
    if node.op_type != operator or not edits.is_standard(node):
        return None
    zero = constant_array(operand(node, 2))
    return int(zero.item()) if zero is not None and zero.size == 1 and zero.dtype == np.int8 else None


def _shift(node: ir.Node, readers: tuple[ir.Node, ...], edits: GraphEdits) -> None:
    """Gives a value and those who read it the zero point of uint8."""
    array, graph, output = constant_array(operand(node, 2)), node.graph, node.outputs[0]
    assert array is not None, "it was looked at"
    assert isinstance(graph, ir.Graph), "the node is in its graph"
    moved = (array.astype(np.int16) + SHIFT).astype(np.uint8)
    zero = edits.constant(graph, moved, f"{output.name}.zero_point")
    output.type = ir.TensorType(ir.DataType.UINT8)  # a new one: copies of a model share the old
    for one in (node, *readers):
        one.replace_input_with(2, zero)
