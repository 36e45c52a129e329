# SPDX-License-Identifier: Apache-2.0
"""LSTM(x, w, r, b, , 0, 0) -> LSTM(x, w, r, b); GRU and RNN alike.

A first state that is left out is zero, so one that is nothing but zeros says nothing. Exporters compute its shape from
that of the input; all of that is dead code afterwards.

Conditions: the state is ConstantOfShape of 0, whatever its sizes are, or constant (and no -0.0).

Source: ONNX LSTM, GRU, RNN, opset 22: `initial_h`, `initial_c`; ConstantOfShape, opset 9.
"""

import numpy as np
import onnx_ir as ir

from nndeploy.graph.constants import Array, constant_array
from nndeploy.graph.edits import GraphEdits
from nndeploy.graph.operators import operand
from nndeploy.passes.model_pass import NodePass

_STATES = (5, 6)


class LeaveOutZeroStates(NodePass):
    """Leaves out the first states of recurrent layers that are zero."""

    name = "leave-out-zero-states"
    ops = frozenset({"LSTM", "GRU", "RNN"})

    def rewrite_node(self, node: ir.Node, edits: GraphEdits) -> bool:
        """Returns whether a state was left out."""
        zeros = [index for index in _STATES if _is_zero(operand(node, index), edits)]
        for index in zeros:
            node.replace_input_with(index, None)
        while node.inputs[-1] is None:
            node.resize_inputs(len(node.inputs) - 1)
        return bool(zeros)


def _is_zero(value: ir.Value | None, edits: GraphEdits) -> bool:
    known, producer = constant_array(value), value.producer() if value is not None else None
    if known is not None:
        return _has_only_zeros(known)
    if producer is None or producer.op_type != "ConstantOfShape" or not edits.is_standard(producer):
        return False
    fill = producer.attributes.get("value")
    return fill is None or _has_only_zeros(fill.as_tensor().numpy())


def _has_only_zeros(array: Array) -> bool:
    return not (array.any() or np.signbit(array).any())
