# SPDX-License-Identifier: Apache-2.0
"""f(product(a, w) * s + t)  =>  f(product(a, w * s) + t): the line is part of constant weights and of the bias.

`s` and `t` are numbers, one a column; f reads the product nowhere else. A batch-norm behind a fully connected layer,
which no pass of the model could move through the Reshape before it, ends here. Arithmetic is done in float64 and
rounded once; where that is not finite, nothing changes.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from nndeploy.values.size import product
from nndeploy_native.expressions import Expression, operand, operands_of, parts_of, replaced, substituted
from nndeploy_native.steps.elementwise import Elementwise, Operand
from nndeploy_native.steps.matmul import Product
from nndeploy_native.steps.step import PLAIN
from nndeploy_native.tensors import Tensor

Floats: TypeAlias = npt.NDArray[np.float64]


def is_one_a_column(one: Operand, output: Tensor, maker: Product) -> bool:
    """Whether an operand of a step that makes `output` of a product has one number for each of its columns."""
    axes = one.shape
    while axes[:1] == (1,):
        axes = axes[1:]
    return product(axes) == maker.sizes[-1] and output.shape[len(output.shape) - len(axes) :] == axes


def with_scaled_weights(maker: Product, step: Elementwise, number: int) -> tuple[Product, Elementwise]:
    """Returns a product and the step that reads it as operand `number`, with their line in the weights where it can."""
    end, own = maker.epilogue, len(step.operands)
    columns = {
        place: one.array.reshape(-1).astype(np.float64)
        for place, one in enumerate(step.operands)
        if one.array is not None and one.element == "fp32" and is_one_a_column(one, step.output, maker)
    }
    if end.channel is not None:
        columns[own] = end.channel.reshape(-1).astype(np.float64)
    if not columns or not isinstance(maker.b, np.ndarray) or end.residual is not None:
        return maker, step
    x, elsewhere = operand(number), {number, own}
    ended = substituted(end.expression, {0: x, 2: operand(own)})
    whole = replaced(step.expression, x, ended)
    for part in parts_of(whole):
        read = operands_of(part)
        line = _line_of(part, number, columns) if number in read and read & columns.keys() else None
        rest = replaced(whole, part, operand(-1))
        if line is not None and not operands_of(rest) & elsewhere:
            scaled = _scaled(maker, *line)
            return (scaled, replace(step, expression=replaced(rest, operand(-1), x))) if scaled else (maker, step)
    return maker, step


def _line_of(part: Expression, number: int, columns: Mapping[int, Floats]) -> tuple[Floats, Floats] | None:
    """Returns (s, t) where a part is operand `number` * s + t; None where it is something else."""
    zero, one = np.zeros(()), np.ones(())
    match part:
        case ("operand", int(place)):
            return (one, zero) if place == number else (zero, columns[place]) if place in columns else None
        case ("const", float(value) | int(value)):
            return zero, np.array(value, np.float64)
        case ("neg", tuple(inner)):
            line = _line_of(inner, number, columns)
            return line and (-line[0], -line[1])
        case ("add" | "sub" | "mul" | "div", tuple(first), tuple(second)):
            lines = [_line_of(one, number, columns) for one in (first, second)]
            return None if lines[0] is None or lines[1] is None else _joined_lines(str(part[0]), lines[0], lines[1])
    return None


def _joined_lines(
    operator: str, first: tuple[Floats, Floats], second: tuple[Floats, Floats]
) -> tuple[Floats, Floats] | None:
    with np.errstate(all="ignore"):
        match operator:
            case "add":
                return first[0] + second[0], first[1] + second[1]
            case "sub":
                return first[0] - second[0], first[1] - second[1]
            case "mul" if not first[0].any():
                return second[0] * first[1], second[1] * first[1]
            case "mul" if not second[0].any():
                return first[0] * second[1], first[1] * second[1]
            case "div" if not second[0].any():
                return first[0] / second[1], first[1] / second[1]
    return None


def _scaled(maker: Product, scale: Floats, shift: Floats) -> Product | None:
    assert isinstance(maker.b, np.ndarray)
    with np.errstate(all="ignore"):
        weights = maker.b if (scale == 1).all() else (maker.b * scale).astype(np.float32)  # they may be gigabytes
        bias = (0.0 if maker.bias is None else maker.bias.reshape(-1).astype(np.float64)) * scale + shift
        bias = np.broadcast_to(bias, maker.b.shape[-1:]).astype(np.float32)
    if not np.isfinite(weights).all() or not np.isfinite(bias).all():
        return None
    return replace(maker, b=weights, bias=bias, epilogue=PLAIN)
