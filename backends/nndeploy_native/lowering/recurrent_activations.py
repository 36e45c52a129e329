# SPDX-License-Identifier: Apache-2.0
"""The activations of recurrent layers as expressions of operand 0.

Source: ONNX LSTM, GRU, RNN, opset 22: activations, activation_alpha and activation_beta, which those that have such a
number take one after the other; clip. As in ONNX Runtime, clip bounds what gates are functions of, not the cell.
"""

from collections.abc import Callable, Iterator

import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy_native.expressions import Expression, const, operand, substituted
from nndeploy_native.steps.recurrent import ACTIVATIONS

_USUAL = {"lstm": ("sigmoid", "tanh", "tanh"), "gru": ("sigmoid", "tanh"), "rnn": ("tanh",)}
_X = operand(0)
_PLAIN: dict[str, Expression] = {
    "relu": ("relu", _X),
    "sigmoid": ("sigmoid", _X),
    "softplus": ("softplus", _X),
    "softsign": ("div", _X, ("add", ("abs", _X), const(1))),
    "tanh": ("tanh", _X),
}
_NUMBERS: dict[str, tuple[float | None, ...]] = {
    "affine": (None, None),
    "elu": (1.0,),
    "hardsigmoid": (0.2, 0.5),
    "leakyrelu": (0.01,),
    "scaledtanh": (None, None),
    "thresholdedrelu": (1.0,),
}
"""Alpha and beta where they are not given: those of ONNX's operators of these names; None where there is none."""


def activations_of(node: ir.Node, kind: str, directions: int, clip: float) -> "tuple[Expression | None, ...]":
    """Returns the activations of all directions, None for one that is the usual one.

    Raises:
        BuildRefusedError: ONNX lists no such activation, or a number that it needs is not given.
    """
    usual = _USUAL[kind] * directions
    given = node.attributes.get("activations")
    names = tuple(name.lower() for name in given.as_strings()) if given is not None else usual
    if len(names) != len(usual):
        raise BuildRefusedError(f"{len(names)} activations instead of {len(usual)}")
    alphas, betas = (_floats(node, f"activation_{name}") for name in ("alpha", "beta"))
    found: list[Expression | None] = []
    for number, name in enumerate(names):
        expression = _expression(name, alphas, betas)
        is_gate = kind != "lstm" or number % ACTIVATIONS[kind] < 2
        if clip > 0.0 and is_gate:
            found.append(_clipped(expression, clip))
        else:
            found.append(None if name == usual[number] else expression)
    return tuple(found)


def _floats(node: ir.Node, name: str) -> Iterator[float]:
    attribute = node.attributes.get(name)
    return iter(attribute.as_floats() if attribute is not None else ())


def _clipped(expression: Expression, clip: float) -> Expression:
    bounded: Expression = ("min", ("max", _X, const(-clip)), const(clip))
    return substituted(expression, {0: bounded})


def _expression(name: str, alphas: Iterator[float], betas: Iterator[float]) -> Expression:
    if name in _PLAIN:
        return _PLAIN[name]
    if name not in _NUMBERS:
        raise BuildRefusedError(f"the activation {name!r:.40}, which ONNX does not list")
    numbers = [next(given, usual) for given, usual in zip((alphas, betas), _NUMBERS[name], strict=False)]
    if None in numbers:
        raise BuildRefusedError(f"an activation {name!r} without its numbers")
    return _WITH_NUMBERS[name](*(const(one) for one in numbers if one is not None))


_WITH_NUMBERS: dict[str, Callable[..., Expression]] = {
    "affine": lambda a, b: ("add", ("mul", _X, a), b),
    "elu": lambda a: ("where", ("less", _X, const(0)), ("mul", ("sub", ("exp", _X), const(1)), a), _X),
    "hardsigmoid": lambda a, b: ("min", ("max", ("add", ("mul", _X, a), b), const(0)), const(1)),
    "leakyrelu": lambda a: ("where", ("less", _X, const(0)), ("mul", _X, a), _X),
    "scaledtanh": lambda a, b: ("mul", ("tanh", ("mul", _X, b)), a),
    "thresholdedrelu": lambda a: ("where", ("less", a, _X), _X, const(0)),
}
