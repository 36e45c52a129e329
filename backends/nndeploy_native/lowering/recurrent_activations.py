# SPDX-License-Identifier: Apache-2.0
"""The activations of recurrent layers as expressions of operand 0.

Source: ONNX LSTM, GRU, RNN, opset 22: activations, activation_alpha and activation_beta, which those that have such a
number take one after the other, and clip. As in ONNX Runtime, clip bounds what gates are functions of, not the cell.
"""

from collections.abc import Iterator

import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy_native.expressions import Expression, const, operand, substituted
from nndeploy_native.lowering.activation_rules import expression_of
from nndeploy_native.steps.recurrent import ACTIVATIONS

_USUAL = {"lstm": ("sigmoid", "tanh", "tanh"), "gru": ("sigmoid", "tanh"), "rnn": ("tanh",)}
_LISTED = {name.lower(): name for name in ("Elu", "HardSigmoid", "LeakyRelu", "Softsign", "ThresholdedRelu")}
_X = operand(0)


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
    numbers = {name: _floats(node, f"activation_{name}") for name in ("alpha", "beta")}
    found: list[Expression | None] = []
    for place, name in enumerate(names):
        expression = _expression(name, numbers)
        is_of_gates = kind != "lstm" or place % ACTIVATIONS[kind] < 2
        if clip > 0.0 and is_of_gates:
            bounded: Expression = ("min", ("max", _X, const(-clip)), const(clip))
            found.append(substituted(expression, {0: bounded}))
        else:
            found.append(None if name == usual[place] else expression)
    return tuple(found)


def _floats(node: ir.Node, name: str) -> Iterator[float]:
    attribute = node.attributes.get(name)
    return iter(attribute.as_floats() if attribute is not None else ())


def _expression(name: str, numbers: dict[str, Iterator[float]]) -> Expression:
    def given(which: str) -> Expression:
        value = next(numbers[which], None)
        if value is None:
            raise BuildRefusedError(f"an activation {name!r} without its numbers")
        return const(value)

    match name:
        case "relu" | "sigmoid" | "softplus" | "tanh":
            return (name, _X)
        case "affine":
            return ("add", ("mul", _X, given("alpha")), given("beta"))
        case "scaledtanh":
            alpha = given("alpha")
            return ("mul", ("tanh", ("mul", _X, given("beta"))), alpha)
    if name not in _LISTED:
        raise BuildRefusedError(f"the activation {name!r:.40}, which ONNX does not list")
    return expression_of(_LISTED[name], _X, lambda which, usual: const(next(numbers[which], usual)))
