# SPDX-License-Identifier: Apache-2.0
"""Rules for products of matrices: what was only moved is read where it lies. Source: ONNX Gemm, MatMul."""

from dataclasses import replace

import numpy as np
import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import float_attribute, int_attribute, operand
from nndeploy.values.size import is_fixed
from nndeploy_native.expressions import Expression, const
from nndeploy_native.lowering import double_rules
from nndeploy_native.lowering.bits_rules import narrow_weights
from nndeploy_native.lowering.context import Context
from nndeploy_native.lowering.elementwise_rules import emit
from nndeploy_native.lowering.integer_rules import dequantised_product
from nndeploy_native.lowering.matrices import factor, matrix, product
from nndeploy_native.steps.elementwise import Operand
from nndeploy_native.steps.matmul import BitWeights
from nndeploy_native.steps.movement import View
from nndeploy_native.tensors import Layout, Shape


def gemm(node: ir.Node, context: Context) -> None:
    """Lowers Gemm: a product, whose end multiplies by alpha and adds beta * C."""
    if double_rules.is_of_doubles(node, context):
        double_rules.gemm(node, context)
        return
    integers = dequantised_product(node, context)
    if integers is not None:
        context.emit(integers)
        return
    output, alpha, beta = node.outputs[0], float_attribute(node, "alpha", 1.0), float_attribute(node, "beta", 1.0)
    shape, turns_b = context.shape_of(output), int_attribute(node, "transB", 0) != 0
    bits = narrow_weights(node.inputs[1], is_turned=turns_b)
    b = bits or factor(node.inputs[1], context)
    a = matrix(node.inputs[0], context)
    if len(a.sizes) != 2 or len(b.sizes if isinstance(b, View) else b.shape) != 2:
        raise BuildRefusedError("a Gemm of something else than two matrices")
    if int_attribute(node, "transA", 0):
        a = a.transposed((1, 0))
    if turns_b and not isinstance(b, BitWeights):
        b = b.transposed((1, 0)) if isinstance(b, View) else b.T
    if isinstance(b, np.ndarray) and alpha != 1.0:
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
    if double_rules.is_of_doubles(node, context):
        double_rules.matmul(node, context)
        return
    integers = dequantised_product(node, context)
    if integers is not None:
        context.emit(integers)
        return
    shape = context.shape_of(node.outputs[0])
    b = narrow_weights(node.inputs[1]) or factor(node.inputs[1], context)
    a = matrix(node.inputs[0], context, shares_b=not isinstance(b, View) and len(b.shape) <= 2)
    if isinstance(b, np.ndarray):
        b = b.reshape(-1, 1) if b.ndim == 1 else b
    elif isinstance(b, View) and len(b.sizes) == 1:
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


def _is_broadcast(sizes: Shape, to: Shape) -> bool:
    """Whether nothing says that sizes cannot be broadcast."""
    pairs = zip(reversed(sizes), reversed(to), strict=False)
    return len(sizes) <= len(to) and all(one in (1, whole) or not is_fixed((one, whole)) for one, whole in pairs)


def _times(x: Expression, factor: float) -> Expression:
    return x if factor == 1.0 else ("mul", x, const(factor))
