# SPDX-License-Identifier: Apache-2.0
"""saturated(round(bounds of a sum of scaled bytes) + zero)  =>  one pass over bytes.

So what quantisers write around Add, also of a bias, Relu and Clip needs no floats in memory and no program. Factors are
those of the bytes over that of the result, as ONNX Runtime joins them: a number just between two bytes may become the
other.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

import numpy as np

from nndeploy.values.size import product
from nndeploy_native.expressions import Expression
from nndeploy_native.steps.bytes import MOST_FACTOR, ByteLine, ByteTerm
from nndeploy_native.steps.elementwise import Elementwise, Operand
from nndeploy_native.steps.step import NativeStep
from nndeploy_native.tensors import Array, Tensor

RANGES = {"uint8": (0, 255), "int8": (-128, 127)}
MOST_ADDED = 2.0**29
"""And numbers: NND_MOST_ADDED."""


@dataclass(frozen=True, slots=True)
class _Line:
    """The sum of (operand - zero) * factor, of each operand, and of `added` * `by`, within bounds.

    `added` is an operand of constant numbers, one for each place of the last axis; -1 for none.
    """

    terms: tuple[tuple[int, float, float], ...]
    added: int = -1
    by: float = 1.0
    low: float = -math.inf
    high: float = math.inf


def fuse_byte_lines(steps: list[NativeStep]) -> list[NativeStep]:
    """Returns the steps with such elementwise ones as lines."""
    return [line_of(step) or step if isinstance(step, Elementwise) else step for step in steps]


def line_of(step: Elementwise) -> ByteLine | None:
    """Returns the pass over bytes that a step is; None where it is none."""
    element = step.output.element
    of_bytes = [one.shape == step.output.shape and _is_bytes(one.tensor) for one in step.operands]
    rows = [_is_row(one, step.output) for one in step.operands]
    if element not in RANGES or not 1 <= sum(of_bytes) <= 2 or sum(rows) > 1 or sum(of_bytes) + sum(rows) < len(rows):
        return None
    match step.expression:
        case (str(name), ("add", ("round", tuple(rounded)), ("const", zero))) if name == f"saturated_{element}":
            line = _read(rounded, rows)
        case (str(name), ("round", tuple(rounded))) if name == f"saturated_{element}":
            line, zero = _read(rounded, rows), 0
        case _:
            return None
    if line is None or not isinstance(zero, int | float) or line.low > line.high:
        return None
    if len(line.terms) != sum(of_bytes) or (line.added >= 0) != any(rows):
        return None
    terms = [
        ByteTerm(tensor, int(offset), float(np.float32(factor)))
        for number, offset, factor in line.terms
        if (tensor := step.operands[number].tensor) is not None and offset == int(offset) and abs(factor) < MOST_FACTOR
    ]
    least, most = RANGES[element]
    whole = int(zero)
    if len(terms) != len(line.terms) or not least <= whole <= most:
        return None
    low, high = (_within(bound, least - whole, most - whole) + whole for bound in (line.low, line.high))
    added = _added(step.operands[line.added].array, line.by) if line.added >= 0 else None
    if line.added >= 0 and added is None:
        return None
    return ByteLine(step.output, tuple(terms), whole, low, high, added)


def _added(numbers: Array | None, by: float) -> Array | None:
    """Returns numbers times a factor; None where one is too large."""
    scaled = None if numbers is None else (numbers.reshape(-1) * np.float32(by)).astype(np.float32)
    return scaled if scaled is not None and bool(np.all(np.abs(scaled) < MOST_ADDED)) else None


def _is_row(one: Operand, output: Tensor) -> bool:
    """Whether an operand is constant numbers, one for each place of the last axis."""
    is_floats = one.array is not None and one.array.dtype == np.float32 and output.is_fixed
    return is_floats and product(one.shape) == one.shape[-1] == output.shape[-1]


def _is_bytes(tensor: Tensor | None) -> TypeGuard[Tensor]:
    return tensor is not None and not tensor.is_blocked and tensor.element in RANGES


def _within(bound: float, least: int, most: int) -> int:
    """Returns the whole number that is nearest to a bound, ties to even, within a range."""
    return least if bound <= least else most if bound >= most else round(float(np.float32(bound)))


def _read(expression: Expression, rows: Sequence[bool]) -> _Line | None:
    """Returns the line that an expression is, None where it is none; `rows`: operands of numbers of the last axis."""
    match expression:
        case ("operand", int(number)) if rows[number]:
            return _Line((), number)
        case ("operand", int(number)):
            return _Line(((number, 0.0, 1.0),))
        case ("sub", ("operand", int(number)), ("const", int(zero) | float(zero))) if not rows[number]:
            return _Line(((number, zero, 1.0),))
        case ("mul", tuple(value), ("const", int(by) | float(by))) if by > 0:
            return _scaled(_read(value, rows), by)
        case ("div", tuple(value), ("const", int(by) | float(by))) if by > 0:
            return _scaled(_read(value, rows), 1 / by)
        case ("relu", tuple(value)):
            return _bounded(_read(value, rows), 0.0, math.inf)
        case ("max", tuple(value), ("const", int(low) | float(low))):
            return _bounded(_read(value, rows), low, math.inf)
        case ("min", tuple(value), ("const", int(high) | float(high))):
            return _bounded(_read(value, rows), -math.inf, high)
        case ("add", tuple(first), tuple(second)):
            return _sum(_read(first, rows), _read(second, rows))
    return None


def _scaled(line: _Line | None, by: float) -> _Line | None:
    if line is None:
        return None
    terms = tuple((number, zero, factor * by) for number, zero, factor in line.terms)
    return _Line(terms, line.added, line.by * by, line.low * by, line.high * by)


def _bounded(line: _Line | None, low: float, high: float) -> _Line | None:
    return None if line is None else replace(line, low=max(line.low, low), high=min(line.high, high))


def _sum(first: _Line | None, second: _Line | None) -> _Line | None:
    if first is None or second is None or (first.low, first.high, second.low, second.high) != (-math.inf, math.inf) * 2:
        return None
    if first.added >= 0 and second.added >= 0:
        return None
    row = first if first.added >= 0 else second
    return _Line((*first.terms, *second.terms), row.added, row.by)
