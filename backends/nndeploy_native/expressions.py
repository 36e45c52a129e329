# SPDX-License-Identifier: Apache-2.0
"""What becomes of one element: expressions over the operands of a step, and their C code on vectors.

An expression is a nested tuple: ("operand", 0), ("const", 3.0), or an operator's name and its expressions. Law:
`substituted(e, {k: f})` computes e with operand k replaced by what f gives.
"""

from collections.abc import Mapping
from typing import TypeAlias

Expression: TypeAlias = "tuple[str | int | float | Expression, ...]"

UNARY = (
    "neg", "abs", "reciprocal", "sqrt", "exp", "log", "sigmoid", "tanh", "relu", "floor", "ceil", "hardswish", "silu",
    "softplus", "erf",
)  # fmt: skip
BINARY = ("add", "sub", "mul", "div", "max", "min", "less")
MAX_SIZE = 48
"""Longer expressions are not joined further."""


def operand(number: int) -> Expression:
    """Returns the expression that is an operand."""
    return ("operand", number)


def const(value: float) -> Expression:
    """Returns the expression that is a number."""
    return ("const", float(value))


def size_of(expression: Expression) -> int:
    """Returns the number of operators, operands and numbers."""
    return 1 if expression[0] in ("operand", "const") else 1 + sum(size_of(_part(one)) for one in expression[1:])


def substituted(expression: Expression, values: Mapping[int, Expression]) -> Expression:
    """Returns the expression with each operand replaced by its value."""
    match expression:
        case ("operand", int(number)):
            return values[number]
        case ("const", _):
            return expression
    return (expression[0], *(substituted(_part(one), values) for one in expression[1:]))


def label_of(expression: Expression) -> str:
    """Returns the names of the operators, innermost first, for the name of a step."""
    if expression[0] in ("operand", "const"):
        return ""
    parts = [label for one in expression[1:] if (label := label_of(_part(one)))]
    return "_".join(dict.fromkeys((*parts, str(expression[0]))))


def c_lines(expression: Expression, names: Mapping[int, str]) -> tuple[list[str], str]:
    """Returns C statements that compute an expression, and the name of its result; equal parts are computed once."""
    lines: list[str] = []
    known: dict[Expression, str] = {}

    def named(part: Expression) -> str:
        match part:
            case ("operand", int(number)):
                return names[number]
            case ("const", float(value)):
                return f"nnd_splat({c_float(value)})"
        if part not in known:
            code = _call(part, [named(_part(one)) for one in _operands(part)])
            known[part] = f"t{len(known)}"
            lines.append(f"vf {known[part]} = {code};")
        return known[part]

    return lines, named(expression)


def _operands(part: Expression) -> tuple[Expression, ...]:
    """Returns what an operator's C code takes; a comparison under `where` is no value of its own."""
    match part:
        case ("where", ("less", a, b), yes, no):
            return (_part(a), _part(b), _part(yes), _part(no))
    return tuple(_part(one) for one in part[1:])


def _call(part: Expression, names: list[str]) -> str:
    """Returns the C code of one operator; bounds that are numbers take one instruction."""
    match part:
        case ("where", ("less", _, _), _, _):
            return f"nnd_select({names[0]} < {names[1]}, {names[2]}, {names[3]})"
        case ("max", _, ("const", float(bound))) if bound == bound:
            return f"nnd_at_least({names[1]}, {names[0]})"
        case ("min", _, ("const", float(bound))) if bound == bound:
            return f"nnd_at_most({names[1]}, {names[0]})"
    return f"nnd_op_{part[0]}({', '.join(names)})"


def c_float(value: float) -> str:
    """Returns a C literal of the nearest float."""
    if value != value:
        return '__builtin_nanf("")'
    if value in (float("inf"), float("-inf")):
        return f"{'-' if value < 0 else ''}__builtin_inff()"
    return f"{value.hex()}f"


def _part(part: "str | int | float | Expression") -> Expression:
    assert isinstance(part, tuple)
    return part
