# SPDX-License-Identifier: Apache-2.0
"""Expressions -> programs of a plan: instructions over operands, results and constants (c/base/program.h).

Functions that a model spells out are those of the library. Law: equal parts are computed once, and a result's place
is taken again once nobody reads it any more.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nndeploy.errors import BuildRefusedError
from nndeploy_native.expressions import Domain, Expression
from nndeploy_native.known_functions import with_known_functions

OPERATORS: dict[Domain, tuple[str, ...]] = {
    Domain.FLOAT32: (
        "neg", "abs", "reciprocal", "sqrt", "exp", "log", "sigmoid", "tanh", "relu", "floor", "ceil", "hardswish",
        "silu", "softplus", "erf", "add", "sub", "mul", "div", "max", "min", "less", "where", "sign", "round", "not",
        "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "less_equal", "equal",
        "and", "or", "xor", "fmod", "mod", "pow", "saturated_uint8", "saturated_int8", "gelu",
        "gelu_tanh",
    ),
    Domain.INT64: (
        "neg", "abs", "sign", "relu", "not", "invert", "int32", "int8", "uint8", "add", "sub", "mul", "div", "fmod",
        "mod", "pow", "max", "min", "less", "less_equal", "equal", "and", "or", "xor", "bit_and", "bit_or", "bit_xor",
        "shift_left", "shift_right", "where",
    ),
    Domain.FLOAT64: (
        "neg", "abs", "reciprocal", "sqrt", "exp", "log", "sigmoid", "relu", "floor", "ceil", "sign", "round", "not",
        "add", "sub", "mul", "div", "max", "min", "less", "less_equal", "equal", "and", "or", "xor", "where",
        "float_above", "float_odd", "tanh",
    ),
}  # fmt: skip
"""The numbers of domains, and of the operators of each: the lists of program.h in their order."""
OPERANDS, RESULTS, CONSTANTS, INSTRUCTIONS = 4, 12, 32, 64
_FIRST_RESULT, _FIRST_CONSTANT = OPERANDS, OPERANDS + RESULTS
_COMMUTATIVE = ("add", "mul", "max", "min")


@dataclass(frozen=True, slots=True)
class Program:
    """The words of a program."""

    words: tuple[int, ...]

    @property
    def is_of_doubles(self) -> bool:
        """Whether its numbers are float64."""
        return list(Domain)[self.words[0]] is Domain.FLOAT64


def program_of(expression: Expression, num_operands: int, domain: Domain = Domain.FLOAT32) -> Program:
    """Returns an expression as a program.

    Raises:
        BuildRefusedError: it is too long, or needs too many results at a time.
    """
    if domain is Domain.FLOAT32:
        expression = with_known_functions(expression)
    parts = list(dict.fromkeys(_parts(expression)))
    constants = list(dict.fromkeys(_bits(part, domain) for part in _parts(expression) if part[0] == "const"))
    operators = [part for part in parts if part[0] not in ("operand", "const")]
    last = {source: number for number, part in enumerate(operators) for source in _sources(part)}
    if len(operators) > INSTRUCTIONS or len(constants) > CONSTANTS:
        raise BuildRefusedError("an expression is too long for a program")
    free = list(range(_FIRST_RESULT, _FIRST_CONSTANT))
    places: dict[Expression, int] = {}

    def place_of(part: Expression) -> int:
        match part:
            case ("operand", int(number)):
                return number
            case ("const", _):
                return _FIRST_CONSTANT + constants.index(_bits(part, domain))
        return places[part]

    instructions: list[int] = []
    for number, part in enumerate(operators):
        sources = [place_of(one) for one in _sources(part)]
        free += [places[one] for one in dict.fromkeys(_sources(part)) if last[one] == number and one in places]
        if not free:
            raise BuildRefusedError("an expression needs too many results at a time")
        places[part] = free.pop()
        instructions += [OPERATORS[domain].index(str(part[0])), places[part], *(*sources, 0, 0)[:3]]
    outcome = place_of(expression)
    head = (list(Domain).index(domain), num_operands, len(constants))
    return Program((*head, *constants, len(operators), *instructions, outcome))


def _sources(part: Expression) -> tuple[Expression, ...]:
    """Returns what an operator takes; of a sum and the like, a constant second."""
    sources = tuple(one for one in part[1:] if isinstance(one, tuple))
    if part[0] in _COMMUTATIVE and sources[0][0] == "const":
        return sources[::-1]
    return sources


def _parts(part: Expression) -> Iterator[Expression]:
    """Passes all parts, each behind what it takes."""
    if part[0] not in ("operand", "const"):
        for one in _sources(part):
            yield from _parts(one)
    yield part


def _bits(part: Expression, domain: Domain) -> int:
    """Returns the word of a constant: the bits of a float32 or float64, or a whole number."""
    value = part[1]
    assert isinstance(value, float | int)
    if domain is Domain.INT64:
        return int(value)
    if domain is Domain.FLOAT64:
        return int(struct.unpack("<q", struct.pack("<d", value))[0])
    return int(struct.unpack("<I", np.float32(value).tobytes())[0])
