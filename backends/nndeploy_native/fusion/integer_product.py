# SPDX-License-Identifier: Apache-2.0
"""Joins elementwise steps with the integer product, or convolution, whose sums they read.

    cast(sums)                                     =>  the product, of floats
    sums * a value of one number or one a column   =>  the product with that factor
    product + one number a column                  =>  the product with a bias
    f(product, residual, one number a column)      =>  the product with an end
    saturated(round(f(product) / scale) + zero)    =>  the product of bytes, the scale among its factors, and in the
                                                       numbers of f where that is relu, or bounds

The scale of bytes is taken together with those of both operands, as ONNX Runtime does it where it joins them.
"""

from dataclasses import replace

import numpy as np

from nndeploy.values.size import product
from nndeploy_native.expressions import MAX_SIZE, Domain, Expression, const, operand, size_of, substituted
from nndeploy_native.steps.elementwise import Elementwise
from nndeploy_native.steps.integer_sums import IntegerSums
from nndeploy_native.steps.step import PLAIN, Epilogue

SUMS, RESIDUAL, CHANNEL, FACTOR = map(operand, range(4))
_ADDED: tuple[Expression, ...] = (("add", SUMS, CHANNEL), ("add", CHANNEL, SUMS))


def joined_integer_product(maker: IntegerSums, step: Elementwise, number: int) -> IntegerSums | None:
    """Returns a product that does what a step does with it as operand `number`; None where there is none."""
    element = step.output.element
    is_cast = step.expression == operand(0) and element == "fp32"
    if maker.output.element not in ("fp32", "int32") or not (step.domain is Domain.FLOAT32 or is_cast):
        return None
    read = _Read(maker, step, number)
    if not read.fits:
        return None
    expression, zero = substituted(step.expression, read.values), 0
    if element != "fp32":
        found = _quantised(expression, element)
        if found is None:
            return None
        expression, zero = found
    joined = replace(maker, output=step.output, output_zero=zero)
    if read.factor is not None:
        if expression not in (("mul", SUMS, FACTOR), ("mul", FACTOR, SUMS)):
            return None
        return replace(joined, factor=read.factor)
    if maker.bias is None and expression in _ADDED and maker.epilogue == PLAIN:
        return replace(joined, bias=read.channel)
    if element != "fp32" and maker.epilogue.channel is None and read.channel is None and read.residual is None:
        divided = _divided(joined, expression)
        if divided is not None:
            return divided
    if size_of(expression) > MAX_SIZE:
        return None
    return joined.with_epilogue(Epilogue(expression, read.residual, read.channel), step.output)


class _Read:
    """What a step reads beside the product, as operands of an end."""

    def __init__(self, maker: IntegerSums, step: Elementwise, number: int) -> None:
        end = maker.epilogue
        self.values: dict[int, Expression] = {number: end.expression}
        self.residual, self.channel, self.factor = end.residual, end.channel, None
        self.fits = True
        is_bare = maker.factor is None and maker.bias is None and end == PLAIN
        for place, one in enumerate(step.operands):
            if place == number:
                continue
            is_column = one.shape[-1:] == maker.sizes[-1:] and product(one.shape) == one.shape[-1]
            is_one = product(one.shape) == 1
            if one.element != "fp32":
                self.fits = False
            elif one.tensor is not None and is_bare and self.factor is None and (is_column or is_one):
                self.factor, self.values[place] = one.tensor, FACTOR
            elif one.tensor is not None and one.shape == step.output.shape and self.residual in (None, one.tensor):
                self.residual, self.values[place] = one.tensor, RESIDUAL
            elif one.array is not None and self.channel is None and is_column:
                self.channel, self.values[place] = np.ascontiguousarray(one.array).reshape(-1), CHANNEL
            else:
                self.fits = False


def _quantised(expression: Expression, element: str) -> tuple[Expression, int] | None:
    """Returns what is rounded, and the zero point that is added to it then."""
    match expression:
        case (str(name), ("round", tuple(rounded))) if name == f"saturated_{element}":
            return rounded, 0
        case (str(name), ("add", ("round", tuple(rounded)), ("const", zero))) if name == f"saturated_{element}":
            assert isinstance(zero, int | float)
            return rounded, int(zero)
    return None


def _divided(step: IntegerSums, expression: Expression) -> IntegerSums | None:
    """Returns a step whose factors and bias are divided by what its end divides by; None where that is another."""
    match expression:
        case ("div", tuple(value), ("const", int(scale) | float(scale))) if scale > 0:
            one = np.float32(scale)
            bounds = _bounds_divided(value, one)
            if bounds is None:
                return None
            factors = np.ones(1, np.float32) if step.factors is None else step.factors
            bias = None if step.bias is None else (step.bias / one).astype(np.float32)
            step = replace(step, factors=(factors / one).astype(np.float32), bias=bias)
            return step.with_epilogue(Epilogue(bounds), step.output)
    return None


def _bounds_divided(expression: Expression, by: np.float32) -> "Expression | None":
    """Returns relu, min and max of sums with their numbers divided; None of anything else."""
    match expression:
        case ("operand", 0):
            return expression
        case ("relu", tuple(value)):
            inner = _bounds_divided(value, by)
            return None if inner is None else ("relu", inner)
        case ("min" | "max" as name, tuple(value), ("const", int(bound) | float(bound))):
            inner = _bounds_divided(value, by)
            return None if inner is None else (name, inner, const(float(np.float32(bound) / by)))
    return None
