# SPDX-License-Identifier: Apache-2.0
"""Rules for products of matrices: what was only moved is read where it lies. Source: ONNX Gemm, MatMul."""

from dataclasses import replace

import numpy as np
import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import float_attribute, int_attribute, operand
from nndeploy.values.size import bounds, is_fixed, typical
from nndeploy_native.expressions import Expression, const
from nndeploy_native.lowering.context import Context
from nndeploy_native.lowering.elementwise_rules import emit
from nndeploy_native.lowering.integer_rules import dequantised_product
from nndeploy_native.plan import MAX_RANK
from nndeploy_native.steps.elementwise import Operand
from nndeploy_native.steps.matmul import Product
from nndeploy_native.steps.movement import View
from nndeploy_native.tensors import Array, Layout, Shape, Tensor

FEW_ROWS = 8
"""Rows that lie apart in parts of fewer rows than these are copied first: weights are read once for each part."""


def gemm(node: ir.Node, context: Context) -> None:
    """Lowers Gemm: a product, whose end multiplies by alpha and adds beta * C."""
    integers = dequantised_product(node, context)
    if integers is not None:
        context.emit(integers)
        return
    output, alpha, beta = node.outputs[0], float_attribute(node, "alpha", 1.0), float_attribute(node, "beta", 1.0)
    shape, b = context.shape_of(output), factor(node.inputs[1], context)
    a = matrix(node.inputs[0], context)
    if len(a.sizes) != 2 or len(b.sizes if isinstance(b, View) else b.shape) != 2:
        raise BuildRefusedError("a Gemm of something else than two matrices")
    if int_attribute(node, "transA", 0):
        a = a.transposed((1, 0))
    if int_attribute(node, "transB", 0):
        b = b.transposed((1, 0)) if isinstance(b, View) else b.T
    if not isinstance(b, View) and alpha != 1.0:
        b, alpha = (b.astype(np.float64) * alpha).astype(np.float32), 1.0
    added = operand(node, 2)
    if added is None and alpha == 1.0:
        context.emit(product(context.output(output, Layout.PLAIN), a, b))
        return
    sums = context.temporary("product", shape, Layout.PLAIN)
    context.emit(product(sums, a, b))
    operands: list[ir.Value | Operand] = [Operand(shape, sums)]
    numbers = context.constant(added)
    if numbers is not None and numbers.size > 1:  # beta times them is a bias where it is one number a column
        scaled = (context.floats(added, "a bias").astype(np.float64) * beta).astype(np.float32)
        operands.append(Operand(scaled.shape, None, scaled))
        beta = 1.0
    elif added is not None:
        operands.append(added)

    def end(x: Expression, *others: Expression) -> Expression:
        sums = _times(x, alpha)
        return ("add", sums, _times(others[0], beta)) if others else sums

    emit(node, context, operands, end)


def matmul(node: ir.Node, context: Context) -> None:
    """Lowers MatMul: vectors are matrices of one row or column, batches are broadcast."""
    integers = dequantised_product(node, context)
    if integers is not None:
        context.emit(integers)
        return
    shape, b = context.shape_of(node.outputs[0]), factor(node.inputs[1], context)
    a = matrix(node.inputs[0], context, shares_b=not isinstance(b, View) and b.ndim <= 2)
    if not isinstance(b, View):
        b = b.reshape(-1, 1) if b.ndim == 1 else b
    elif len(b.sizes) == 1:
        b = replace(b, sizes=(*b.sizes, 1), strides=(*b.strides, 1))
    if len(a.sizes) == 1:
        a = replace(a, sizes=(1, *a.sizes), strides=(1, *a.strides))
    of_a, of_b = a.sizes[:-2], (b.sizes if isinstance(b, View) else b.shape)[:-2]
    batch = shape[: max(len(of_a), len(of_b))]
    if not all(_is_broadcast(sizes, batch) for sizes in (of_a, of_b)):
        raise BuildRefusedError(f"a MatMul of batches {of_a} and {of_b} for {batch}")
    a = a.expanded((*batch, *a.sizes[-2:]))
    b = b.expanded((*batch, *b.sizes[-2:])) if isinstance(b, View) else b
    context.emit(product(context.output(node.outputs[0], Layout.PLAIN), a, b))


def matrix(value: ir.Value | None, context: Context, *, shares_b: bool = False) -> View:
    """Returns a value as a view that a product reads where it lies; few rows at a time that share a matrix, copied."""
    context.shape_of(value)
    view = context.view(value)
    axes = [pair for pair in zip(view.sizes[:-1], view.strides[:-1], strict=True) if pair[0] != 1]
    has_few_rows = shares_b and not view.is_in_order and len(axes) > 1 and typical(axes[-1][0]) < FEW_ROWS
    return view if is_readable(view) and not has_few_rows else View.of(context.plain(value))


def is_readable(view: View) -> bool:
    """Whether a product reads a view: it goes on along rows and columns, and nowhere back."""
    goes_on = all(size == 1 or bounds(by)[0] > 0 for size, by in zip(view.sizes[-2:], view.strides[-2:], strict=True))
    return goes_on and all(bounds(by)[0] >= 0 for by in view.strides)


def factor(value: ir.Value | None, context: Context) -> View | Array:
    """Returns the second operand of a product: the numbers of a constant, else a view."""
    array = context.constant(value)
    return matrix(value, context) if array is None else context.floats(value, "weights")


def product(output: Tensor, a: View, b: View | Array) -> Product:
    """Returns the product of views with equal batches, or by weights.

    Raises:
        BuildRefusedError: rows and columns are of different lengths, or there are too many axes.
    """
    if len(a.sizes) > MAX_RANK:
        raise BuildRefusedError(f"a product over more than {MAX_RANK} axes")
    inner, other = a.sizes[-1], b.sizes[-2] if isinstance(b, View) else b.shape[-2]
    if inner != other and is_fixed((inner, other)):
        raise BuildRefusedError(f"rows of {inner} by columns of {other}")
    return Product(output, a, b)


def _is_broadcast(sizes: Shape, to: Shape) -> bool:
    """Whether nothing says that sizes cannot be broadcast."""
    pairs = zip(reversed(sizes), reversed(to), strict=False)
    return len(sizes) <= len(to) and all(one in (1, whole) or not is_fixed((one, whole)) for one, whole in pairs)


def _times(x: Expression, factor: float) -> Expression:
    return x if factor == 1.0 else ("mul", x, const(factor))
