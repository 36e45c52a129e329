# SPDX-License-Identifier: Apache-2.0
"""The rule for LSTM: a matrix product for all steps at once, then the walk through the steps.

    gates[d, t] = x[t] @ W[d]' + Wb[d] + Rb[d]                          a product, its bias an epilogue
    i, o, f = sigmoid(gates + h @ R[d]'), c~ = tanh(...)                the walk (kernels/recurrent.py)
    c = f * c + i * c~,  h = o * tanh(c)

Source: ONNX LSTM, opset 22; gates stand in the order input, output, forget, cell.
"""

import numpy as np
import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import operand
from nndeploy.values.size import product
from nndeploy_triton.lowering.context import FLOATS, Context
from nndeploy_triton.lowering.lstm_form import lstm_form
from nndeploy_triton.program import ProgramBuilder
from nndeploy_triton.steps.matmul import Matmul
from nndeploy_triton.steps.recurrent import MAX_HIDDEN, Lstm
from nndeploy_triton.steps.step import PLAIN, Epilogue
from nndeploy_triton.views import Shape, View


def lstm(node: ir.Node, context: Context) -> None:
    """Lowers LSTM with its usual activations, over whole sequences, time first."""
    x, weights, recurrent = (context.dense(operand(node, index)) for index in range(3))
    if not {x.dtype} == {weights.dtype, recurrent.dtype} <= set(FLOATS) or len(x.shape) != 3:
        raise BuildRefusedError("an LSTM of other values than float16 or float32")
    steps, batch, width = x.shape
    form = lstm_form(node, steps)
    directions, hidden = recurrent.shape[0], recurrent.shape[2]
    if directions != form.directions or hidden > MAX_HIDDEN:
        raise BuildRefusedError(f"an LSTM of {directions} directions with a state of {hidden}, {MAX_HIDDEN} at most")
    if weights.shape != (directions, 4 * hidden, width) or recurrent.shape[1] != 4 * hidden or not steps:
        raise BuildRefusedError("weights of LSTM that do not fit together")
    gates = context.temporary("gates", "float32", (directions, steps, batch, 4 * hidden))  # not rounded in between
    rows = x.reshaped((1, steps * batch, width))
    assert rows is not None
    left = context.broadcast(rows, (directions, steps * batch, width))
    flat = gates.reshaped((directions, steps * batch, 4 * hidden))
    assert flat is not None
    context.emit(Matmul(flat, left, weights.transposed((0, 2, 1)), _bias(node, context, flat)))
    states = context.temporary("states", x.dtype, (steps + 2, directions, batch, hidden))
    initial = [_initial(node, context, index, (directions, batch, hidden), x.dtype) for index in (5, 6)]
    context.emit(Lstm(states, gates, recurrent, initial[0], initial[1], form.is_reverse))
    places = [states.sliced(0, 0, 1, steps), states.sliced(0, steps, 1, 1), states.sliced(0, steps + 1, 1, 1)]
    for output, place in zip(node.outputs, places, strict=False):
        if output.name:
            seen = place.reshaped(context.shape_of(output))
            if seen is None:
                raise BuildRefusedError("the model says another shape")
            context.alias(output, seen)


def _bias(node: ir.Node, context: Context, gates: View) -> Epilogue:
    """Returns the addition of both biases, which are constants, to each row of gates."""
    if operand(node, 3) is None:
        return PLAIN
    both = context.constant(node.inputs[3])
    directions, _, width = gates.shape
    if both is None or both.shape != (directions, 2 * width):
        raise BuildRefusedError("a bias of LSTM that is computed, or does not fit")
    total = both[:, :width].astype(np.float32) + both[:, width:].astype(np.float32)
    bias = context.new_constant(total.reshape(directions, 1, width))
    builder = ProgramBuilder(2)
    return Epilogue(builder.program(builder.apply("add", 0, 1), "bias"), (context.broadcast(bias, gates.shape),))


def _initial(node: ir.Node, context: Context, index: int, shape: Shape, dtype: str) -> View | None:
    value = operand(node, index)
    if value is None:
        return None
    view = context.dense(value)
    if view.size != product(shape) or view.dtype != dtype:
        raise BuildRefusedError("a first state of LSTM that does not fit")
    known = context.constant(value)
    return None if known is not None and not known.any() else view
