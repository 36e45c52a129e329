# SPDX-License-Identifier: Apache-2.0
"""What becomes of one element: expressions over the operands of a step.

An expression is a nested tuple: ("operand", 0), ("const", 3.0), or an operator's name and its expressions. It is
computed in one domain, float32, int64 or float64, whatever its operands are; in all truths are one and zero. Law:
`substituted(e, {k: f})` computes e with operand k replaced by what f gives.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import TypeAlias

Expression: TypeAlias = "tuple[str | int | float | Expression, ...]"


class Domain(StrEnum):
    """What the numbers of an expression are."""

    FLOAT32 = "float32"
    INT64 = "int64"
    FLOAT64 = "float64"


MAX_SIZE = 48
"""Longer expressions are not joined further."""


def operand(number: int) -> Expression:
    """Returns the expression that is an operand."""
    return ("operand", number)


def const(value: float) -> Expression:
    """Returns the expression that is a number; whole ones keep all of their digits."""
    return ("const", value)


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


def operators_of(expression: Expression) -> Iterator[str]:
    """Passes the name of every operator."""
    if expression[0] not in ("operand", "const"):
        yield str(expression[0])
        for one in expression[1:]:
            yield from operators_of(_part(one))


def operands_of(expression: Expression) -> set[int]:
    """Returns the numbers of the operands that are read."""
    match expression:
        case ("operand", int(number)):
            return {number}
        case ("const", _):
            return set()
    return set().union(*(operands_of(_part(one)) for one in expression[1:]))


def parts_of(expression: Expression) -> Iterator[Expression]:
    """Passes an expression and all expressions within it, the whole first."""
    yield expression
    if expression[0] not in ("operand", "const"):
        for one in expression[1:]:
            yield from parts_of(_part(one))


def replaced(expression: Expression, part: Expression, by: Expression) -> Expression:
    """Returns an expression with each part that is equal to `part` replaced."""
    if expression == part:
        return by
    if expression[0] in ("operand", "const"):
        return expression
    return (expression[0], *(replaced(_part(one), part, by) for one in expression[1:]))


def label_of(expression: Expression) -> str:
    """Returns the names of the operators, innermost first, for the name of a step."""
    if expression[0] in ("operand", "const"):
        return ""
    parts = [label for one in expression[1:] if (label := label_of(_part(one)))]
    return "_".join(dict.fromkeys((*parts, str(expression[0]))))


def _part(part: "str | int | float | Expression") -> Expression:
    assert isinstance(part, tuple)
    return part
