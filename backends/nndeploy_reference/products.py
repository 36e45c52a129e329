# SPDX-License-Identifier: Apache-2.0
"""Products of matrices, of integers too, and linear quantisation.

Quotients of a quantisation are computed in the type of the scale; what is beyond the type is its least or greatest
number, infinities too.

Source: ONNX operators Gemm (1-13), MatMulInteger (10), QuantizeLinear (10-28).
"""

from typing import Any

import ml_dtypes
import numpy as np
from onnx import helper

from nndeploy_reference.elementwise import aligned
from nndeploy_reference.operator_table import Array, Node, front_axis, in_float32, operator

_TYPES: Any = ml_dtypes  # whose limits have no types


@operator("Gemm")
@in_float32
def _gemm(node: Node, a: Array, b: Array, c: Array = None) -> Array:
    """Whole numbers stay exact where both factors are 1."""
    found = (a.T if node.transA else a) @ (b.T if node.transB else b)
    found = found if node.alpha == 1 else node.alpha * found
    if c is not None:
        c = aligned(node, found, c) if node.version < 7 else c
        found = found + (c if node.beta == 1 else node.beta * c)
    return found.astype(a.dtype)


@operator("MatMulInteger")
def _matmul_integer(_: Node, a: Array, b: Array, a_zero: Array = None, b_zero: Array = None) -> Array:
    """In float64, whose sums of products of bytes are exact and fast."""
    left, right = a.astype(np.float64), b.astype(np.float64)
    if a_zero is not None:
        left = left - (a_zero.reshape(-1, 1) if a_zero.ndim == 1 and a.ndim > 1 else a_zero)
    return (left @ (right if b_zero is None else right - b_zero)).astype(np.int64).astype(np.int32)


@operator("QuantizeLinear")
def _quantise(node: Node, x: Array, scale: Array, zero: Array = None) -> Array:
    wanted = np.dtype(np.uint8) if not node.output_dtype else helper.tensor_dtype_to_np_dtype(node.output_dtype)
    wanted = wanted if zero is None else zero.dtype
    precision = helper.tensor_dtype_to_np_dtype(node.precision) if node.precision else scale.dtype
    quotient = (x.astype(precision) / _spread(node, scale, x).astype(precision)).astype(np.float64)
    shift = 0 if zero is None else _spread(node, zero, x).astype(np.float64)
    if wanted.name.startswith("float"):
        return _as_small_float(quotient + shift, wanted, node)
    info = _TYPES.iinfo(wanted)
    return np.clip(np.rint(quotient) + shift, int(info.min), int(info.max)).astype(np.int32).astype(wanted)


def _as_small_float(x: Array, wanted: Any, node: Node) -> Array:
    if node.saturate == 0:
        return x.astype(wanted)
    most = float(_TYPES.finfo(wanted).max)
    is_lost = np.isinf(x) & (wanted.name.endswith("fnuz") & (node.version < 24))  # the older table of Cast
    return np.where(is_lost, np.nan, np.clip(x, -most, most)).astype(wanted)


def _spread(node: Node, values: Array, x: Array) -> Array:
    """Returns scales or zero points of a tensor, of places along an axis, or of blocks, as x can be divided by them."""
    if values.size == 1 and not node.block_size:
        return values.reshape(())
    axis = front_axis(1 if node.axis is None else node.axis, x.ndim)
    if node.block_size:
        return np.repeat(values, node.block_size, axis)[tuple(map(slice, x.shape))]
    return values.reshape([-1 if i == axis else 1 for i in range(x.ndim)])
