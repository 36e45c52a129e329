# SPDX-License-Identifier: Apache-2.0
"""saturated(round(bounds of a sum of scaled bytes) + zero)  =>  one pass over bytes.

So what quantisers write around Add, Relu, Clip and pooling needs no floats in memory and no program. Factors are those
of the bytes over that of the result, as ONNX Runtime joins them: a number just between two bytes may become the other.
"""

import math
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np

from nndeploy_native.expressions import Expression
from nndeploy_native.steps.bytes import ByteLine, ByteTerm
from nndeploy_native.steps.elementwise import Elementwise
from nndeploy_native.steps.step import NativeStep
from nndeploy_native.tensors import Tensor

RANGES = {"uint8": (0, 255), "int8": (-128, 127)}
MOST_FACTOR = 2.0**20
"""Larger factors are left to programs: NND_MOST_FACTOR of the kernel library."""


@dataclass(frozen=True, slots=True)
class _Line:
    """The sum of (operand - zero) * factor, of each operand, within bounds."""

    terms: tuple[tuple[int, float, float], ...]
    low: float = -math.inf
    high: float = math.inf


def fuse_byte_lines(steps: list[NativeStep]) -> list[NativeStep]:
    """Returns the steps with such elementwise ones as lines."""
    return [_line_of(step) or step if isinstance(step, Elementwise) else step for step in steps]


def _line_of(step: Elementwise) -> ByteLine | None:
    element = step.output.element
    tensors = [one.tensor for one in step.operands if one.shape == step.output.shape and _is_bytes(one.tensor)]
    if element not in RANGES or len(tensors) != len(step.operands) or not 1 <= len(tensors) <= 2:
        return None
    match step.expression:
        case (str(name), ("add", ("round", tuple(rounded)), ("const", zero))) if name == f"saturated_{element}":
            line = _read(rounded)
        case (str(name), ("round", tuple(rounded))) if name == f"saturated_{element}":
            line, zero = _read(rounded), 0
        case _:
            return None
    if line is None or len(line.terms) != len(tensors) or not isinstance(zero, int | float) or line.low > line.high:
        return None
    terms = [
        ByteTerm(tensor, int(offset), float(np.float32(factor)))
        for number, offset, factor in line.terms
        if (tensor := tensors[number]) is not None and offset == int(offset) and abs(factor) < MOST_FACTOR
    ]
    least, most = RANGES[element]
    whole = int(zero)
    if len(terms) != len(tensors) or not least <= whole <= most:
        return None
    low, high = (_within(bound, least - whole, most - whole) + whole for bound in (line.low, line.high))
    return ByteLine(step.output, tuple(terms), whole, low, high)


def _is_bytes(tensor: Tensor | None) -> TypeGuard[Tensor]:
    return tensor is not None and not tensor.is_blocked and tensor.element in RANGES


def _within(bound: float, least: int, most: int) -> int:
    """Returns the whole number that is nearest to a bound, ties to even, within a range."""
    return least if bound <= least else most if bound >= most else round(float(np.float32(bound)))


def _read(expression: Expression) -> _Line | None:
    """Returns the line that an expression is, None where it is none."""
    match expression:
        case ("operand", int(number)):
            return _Line(((number, 0.0, 1.0),))
        case ("sub", ("operand", int(number)), ("const", int(zero) | float(zero))):
            return _Line(((number, zero, 1.0),))
        case ("mul", tuple(value), ("const", int(by) | float(by))) if by > 0:
            return _scaled(_read(value), by)
        case ("div", tuple(value), ("const", int(by) | float(by))) if by > 0:
            return _scaled(_read(value), 1 / by)
        case ("relu", tuple(value)):
            return _bounded(_read(value), 0.0, math.inf)
        case ("max", tuple(value), ("const", int(low) | float(low))):
            return _bounded(_read(value), low, math.inf)
        case ("min", tuple(value), ("const", int(high) | float(high))):
            return _bounded(_read(value), -math.inf, high)
        case ("add", tuple(first), tuple(second)):
            return _sum(_read(first), _read(second))
    return None


def _scaled(line: _Line | None, by: float) -> _Line | None:
    if line is None:
        return None
    return _Line(
        tuple((number, zero, factor * by) for number, zero, factor in line.terms), line.low * by, line.high * by
    )


def _bounded(line: _Line | None, low: float, high: float) -> _Line | None:
    return None if line is None else _Line(line.terms, max(line.low, low), min(line.high, high))


def _sum(first: _Line | None, second: _Line | None) -> _Line | None:
    if first is None or second is None or (first.low, first.high, second.low, second.high) != (-math.inf, math.inf) * 2:
        return None
    return _Line((*first.terms, *second.terms))
