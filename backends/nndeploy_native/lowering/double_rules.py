# SPDX-License-Identifier: Apache-2.0
"""Rules for what is float64 and not elementwise: products and sums of powers, in steps of their own.

What scikit-learn writes for inputs of float64 ends in these. Source: ONNX MatMul, Gemm, Softmax, LogSoftmax, ReduceL2,
ReduceLogSum, ReduceLogSumExp.
"""

from dataclasses import replace

import numpy as np
import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import float_attribute, int_attribute, operand
from nndeploy.values.size import Dim, may_be_equal, product
from nndeploy_native.expressions import Domain, Expression, const
from nndeploy_native.expressions import operand as nth
from nndeploy_native.lowering.context import Context
from nndeploy_native.lowering.elementwise_rules import emit
from nndeploy_native.steps.elementwise import Elementwise, Operand
from nndeploy_native.steps.matmul import DoubleProduct
from nndeploy_native.steps.reduction import AlongAxis
from nndeploy_native.tensors import Layout, Tensor

Axis = tuple[Dim, Dim, Dim]
"""(outer, size, inner)"""


def is_of_doubles(node: ir.Node, context: Context) -> bool:
    """Whether an operator's first operand is float64."""
    return context.element_of(operand(node, 0)) == "fp64"


def matmul(node: ir.Node, context: Context) -> None:
    """Lowers MatMul by one matrix or vector."""
    a, b = (context.plain(operand(node, index)) for index in (0, 1))
    output = context.output(node.outputs[0], Layout.PLAIN)
    b = replace(b, shape=(*b.shape, 1)) if len(b.shape) == 1 else b
    if len(b.shape) != 2 or len(a.shape) < 1:
        raise BuildRefusedError("a product of float64 by something else than a matrix")
    _emit_product(context, output, a, b)


def gemm(node: ir.Node, context: Context) -> None:
    """Lowers Gemm: the product, then alpha times it and beta times what is added."""
    turns = [int_attribute(node, name, 0) for name in ("transA", "transB")]
    a, b = (_matrix(operand(node, index), context, is_turned=turn != 0) for index, turn in enumerate(turns))
    shape = context.sizes_of(node.outputs[0])
    sums = context.temporary("product", shape, Layout.PLAIN, "fp64")
    _emit_product(context, sums, a, b)
    alpha, beta = (float_attribute(node, name, 1.0) for name in ("alpha", "beta"))
    added = operand(node, 2)
    operands: list[ir.Value | Operand] = [Operand(shape, sums), *([] if added is None else [added])]

    def end(x: Expression, *others: Expression) -> Expression:
        scaled: Expression = ("mul", x, const(alpha))
        return ("add", scaled, ("mul", others[0], const(beta))) if others else scaled

    emit(node, context, operands, end)


def _matrix(value: ir.Value | None, context: Context, *, is_turned: bool) -> Tensor:
    view, array = context.view(value), context.constant(value)
    if len(view.sizes) != 2:
        raise BuildRefusedError("a Gemm of something else than two matrices")
    if array is not None and is_turned:
        return context.constant_of("turned", np.ascontiguousarray(array.T))
    return context.stored(view.transposed((1, 0)) if is_turned else view, "turned")


def _emit_product(context: Context, output: Tensor, a: Tensor, b: Tensor) -> None:
    if b.element != "fp64" or not may_be_equal(a.shape[-1], b.shape[0]):
        raise BuildRefusedError(f"a product of rows of {a.shape} by columns of {b.element} {b.shape}")
    context.emit(DoubleProduct(output, a, b, product(a.shape[:-1]), b.shape[0], b.shape[1]))


def softmax(context: Context, kind: str, x: Tensor, output: Tensor, axis: Axis) -> None:
    """Emits softmax, exp(x - most) over its sum, or log_softmax, x - most less the logarithm of that."""
    apart, powers, sums = _powers(context, x, axis)
    made = replace(output, shape=axis)
    if kind == "softmax":
        operands = (Operand(axis, powers), Operand(sums.shape, sums))
        context.emit(Elementwise(made, operands, ("div", nth(0), nth(1)), Domain.FLOAT64))
        return
    expression: Expression = ("sub", ("sub", nth(0), nth(1)), ("log", nth(2)))
    context.emit(Elementwise(made, (*apart, Operand(sums.shape, sums)), expression, Domain.FLOAT64))


def log_sum_exp(context: Context, x: Tensor, output: Tensor, axis: Axis) -> None:
    """Emits the logarithm of the sum of powers of e."""
    (_, most), _, sums = _powers(context, x, axis)
    made = replace(output, shape=sums.shape)
    operands = (most, Operand(sums.shape, sums))
    context.emit(Elementwise(made, operands, ("add", nth(0), ("log", nth(1))), Domain.FLOAT64))


def _powers(context: Context, x: Tensor, axis: Axis) -> tuple[tuple[Operand, Operand], Tensor, Tensor]:
    """Returns x and the largest of it where that is finite, else zero; exp of their difference; the sums of these."""
    outer, _, inner = axis
    largest, most, sums = (
        context.temporary(name, (outer, 1, inner), Layout.PLAIN, "fp64") for name in ("largest", "most", "sums")
    )
    powers = context.temporary("powers", axis, Layout.PLAIN, "fp64")
    context.emit(AlongAxis(largest, x, "reduce_max", *axis))
    is_finite: Expression = ("less", ("abs", nth(0)), const(float("inf")))
    shift: Expression = ("where", is_finite, nth(0), const(0.0))
    context.emit(Elementwise(most, (Operand(most.shape, largest),), shift, Domain.FLOAT64))
    apart = Operand(axis, replace(x, shape=axis)), Operand(most.shape, most)
    context.emit(Elementwise(powers, apart, ("exp", ("sub", nth(0), nth(1))), Domain.FLOAT64))
    context.emit(AlongAxis(sums, powers, "reduce_sum", *axis))
    return apart, powers, sums
