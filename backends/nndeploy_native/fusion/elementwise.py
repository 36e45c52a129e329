# SPDX-License-Identifier: Apache-2.0
"""Joins elementwise steps with what makes their input: with each other, and with the end of heavier steps.

    elementwise(elementwise(a), b)      =>  elementwise(a, b)                 one pass over memory
    elementwise(convolution(x), r, s)   =>  convolution(x) with an epilogue   r: a residual, s: a number a channel
    elementwise(instance_norm(x), r, s) =>  the same with an epilogue
    elementwise(product(a, b), r, s)    =>  product(a, b) with an epilogue    s: a number a column
    product(a, w) * s + t               =>  product(a, w * s) + t             w, s, t constant

So every way to write an activation (Add-Clip-Mul-Div, x * sigmoid(x), PRelu...) ends in an epilogue. The maker must be
read by that one step only and give its whole operand, where it is plain in any shape of the same elements. The joined
step stands where the second stood, so all its inputs are there. Elementwise steps are joined where both can be computed
in one domain, in which what the first one would have stored in a narrower type is made as narrow; ends of heavier steps
are float32. What makes bytes by a table or as a line is joined only where both together are a table: it costs little.
"""

from collections.abc import Set
from dataclasses import replace
from typing import TypeAlias, TypeVar

from nndeploy.backend_kit.kernels.joining import with_makers_joined
from nndeploy_native.expressions import (
    MAX_SIZE,
    Domain,
    Expression,
    operand,
    operands_of,
    operators_of,
    size_of,
    substituted,
)
from nndeploy_native.fusion.byte_lines import line_of
from nndeploy_native.fusion.byte_tables import byte_of
from nndeploy_native.fusion.integer_product import joined_integer_product
from nndeploy_native.fusion.scaled_weights import is_one_a_column, with_scaled_weights
from nndeploy_native.steps.convolution import Convolution
from nndeploy_native.steps.elementwise import MAX_OPERANDS, Elementwise, Operand
from nndeploy_native.steps.integer_sums import IntegerSums
from nndeploy_native.steps.matmul import Product
from nndeploy_native.steps.normalisation import InstanceNorm
from nndeploy_native.steps.step import Epilogue, NativeStep
from nndeploy_native.tensors import Shape, Tensor, fixed_shape

Heavy: TypeAlias = Convolution | InstanceNorm | Product
TensorOrNone = TypeVar("TensorOrNone", Tensor, Tensor | None)

RESIDUAL, CHANNEL = operand(1), operand(2)
_ADDED: tuple[Expression, ...] = (("add", operand(0), CHANNEL), ("add", CHANNEL, operand(0)))
LOGICAL = {"and", "or", "xor", "not", "equal", "where"}
"""Operators that give the same of truths in every domain."""
EXACT = {"fp32", "fp16", "bool", "uint8", "int8"}
"""The elements all of whose numbers float32 holds."""
WHOLE = {"int32", "int64", "bool", "uint8", "int8"}
HELD = {Domain.FLOAT32: {"fp32", "bool"}, Domain.INT64: WHOLE, Domain.FLOAT64: {"fp64", "bool"}}
"""What is between two steps that are joined in a domain, which rounds or cuts it no less than storing it would."""


def fuse_elementwise(steps: list[NativeStep], kept: Set[str]) -> list[NativeStep]:
    """Returns the steps with every possible join made."""
    return with_makers_joined(steps, kept, _operand_names, _joined)


def _operand_names(step: NativeStep) -> list[str | None]:
    if not isinstance(step, Elementwise):
        return []
    return [None if one.tensor is None else one.tensor.name for one in step.operands]


def _joined(maker: NativeStep, step: NativeStep, number: int) -> NativeStep | None:
    assert isinstance(step, Elementwise)
    one = step.operands[number]
    reads = [other.tensor.name for other in step.operands if other.tensor is not None]
    if one.shape != step.output.shape or reads.count(maker.output.name) != 1:
        return None
    if isinstance(maker, Convolution | InstanceNorm) and one.tensor is not None:
        return _joined_epilogue(maker, step, number) if _in_shape_of(maker, one.tensor) == maker.output else None
    if one.tensor is None or replace(one.tensor, shape=maker.output.shape) != maker.output:
        return None
    if isinstance(maker, Product):
        return _joined_epilogue(*with_scaled_weights(maker, step, number), number)
    if isinstance(maker, Elementwise):
        shapes = sorted((maker.output.shape, one.tensor.shape), key=len)
        for shape in dict.fromkeys(shapes):  # fewer axes first: what follows knows them better
            seen, read = _in_shape(maker, shape), _in_shape(step, shape)
            if seen is not None and read is not None:
                return _joined_elementwise(seen, read, number)
        return None
    if isinstance(maker, IntegerSums) and one.tensor == maker.output:
        return joined_integer_product(maker, step, number)
    return None


def _in_shape(step: Elementwise, shape: Shape) -> Elementwise | None:
    """Returns a step in another shape of what it makes; None where an operand cannot be seen in it.

    That is any shape where all operands are whole, and one that has axes of one element elsewhere where some are not.
    """
    if shape == step.output.shape:
        return step
    if step.output.is_blocked:
        return None
    operands = [_operand_in_shape(one, step.output.shape, shape) for one in step.operands]
    known = tuple(one for one in operands if one is not None)
    return replace(step, output=replace(step.output, shape=shape), operands=known) if None not in operands else None


def _operand_in_shape(one: Operand, before: Shape, after: Shape) -> Operand | None:
    """Returns an operand of what has shape `before` as one of what has shape `after`."""
    if one.tensor is not None and one.shape == before:
        return Operand(after, replace(one.tensor, shape=after))
    if [size for size in before if size != 1] != [size for size in after if size != 1]:
        return None
    own = (*(1,) * (len(before) - len(one.shape)), *one.shape)
    kept = iter([size for size, whole in zip(own, before, strict=True) if whole != 1])
    shape = tuple(1 if size == 1 else next(kept) for size in after)
    if one.tensor is not None:
        return Operand(shape, replace(one.tensor, shape=shape))
    return Operand(shape, None, None if one.array is None else one.array.reshape(fixed_shape(shape)))


def _joined_elementwise(maker: Elementwise, step: Elementwise, number: int) -> Elementwise | None:
    domain, passed = _common_domain(maker, step)
    if domain is None:
        return None
    operands = list(maker.operands)
    values: dict[int, Expression] = {number: passed}
    for place, one in enumerate(step.operands):
        if place != number:
            values[place] = operand(_place(one, operands))
    expression = substituted(step.expression, values)
    if len(operands) > MAX_OPERANDS or size_of(expression) > MAX_SIZE:
        return None
    joined = Elementwise(step.output, tuple(operands), expression, domain)
    is_cheap = byte_of(maker) is not None or line_of(maker) is not None
    return joined if not is_cheap or byte_of(joined) is not None else None


def _common_domain(maker: Elementwise, step: Elementwise) -> tuple[Domain | None, Expression]:
    """Returns a domain in which both can be computed, and in it what the second one reads of the first."""
    element, shared = maker.output.element, _domains(maker) & _domains(step)
    for domain in (maker.domain, step.domain):
        if domain not in shared:
            continue
        is_saturated = domain is Domain.FLOAT32 and maker.expression[0] == f"saturated_{element}"
        if is_saturated or element in HELD[domain]:
            is_narrow = domain is Domain.INT64 and element in ("int32", "int8", "uint8")
            return domain, (element, maker.expression) if is_narrow else maker.expression
    return None, maker.expression


def _domains(step: Elementwise) -> set[Domain]:
    """Returns the domains in which a step gives the same."""
    elements = [one.element for one in step.operands]
    if {step.output.element, *elements} == {"bool"} and LOGICAL.issuperset(operators_of(step.expression)):
        return set(Domain)
    if step.expression != operand(0):
        return {step.domain}
    element, result = elements[0], step.output.element
    fits = {
        Domain.FLOAT32: element in EXACT or result == "fp32" or (result == "fp16" and element != "fp64"),
        Domain.INT64: element in WHOLE or result == "int64",
        Domain.FLOAT64: element != "int64" or result == "fp64",
    }
    return {domain for domain, is_exact in fits.items() if is_exact}


def _place(one: Operand, operands: list[Operand]) -> int:
    """Returns where an operand stands in a list, to whose end it is added where it is not there."""
    for place, known in enumerate(operands):
        if known.is_same(one):
            return place
    operands.append(one)
    return len(operands) - 1


def _joined_epilogue(maker: Heavy, step: Elementwise, number: int) -> NativeStep | None:
    if {step.output.element, *(one.element for one in step.operands)} != {"fp32"}:
        return None
    epilogue = maker.epilogue
    values: dict[int, Expression] = {number: epilogue.expression}
    residual, channel = epilogue.residual, epilogue.channel
    read = operands_of(step.expression)
    for place, one in enumerate(step.operands):
        if place == number or place not in read:
            continue
        if _is_residual(one, step.output, maker) and residual in (None, _in_shape_of(maker, one.tensor)):
            residual, values[place] = _in_shape_of(maker, one.tensor), RESIDUAL
        elif one.array is not None and channel is None and _is_one_a_channel(one, step.output, maker):
            channel, values[place] = one.array.reshape(-1), CHANNEL
        else:
            return None
    expression = substituted(step.expression, values)
    if size_of(expression) > MAX_SIZE:
        return None
    if isinstance(maker, Product) and maker.bias is None and expression in _ADDED:
        return replace(maker, bias=channel, output=step.output)
    return maker.with_epilogue(Epilogue(expression, residual, channel), _in_shape_of(maker, step.output))


def _in_shape_of(maker: Heavy, tensor: TensorOrNone) -> TensorOrNone:
    """Returns an image in blocks as a convolution sees it: the columns of one may be the images of another."""
    if isinstance(maker, Product) or tensor is None or tensor.shape[:2] != maker.output.shape[:2]:
        return tensor
    return replace(tensor, shape=maker.output.shape)


def _is_residual(one: Operand, output: Tensor, maker: Heavy) -> bool:
    """Whether an operand is as large as the output; the depthwise kernel adds none."""
    adds = not (isinstance(maker, Convolution) and maker.is_depthwise)
    return adds and one.tensor is not None and one.shape == output.shape


def _is_one_a_channel(one: Operand, output: Tensor, maker: Heavy) -> bool:
    if isinstance(maker, Product):
        return is_one_a_column(one, output, maker)
    return one.shape == (1, maker.output.shape[1], 1, 1)
