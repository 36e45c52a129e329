# SPDX-License-Identifier: Apache-2.0
"""RNN, GRU and LSTM: step by step, all sequences of a batch at once.

A sequence ends at its length: outputs beyond are 0, the last state is the one after its last step; read backwards it
begins there. One without steps leaves states of 0, as ONNX Runtime does. `clip` bounds what goes into activations of
gates; the cell state is not bounded before the last one, as in all engines.

Source: ONNX operators RNN, GRU, LSTM (1-22).
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nndeploy_reference.operator_table import Array, Node, in_float32, operator

_Activation = Callable[[Array], Array]
_Step = Callable[[Array, Sequence[Array]], list[Array]]


def _sigmoid(x: Array) -> Array:
    return 0.5 * (np.tanh(0.5 * x) + 1)


_FUNCTIONS: dict[str, tuple[Callable[..., Array], float | None, float | None]] = {
    "relu": (lambda x: np.maximum(x, 0), None, None),
    "tanh": (np.tanh, None, None),
    "sigmoid": (_sigmoid, None, None),
    "softsign": (lambda x: x / (1 + np.abs(x)), None, None),
    "softplus": (lambda x: np.logaddexp(0, x), None, None),
    "leakyrelu": (lambda x, a: np.where(x < 0, a * x, x), 0.01, None),
    "thresholdedrelu": (lambda x, a: np.where(x >= a, x, 0), 1.0, None),
    "elu": (lambda x, a: np.where(x < 0, a * np.expm1(x), x), 1.0, None),
    "affine": (lambda x, a, b: a * x + b, 1.0, 0.0),
    "scaledtanh": (lambda x, a, b: a * np.tanh(b * x), 1.0, 1.0),
    "hardsigmoid": (lambda x, a, b: np.clip(a * x + b, 0, 1), 0.2, 0.5),
}
"""Each activation with the usual values of its parameters, None where it has none."""


def _activations(node: Node, usual: Sequence[str], directions: int) -> list[list[_Activation]]:
    names = list(node.activations or list(usual) * directions)[: len(usual) * directions]
    alphas, betas = list(node.activation_alpha or []), list(node.activation_beta or [])
    found = [_activation(name, alphas, betas) for name in names]
    return [found[i : i + len(usual)] for i in range(0, len(found), len(usual))]


def _activation(name: str, alphas: list[float], betas: list[float]) -> _Activation:
    function, alpha, beta = _FUNCTIONS[name.lower()]
    given = [
        values.pop(0) if values else usual for values, usual in ((alphas, alpha), (betas, beta)) if usual is not None
    ]
    return lambda x: function(x, *given)


def _along(node: Node, x: Array, lengths: Array, states: list[Array], hidden: int, steps: list[_Step]) -> Any:
    """Runs each direction; returns Y and the last states in the node's layout."""
    if node.layout:
        x, states = x.swapaxes(0, 1), [s if s is None else s.swapaxes(0, 1) for s in states]
    length, batch = x.shape[:2]
    lengths = np.full(batch, length) if lengths is None else lengths
    y = np.zeros((length, len(steps), batch, hidden), x.dtype)
    last = [np.zeros((len(steps), batch, hidden), x.dtype) for _ in states]
    for d, step in enumerate(steps):
        now = [np.zeros((batch, hidden), x.dtype) if s is None else s[d] for s in states]
        now = [np.where((lengths == 0)[:, None], np.zeros_like(s), s) for s in now]
        is_backward = d == 1 or node.direction == "reverse"
        for t in range(length):
            runs = np.flatnonzero(t < lengths)
            place = lengths[runs] - 1 - t if is_backward else np.full(len(runs), t)
            new = step(x[place, runs], [s[runs] for s in now])
            for state, value in zip(now, new, strict=True):
                state[runs] = value
            y[place, d, runs] = new[0]
        for to, state in zip(last, now, strict=True):
            to[d] = state
    if node.layout:
        return (y.transpose(2, 0, 1, 3), *(state.swapaxes(0, 1) for state in last))
    return (y, *last)


def _clipped(node: Node, x: Array) -> Array:
    return x if node.clip is None else np.clip(x, -node.clip, node.clip)


def _biases(b: Array, d: int, w: Array) -> tuple[Array, Array]:
    return (0, 0) if b is None else (b[d, : w.shape[1]], b[d, w.shape[1] :])


@operator("RNN")
@in_float32
def _rnn(node: Node, x: Array, w: Array, r: Array, b: Array = None, lengths: Array = None, h: Array = None) -> Any:
    functions = _activations(node, ["Tanh"], len(w))

    def step_of(d: int) -> _Step:
        (f,), (wb, rb) = functions[d], _biases(b, d, w)
        return lambda x, s: [f(_clipped(node, x @ w[d].T + s[0] @ r[d].T + wb + rb))]

    return _along(node, x, lengths, [h], r.shape[2], [step_of(d) for d in range(len(w))])


@operator("GRU")
@in_float32
def _gru(node: Node, x: Array, w: Array, r: Array, b: Array = None, lengths: Array = None, h: Array = None) -> Any:
    functions, hidden = _activations(node, ["Sigmoid", "Tanh"], len(w)), r.shape[2]

    def step_of(d: int) -> _Step:
        (f, g), (wb, rb) = functions[d], _biases(b, d, w)

        def step(x: Array, states: Sequence[Array]) -> list[Array]:
            h = states[0]
            of_x, of_h = x @ w[d].T + wb, h @ r[d].T + rb
            z, reset = (f(_clipped(node, (of_x + of_h)[:, i * hidden : (i + 1) * hidden])) for i in range(2))
            last = slice(2 * hidden, None)
            if node.linear_before_reset:
                new = reset * of_h[:, last]
            else:
                new = (reset * h) @ r[d, last].T + (0 if b is None else rb[last])
            return [(1 - z) * g(_clipped(node, of_x[:, last] + new)) + z * h]

        return step

    return _along(node, x, lengths, [h], hidden, [step_of(d) for d in range(len(w))])


@operator("LSTM")
@in_float32
def _lstm(
    node: Node, x: Array, w: Array, r: Array, b: Array = None, lengths: Array = None, h: Array = None, c: Array = None,
    p: Array = None,
) -> Any:  # fmt: skip
    functions, hidden = _activations(node, ["Sigmoid", "Tanh", "Tanh"], len(w)), r.shape[2]

    def step_of(d: int) -> _Step:
        (f, g, last), (wb, rb) = functions[d], _biases(b, d, w)
        peep_i, peep_o, peep_f = np.zeros((3, hidden), x.dtype) if p is None else p[d].reshape(3, hidden)

        def step(x: Array, states: Sequence[Array]) -> list[Array]:
            h, c = states
            i, o, forget, cell = np.split(x @ w[d].T + wb + h @ r[d].T + rb, 4, 1)
            i = f(_clipped(node, i + peep_i * c))
            forget = 1 - i if node.input_forget else f(_clipped(node, forget + peep_f * c))
            new = forget * c + i * g(_clipped(node, cell))
            return [f(_clipped(node, o + peep_o * new)) * last(new), new]

        return step

    return _along(node, x, lengths, [h, c], hidden, [step_of(d) for d in range(len(w))])
