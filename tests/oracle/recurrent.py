# SPDX-License-Identifier: Apache-2.0
"""RNN, GRU and LSTM, one sequence and one step at a time.

A sequence ends at its length: outputs beyond it are 0, the last state is that after its last step; read backwards it
begins at its last step. `clip` bounds what goes into every activation.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from oracle.elementwise import sigmoid
from oracle.registry import Call, InvalidError, UnspecifiedError, operator

_ALPHAS = {"LeakyRelu": 0.01, "ThresholdedRelu": 1.0, "HardSigmoid": 0.2, "Elu": 1.0}
_BETAS = {"HardSigmoid": 0.5}
_ACTIVATIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "relu": lambda x, *_: np.maximum(x, 0), "tanh": lambda x, *_: np.tanh(x), "sigmoid": lambda x, *_: sigmoid(x),
    "affine": lambda x, a, b: a * x + b, "leakyrelu": lambda x, a, _: np.where(x >= 0, x, a * x),
    "thresholdedrelu": lambda x, a, _: np.where(x >= a, x, 0), "scaledtanh": lambda x, a, b: a * np.tanh(b * x),
    "hardsigmoid": lambda x, a, b: np.clip(a * x + b, 0, 1), "elu": lambda x, a,
    _: np.where(x >= 0, x, a * np.expm1(x)), "softsign": lambda x, *_: x / (1 + np.abs(x)), "softplus": lambda x,
    *_: np.logaddexp(0, x),
}  # fmt: skip
_TAKES_ALPHA = ("affine", "leakyrelu", "thresholdedrelu", "scaledtanh", "hardsigmoid", "elu")
_TAKES_BETA = ("affine", "scaledtanh", "hardsigmoid")


def _activations(call: Call, usual: list[str], directions: int) -> list[list[Any]]:
    """Returns the functions of each direction; their parameters are used up in the order of the functions."""
    names = call.activations or usual * directions
    if call.op == "RNN":
        names = names[:directions]
    alphas, betas = list(call.activation_alpha or []), list(call.activation_beta or [])
    found = []
    for name in names:
        key = name.lower()
        if key not in _ACTIVATIONS:
            raise InvalidError(f"no activation {name}")
        alpha = alphas.pop(0) if alphas and key in _TAKES_ALPHA else _usual(_ALPHAS, key, 1.0)
        beta = (
            betas.pop(0) if betas and key in _TAKES_BETA else _usual(_BETAS, key, 1.0 if key == "scaledtanh" else 0.0)
        )
        found.append(_clipped(_ACTIVATIONS[key], alpha, beta, call.clip))
    if len(found) != len(usual) * directions:
        raise InvalidError(f"{len(found)} activations in {directions} directions")
    return [found[i * len(usual) : (i + 1) * len(usual)] for i in range(directions)]


def _usual(table: dict[str, float], key: str, otherwise: float) -> float:
    return next((value for name, value in table.items() if name.lower() == key), otherwise)


def _clipped(function: Any, alpha: float, beta: float, bound: float | None) -> Any:
    return lambda x: function(x if bound is None else np.clip(x, -bound, bound), alpha, beta)


def _run(call: Call, x: Any, w: Any, lengths: Any, states: list[Any], steps: list[Any]) -> Any:
    """Runs all directions; `steps[d]`: (x_t, states) -> states, of which the first is the output.

    Returns Y and the last states, in the layout of the call.
    """
    by_batch = bool(call.layout)
    x = np.swapaxes(x, 0, 1) if by_batch else x
    length, batch = x.shape[:2]
    directions, hidden = len(steps), w.shape[1]
    lengths = np.full(batch, length) if lengths is None else lengths
    if lengths.shape != (batch,) or (lengths < 0).any() or (lengths > length).any():
        raise InvalidError(f"lengths {lengths} of {length}")
    if (lengths == 0).any() and any(state is not None for state in states):
        raise UnspecifiedError("the last state of a sequence without steps")
    y = np.zeros((length, directions, batch, hidden))
    last = [np.zeros((directions, batch, hidden)) for _ in states]
    for d, step in enumerate(steps):
        is_backward = call.direction == "reverse" or d == 1
        for b in range(batch):
            now = [_initial(state, d, b, hidden, by_batch) for state in states]
            order = range(lengths[b])
            for t in reversed(order) if is_backward else order:
                now = step(x[t, b], now)
                y[t, d, b] = now[0]
            for state, value in zip(last, now, strict=True):
                state[d, b] = value
    if by_batch:
        return (np.transpose(y, (2, 0, 1, 3)), *(np.swapaxes(state, 0, 1) for state in last))
    return (y, *last)


def _initial(state: Any, d: int, b: int, hidden: int, by_batch: bool) -> Any:
    if state is None:
        return np.zeros(hidden)
    return state[b, d] if by_batch else state[d, b]


def _num_directions(call: Call, w: Any) -> int:
    directions = 2 if call.direction == "bidirectional" else 1
    if w.shape[0] != directions:
        raise InvalidError(f"weights of {w.shape[0]} directions")
    return directions


def _halves(b: Any, d: int, size: int) -> tuple[Any, Any]:
    """Returns the biases of W and of R in a direction."""
    return (np.zeros(size), np.zeros(size)) if b is None else (b[d, :size], b[d, size:])


@operator("RNN")
def _rnn(call: Call, x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, h0: Any = None) -> Any:
    directions, hidden = _num_directions(call, w), r.shape[2]
    functions = _activations(call, ["Tanh"], directions)

    def step_of(d: int) -> Any:
        (f,), (wb, rb) = functions[d], _halves(b, d, hidden)
        return lambda x_t, s: [f(w[d] @ x_t + r[d] @ s[0] + wb + rb)]

    return _run(call, x, r[:, :hidden], lengths, [h0], [step_of(d) for d in range(directions)])


@operator("GRU")
def _gru(call: Call, x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, h0: Any = None) -> Any:
    directions, hidden = _num_directions(call, w), r.shape[2]
    functions = _activations(call, ["Sigmoid", "Tanh"], directions)

    def step_of(d: int) -> Any:
        (f, g), (wb, rb) = functions[d], _halves(b, d, 3 * hidden)
        z_, r_, h_ = (slice(i * hidden, (i + 1) * hidden) for i in range(3))

        def step(x_t: Any, states: list[Any]) -> list[Any]:
            (h,) = states
            z = f(w[d, z_] @ x_t + r[d, z_] @ h + wb[z_] + rb[z_])
            reset = f(w[d, r_] @ x_t + r[d, r_] @ h + wb[r_] + rb[r_])
            if call.linear_before_reset:
                new = g(w[d, h_] @ x_t + reset * (r[d, h_] @ h + rb[h_]) + wb[h_])
            else:
                new = g(w[d, h_] @ x_t + r[d, h_] @ (reset * h) + rb[h_] + wb[h_])
            return [(1 - z) * new + z * h]

        return step

    return _run(call, x, r[:, :hidden], lengths, [h0], [step_of(d) for d in range(directions)])


@operator("LSTM")
def _lstm(
    call: Call, x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, h0: Any = None, c0: Any = None,
    p: Any = None,
) -> Any:  # fmt: skip
    directions, hidden = _num_directions(call, w), r.shape[2]
    functions = _activations(call, ["Sigmoid", "Tanh", "Tanh"], directions)

    def step_of(d: int) -> Any:
        (f, g, h_of), (wb, rb) = functions[d], _halves(b, d, 4 * hidden)
        i_, o_, f_, c_ = (slice(i * hidden, (i + 1) * hidden) for i in range(4))
        p_i, p_o, p_f = np.zeros((3, hidden)) if p is None else p[d].reshape(3, hidden)

        def step(x_t: Any, states: list[Any]) -> list[Any]:
            h, c = states
            sums = w[d] @ x_t + r[d] @ h + wb + rb
            i = f(sums[i_] + p_i * c)
            forget = 1 - i if call.input_forget else f(sums[f_] + p_f * c)
            new_c = forget * c + i * g(sums[c_])
            if call.clip is not None and (np.abs(new_c) > call.clip).any():
                raise UnspecifiedError("whether clip bounds the cell state before h")
            return [f(sums[o_] + p_o * new_c) * h_of(new_c), new_c]

        return step

    return _run(call, x, r[:, :hidden], lengths, [h0, c0], [step_of(d) for d in range(directions)])
