# SPDX-License-Identifier: Apache-2.0
"""The rule for LSTM: a matrix product for all steps and directions at once, then the walk through the steps.

    gates[t, b, d] = x[t, b] @ W[d]' + Wb[d] + Rb[d]          a fully connected layer
    states[t, b, d] = h of step t                              the walk (c/recurrent.h)

Source: ONNX LSTM, opset 22; gates stand in the order input, output, forget, cell.
"""

import onnx_ir as ir

from nndeploy.backend_kit.kernels.lstm import lstm_form
from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import operand
from nndeploy_native.lowering.context import Context
from nndeploy_native.steps.matmul import Product
from nndeploy_native.steps.movement import View
from nndeploy_native.steps.recurrent import Lstm
from nndeploy_native.tensors import Array, Layout, Shape, Tensor


def lstm(node: ir.Node, context: Context) -> None:
    """Lowers LSTM with constant weights and its usual activations, over whole sequences, time first."""
    shape = context.shape_of(operand(node, 0))
    if len(shape) != 3:
        raise BuildRefusedError(f"an LSTM of something else than (steps, batch, inputs): {shape}")
    steps, batch, width = shape
    form = lstm_form(node, steps)
    weights, recurrent = (context.floats(operand(node, index), "weights") for index in (1, 2))
    directions, hidden = recurrent.shape[0], recurrent.shape[-1]
    if recurrent.shape != (form.directions, 4 * hidden, hidden) or weights.shape != (directions, 4 * hidden, width):
        raise BuildRefusedError("weights of an LSTM that do not fit together")
    state = (directions, batch, hidden)
    first_h, first_c = (_first_state(node, context, index, state) for index in (5, 6))
    gates = context.temporary("gates", (steps, batch, directions * 4 * hidden), Layout.PLAIN)
    x, bias = context.plain(node.inputs[0]), _bias(node, context, (directions, 4 * hidden))
    context.emit(Product(gates, View.of(x), weights.reshape(-1, weights.shape[2]).T, bias))
    keeps_last = any(output.name for output in node.outputs[1:])
    states = context.temporary("states", (steps + 2 * keeps_last, batch, directions, hidden), Layout.PLAIN)
    context.emit(Lstm(states, gates, recurrent, first_h, first_c, form.is_reverse))
    view = View.of(states).transposed((0, 2, 1, 3))
    places = (view.taken(0, 0, steps, 1), *(view.taken(0, steps + k, 1, 1).reshaped(state) for k in range(2)))
    for value, place in zip(node.outputs, places, strict=False):
        if value.name and place is not None:
            context.define_view(value, place)


def _bias(node: ir.Node, context: Context, shape: tuple[int, int]) -> Array | None:
    """Returns the sum of both biases, which are constants, for each gate of each direction: `shape`, flat."""
    if operand(node, 3) is None:
        return None
    both, (directions, gates) = context.floats(node.inputs[3], "a bias"), shape
    if both.shape != (directions, 2 * gates):
        raise BuildRefusedError("a bias of an LSTM that does not fit")
    return (both[:, :gates] + both[:, gates:]).reshape(-1)


def _first_state(node: ir.Node, context: Context, index: int, shape: Shape) -> Tensor | None:
    value = operand(node, index)
    if value is None:
        return None
    if context.shape_of(value) != shape:
        raise BuildRefusedError(f"a first state of an LSTM of shape {context.shape_of(value)} instead of {shape}")
    return context.plain(value)
