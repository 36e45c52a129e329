# SPDX-License-Identifier: Apache-2.0
"""Epilogues that the kernel templates know by name (c/activation.h), found in expressions however they are written.

A template computes activation(sum + residual); other epilogues stay expressions and go to the plain kernels.
"""

from dataclasses import dataclass

from nndeploy_native.expressions import Expression, c_float, const, operand
from nndeploy_native.steps.step import Epilogue

X, RESIDUAL, CHANNEL = operand(0), operand(1), operand(2)
ZERO = const(0)


@dataclass(frozen=True, slots=True)
class Activation:
    """One of `enum nnd_activation_kind`, with its numbers."""

    kind: str = "NONE"
    a: float = 0.0
    b: float = 0.0

    def initializer(self) -> str:
        """Returns `struct nnd_activation` in C."""
        return f"(struct nnd_activation){{NND_{self.kind}, {c_float(self.a)}, {c_float(self.b)}}}"


def activation_of(epilogue: Epilogue) -> Activation | None:
    """Returns the activation of a template that does what the epilogue does, None where there is none."""
    expression = epilogue.expression
    if epilogue.residual is not None:
        for added in (("add", X, RESIDUAL), ("add", RESIDUAL, X)):
            expression = _replaced(expression, added, X)
    return _named(expression)


def _replaced(expression: Expression, part: Expression, by: Expression) -> Expression:
    if expression == part:
        return by
    return tuple(_replaced(one, part, by) if isinstance(one, tuple) else one for one in expression)


def _named(expression: Expression) -> Activation | None:
    simple = {
        X: Activation(),
        ("relu", X): Activation("RELU"),
        ("sigmoid", X): Activation("SIGMOID"),
        ("silu", X): Activation("SILU"),
        ("mul", X, ("sigmoid", X)): Activation("SILU"),
        ("mul", ("sigmoid", X), X): Activation("SILU"),
        ("tanh", X): Activation("TANH"),
        ("hardswish", X): Activation("HARD_SWISH", 1 / 6, 0.5),
        ("where", ("less", X, ZERO), ("mul", X, CHANNEL), X): Activation("PRELU"),
    }
    return simple.get(expression) or _with_numbers(expression)


def _with_numbers(expression: Expression) -> Activation | None:
    x = X
    match expression:
        case ("min", ("max", inner, ("const", float(low_bound))), ("const", float(high_bound))):
            if inner == x:
                return Activation("CLIP", low_bound, high_bound)
            line = _line(inner)
            return Activation("HARD_SIGMOID", *line) if line and (low_bound, high_bound) == (0.0, 1.0) else None
        case ("where", ("less", one, zero), ("mul", two, ("const", float(slope))), three):
            return Activation("LEAKY_RELU", slope) if (one, zero, two, three) == (x, ZERO, x, x) else None
        case ("mul", left, right) if x in (left, right):
            gate = right if left == x else left
            inner_gate = _with_numbers(gate) if isinstance(gate, tuple) else None
            is_hard = inner_gate is not None and inner_gate.kind == "HARD_SIGMOID"
            return Activation("HARD_SWISH", inner_gate.a, inner_gate.b) if inner_gate and is_hard else None
        case ("div", ("mul", left, right), ("const", 6.0)):
            wide: Expression = ("min", ("max", ("add", x, const(3)), ZERO), const(6))
            return Activation("HARD_SWISH", 1 / 6, 0.5) if {left, right} == {x, wide} else None
    return None


def _line(expression: object) -> tuple[float, float] | None:
    """Returns (a, b) of a * x + b."""
    match expression:
        case ("add", ("mul", one, ("const", float(a))), ("const", float(b))) if one == X:
            return a, b
    return None


def needs_channel(activation: Activation) -> bool:
    """Whether the activation reads a number for each channel."""
    return activation.kind == "PRELU"
