# SPDX-License-Identifier: Apache-2.0
"""Rules for LSTM, GRU and RNN: a product for all steps and directions at once, then the walk through the steps.

    gates[t, b, d] = x[t, b] @ W[d]' + Wb[d] + Rb[d]          a product by constant weights
    states[t, b, d] = h of step t                              the walk (c/ops/recurrent.c)

DynamicQuantizeLSTM has weights of bytes: its product is one of bytes, of what comes in, quantised by its range; its
walk is one of states that are quantised by theirs, those of each sequence apart.

Source: ONNX LSTM, GRU, RNN, opset 22; com.microsoft DynamicQuantizeLSTM.
In all of them gates stand in the order input, output, forget, cell, and update, reset, hidden.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import float_attribute, int_attribute, operand, text_attribute
from nndeploy_native.lowering.context import Context
from nndeploy_native.lowering.integer_rules import BYTES
from nndeploy_native.lowering.quantisation_rules import dynamically_quantised
from nndeploy_native.lowering.recurrent_activations import activations_of
from nndeploy_native.steps.integer_product import IntegerProduct
from nndeploy_native.steps.matmul import Product
from nndeploy_native.steps.movement import View
from nndeploy_native.steps.recurrent import GATES, Recurrent, States
from nndeploy_native.tensors import Array, Layout, Shape, Tensor, may_be_same

_DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}


class _Weights(NamedTuple):
    """Weights of the gates: `again` (directions, gates * hidden, hidden), and how a product by the others is emitted.

    `scales` (directions, gates * hidden) are those of `again` where it is int8, and so are `zeros`, as floats.
    `emit` takes the product, (steps, batch, directions * gates * hidden), steps as (steps, batch, inputs), and a bias.
    """

    inputs: int
    again: Array
    emit: Callable[[Tensor, Tensor, Array | None], None]
    scales: Array | None = None
    zeros: Array | None = None


class _Bytes(NamedTuple):
    """Weights of bytes (directions, rows, gates * hidden); `scales` and `zeros` (directions, gates * hidden).

    No `zeros` where all are zero, else they have the type of the weights.
    """

    weights: Array
    scales: Array
    zeros: Array | None


def recurrent(node: ir.Node, context: Context) -> None:
    """Lowers a recurrent layer with constant weights."""
    weights, again = (context.floats(operand(node, index), "weights") for index in (1, 2))
    if weights.ndim != 3 or again.ndim != 3 or weights.shape[:2] != again.shape[:2]:
        raise BuildRefusedError(f"weights that do not fit together: {weights.shape}, {again.shape}")

    def emit(sums: Tensor, x: Tensor, bias: Array | None) -> None:
        context.emit(Product(sums, View.of(x), weights.reshape(-1, weights.shape[2]).T, bias))

    _emit(node, context, node.op_type.lower(), _Weights(weights.shape[2], again, emit))


def dynamic_quantise_lstm(node: ir.Node, context: Context) -> None:
    """Lowers DynamicQuantizeLSTM with constant weights (directions, inputs, gates * hidden)."""
    fed, again = (_bytes_of(node, context, at) for at in ((1, 8, 9), (2, 10, 11)))
    if fed.weights.shape[::2] != again.weights.shape[::2]:
        raise BuildRefusedError(f"weights that do not fit together: {fed.weights.shape}, {again.weights.shape}")
    inputs = fed.weights.shape[1]

    def emit(sums: Tensor, x: Tensor, bias: Array | None) -> None:
        a, scale, zero = dynamically_quantised(x, context)
        columns = np.ascontiguousarray(fed.weights.swapaxes(0, 1)).reshape(inputs, -1)
        zeros = None if fed.zeros is None else fed.zeros.reshape(-1)
        step = IntegerProduct(sums, a, columns, zero, zeros, factors=fed.scales.reshape(-1), factor=scale, bias=bias)
        context.emit(step)

    signed, zeros = _signed(again.weights), None if again.zeros is None else _signed(again.zeros)
    if signed is not again.weights and zeros is None:
        zeros = np.full_like(again.scales, -128, np.int8)
    turned = np.ascontiguousarray(signed.swapaxes(1, 2))
    zeros = zeros.astype(np.float32) if zeros is not None and zeros.any() else None
    _emit(node, context, "lstm", _Weights(inputs, turned, emit, again.scales, zeros))


def _signed(numbers: Array) -> Array:
    """Returns int8 as it is, and of uint8 numbers 128 less."""
    return numbers if numbers.dtype == np.int8 else (numbers ^ np.uint8(128)).view(np.int8)


def _bytes_of(node: ir.Node, context: Context, places: tuple[int, int, int]) -> _Bytes:
    """Returns weights of bytes; one scale or zero point of a direction is that of all its columns.

    Raises:
        BuildRefusedError: they are others, not constant, or their scales and zero points do not fit them.
    """
    weights, scales, zeros = (context.constant(operand(node, place)) for place in places)
    if weights is None or weights.dtype.name not in BYTES or weights.ndim != 3 or scales is None or zeros is None:
        raise BuildRefusedError("a DynamicQuantizeLSTM of something else than constant bytes")
    shape = weights.shape[::2]
    for numbers, dtype in ((scales, np.dtype(np.float32)), (zeros, weights.dtype)):
        if numbers.shape not in (shape[:1], shape) or numbers.dtype != dtype:
            raise BuildRefusedError(f"a scale or zero point of {numbers.dtype} {numbers.shape} for weights of {shape}")
    spread = [np.ascontiguousarray(np.broadcast_to(n.reshape(shape[0], -1), shape)) for n in (scales, zeros)]
    return _Bytes(weights, spread[0], spread[1] if zeros.any() else None)


def _emit(node: ir.Node, context: Context, kind: str, weights: _Weights) -> None:
    direction, is_batch_first = text_attribute(node, "direction", "forward"), int_attribute(node, "layout", 0) == 1
    if direction not in _DIRECTIONS:
        raise BuildRefusedError(f"the direction {direction!r:.40}")
    view = context.view(operand(node, 0))
    if len(context.shape_of(operand(node, 0))) != 3:
        raise BuildRefusedError(f"something else than (steps, batch, inputs): {view.sizes}")
    view = view.transposed((1, 0, 2)) if is_batch_first else view
    steps, batch, width = view.sizes
    directions, gates, hidden = _DIRECTIONS[direction], GATES[kind], weights.again.shape[-1]
    if weights.again.shape != (directions, gates * hidden, hidden) or weights.inputs != width:
        raise BuildRefusedError(f"weights that do not fit together: {weights.inputs} inputs, {weights.again.shape}")
    resets_after = kind == "gru" and int_attribute(node, "linear_before_reset", 0) == 1
    bias, reset_bias = _biases(node, context, (directions, gates, hidden), resets_after=resets_after)
    sums = context.temporary("gates", (steps, batch, directions * gates * hidden), Layout.PLAIN)
    weights.emit(sums, context.stored(view, "steps"), bias)
    state = (batch, directions, hidden) if is_batch_first else (directions, batch, hidden)
    first = States(*(_first_state(node, context, index, state) for index in (5, 6)))
    last = (2 if kind == "lstm" else 1) if any(output.name for output in node.outputs[1:]) else 0
    states = context.temporary("states", (steps + last, batch, directions, hidden), Layout.PLAIN)
    step = Recurrent(
        kind,
        states,
        sums,
        weights.again,
        first,
        _lengths(node, context, steps),
        direction == "reverse",
        _peepholes(node, context, (directions, 3 * hidden)) if kind == "lstm" else None,
        kind == "lstm" and int_attribute(node, "input_forget", 0) == 1,
        reset_bias,
        resets_after,
        weights.scales,
        weights.zeros,
        activations_of(node, kind, directions, float_attribute(node, "clip", 0.0)),
    )
    context.emit(step)
    _define_outputs(node, context, View.of(states), last, is_batch_first=is_batch_first)


def _define_outputs(node: ir.Node, context: Context, states: View, last: int, *, is_batch_first: bool) -> None:
    """Says where Y, Y_h and Y_c lie in the states (steps, batch, directions, hidden)."""
    count = states.sizes[0]
    whole = states.taken(0, 0, count - last, 1).transposed((1, 0, 2, 3) if is_batch_first else (0, 2, 1, 3))
    views = [whole]
    for number in range(last):
        one = states.taken(0, count - last + number, 1, 1)
        views.append(View(one.base, one.offset, one.sizes[1:], one.strides[1:]))
        if not is_batch_first:
            views[-1] = views[-1].transposed((1, 0, 2))
    for value, view in zip(node.outputs, views, strict=False):
        if value.name:
            context.define_view(value, view)


def _biases(
    node: ir.Node, context: Context, sizes: tuple[int, int, int], *, resets_after: bool
) -> tuple[Array | None, Array | None]:
    """Returns what is added to the gates, flat, and to a product before it is reset (directions, hidden)."""
    if operand(node, 3) is None:
        return None, None
    both, (directions, gates, hidden) = context.floats(node.inputs[3], "a bias"), sizes
    if both.shape != (directions, 2 * gates * hidden):
        raise BuildRefusedError(f"a bias that does not fit: {both.shape}")
    of_input, of_state = both.reshape(directions, 2, gates, hidden).swapaxes(0, 1)
    if not resets_after:
        return (of_input + of_state).reshape(-1), None
    kept = of_state * np.array([1, 1, 0], np.float32)[:, None]
    return (of_input + kept).reshape(-1), of_state[:, 2]


def _peepholes(node: ir.Node, context: Context, shape: tuple[int, int]) -> Array | None:
    if operand(node, 7) is None:
        return None
    peepholes = context.floats(node.inputs[7], "peepholes")
    if peepholes.shape != shape:
        raise BuildRefusedError(f"peepholes of shape {peepholes.shape} instead of {shape}")
    return peepholes


def _lengths(node: ir.Node, context: Context, steps: object) -> Tensor | None:
    """Returns the lengths of the sequences, None where all are whole."""
    value = operand(node, 4)
    known = context.constant(value)
    if value is None or (known is not None and all(int(one) == steps for one in known.reshape(-1))):
        return None
    tensor = context.whole_numbers(value)
    if tensor.element != "int32":
        raise BuildRefusedError(f"lengths of sequences of {tensor.element}")
    return tensor


def _first_state(node: ir.Node, context: Context, index: int, shape: Shape) -> Tensor | None:
    """Returns a first state as (directions, batch, hidden)."""
    value = operand(node, index)
    if value is None:
        return None
    view = context.view(value)
    if not may_be_same(context.shape_of(value), shape):
        raise BuildRefusedError(f"a first state of shape {view.sizes} instead of {shape}")
    is_batch_first = int_attribute(node, "layout", 0) == 1
    return context.stored(view.transposed((1, 0, 2)) if is_batch_first else view, "state")
