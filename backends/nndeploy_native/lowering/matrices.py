# SPDX-License-Identifier: Apache-2.0
"""The operands of products: what was only moved is read where it lies, by strides."""

from dataclasses import replace

import numpy as np
import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.values.size import bounds, is_fixed, typical
from nndeploy_native.lowering.context import Context
from nndeploy_native.plan import MAX_RANK
from nndeploy_native.steps.matmul import BitWeights, Product
from nndeploy_native.steps.movement import View
from nndeploy_native.tensors import Array, Tensor

FEW_ROWS = 8
"""Rows that lie apart in parts of fewer rows than these are copied first: weights are read once for each part."""


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


def product(output: Tensor, a: View, b: View | Array | BitWeights) -> Product:
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


def emit_linear(context: Context, x: Tensor, output: Tensor, coefficients: Array, intercepts: Array | None) -> None:
    """Emits x by the coefficients (columns, features) turned, and intercepts for each column."""
    if coefficients.shape[1] != x.shape[1]:
        raise BuildRefusedError(f"rows of {x.shape[1]} for {coefficients.shape[1]} coefficients")
    step = product(output, View.of(x), np.ascontiguousarray(coefficients).T)
    context.emit(step if intercepts is None else replace(step, bias=intercepts))
