# SPDX-License-Identifier: Apache-2.0
"""LSTM over whole sequences with its usual activations: what a node asks for, or why own kernels do not do it.

Source: ONNX LSTM, opset 22 (layout since 14).
"""

from dataclasses import dataclass

import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.constants import constant_array
from nndeploy.graph.operators import float_attribute, int_attribute, operand, text_attribute
from nndeploy.values.size import Dim

_DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}
_USUAL_ACTIVATIONS = ("sigmoid", "tanh", "tanh")


@dataclass(frozen=True, slots=True)
class LstmForm:
    """How many directions there are, and whether a lone one goes backwards."""

    directions: int
    is_reverse: bool


def lstm_form(node: ir.Node, steps: Dim) -> LstmForm:
    """Returns the form of an LSTM over sequences of `steps`, time first.

    Raises:
        BuildRefusedError: it has other activations, peepholes, a clip, joined gates, batch first or partial sequences.
    """
    direction = text_attribute(node, "direction", "forward")
    if direction not in _DIRECTIONS:
        raise BuildRefusedError(f"an LSTM in the direction {direction!r:.40}")
    activations = node.attributes.get("activations")
    names = tuple(name.lower() for name in activations.as_strings()) if activations is not None else _USUAL_ACTIVATIONS
    if names != _USUAL_ACTIVATIONS * (len(names) // 3 or 1):
        raise BuildRefusedError("an LSTM with other activations than sigmoid and tanh")
    if int_attribute(node, "layout", 0) or int_attribute(node, "input_forget", 0) or float_attribute(node, "clip", 0.0):
        raise BuildRefusedError("an LSTM with batch first, a clip, or input and forget gates joined")
    if operand(node, 7) is not None:
        raise BuildRefusedError("an LSTM with peepholes")
    lengths = operand(node, 4)
    if lengths is not None:
        known = constant_array(lengths)
        if known is None or any(int(one) != steps for one in known.reshape(-1)):
            raise BuildRefusedError("an LSTM over parts of its sequences")
    return LstmForm(_DIRECTIONS[direction], direction == "reverse")
