# SPDX-License-Identifier: Apache-2.0
"""Quantised values: linear quantisation by tensor, axis and block, and products of integers."""

from typing import Any

import ml_dtypes
import numpy as np

from oracle.casts import cast, dtype_of
from oracle.linear import matmul
from oracle.reductions import axis_of
from oracle.registry import NARROW_INTEGERS, Call, InvalidError, UnspecifiedError, is_float, operator


def _spread(values: Any, x: Any, call: Call) -> Any:
    """Returns scales or zero points in the shape of x: one for all, one for each place of an axis, or one a block."""
    if values.size == 1 and values.ndim <= 1 and not call.block_size:
        return values.reshape(())
    axis = axis_of(call.axis, x.ndim)
    if call.block_size:
        repeated = np.repeat(values, call.block_size, axis)
        return np.take(repeated, range(x.shape[axis]), axis)
    if values.shape != (x.shape[axis],):
        raise InvalidError(f"scales {values.shape} along axis {axis} of {x.shape}")
    return values.reshape([-1 if i == axis else 1 for i in range(x.ndim)])


def _bounds(dtype: Any) -> tuple[int, int]:
    info: Any = ml_dtypes.iinfo(dtype) if np.dtype(dtype) in NARROW_INTEGERS else np.iinfo(dtype)
    return int(info.min), int(info.max)


@operator("QuantizeLinear")
def _quantise(call: Call, x: Any, scale: Any, zero: Any = None) -> Any:
    """The quotient is computed in the type of the scale, or in `precision`."""
    dtype = np.dtype(np.uint8 if zero is None else call.dtypes[2])
    if zero is None and call.output_dtype:
        dtype = np.dtype(dtype_of(call.output_dtype))
    precision = dtype_of(call.precision) if call.precision else call.dtypes[1]
    scale = _spread(scale, x, call)
    quotient = (x.astype(precision) / scale.astype(precision)).astype(np.float64)
    shift = 0.0 if zero is None else _spread(zero, x, call).astype(np.float64)
    if is_float(dtype):
        return cast(quotient + shift, dtype, call.saturate != 0, version=call.version)
    low, high = _bounds(dtype)
    return np.clip(np.rint(quotient) + shift, low, high).astype(np.int64).astype(dtype)


@operator("DequantizeLinear")
def _dequantise(call: Call, x: Any, scale: Any, zero: Any = None) -> Any:
    dtype = dtype_of(call.output_dtype) if call.output_dtype else call.dtypes[1]
    shift = 0 if zero is None else _spread(zero, x, call).astype(np.float64)
    found = (x.astype(np.float64) - shift) * _spread(scale, x, call)
    return found.astype(dtype)


@operator("DynamicQuantizeLinear")
def _quantise_dynamically(_: Call, x: Any) -> Any:
    """In float32, as its text has it, so that ties fall as they do there."""
    x = x.astype(np.float32)
    low, high = np.minimum(x.min(initial=0), 0), np.maximum(x.max(initial=0), 0)
    scale = np.float32((high - low) / np.float32(255))
    if not np.isfinite(x).all() or scale == 0:
        raise UnspecifiedError("a scale of 0, or of what is not finite")
    zero = np.clip(np.rint(np.float32(0) - low / scale), 0, 255)
    y = np.clip(np.rint(x / scale) + zero, 0, 255)
    return y.astype(np.uint8), np.asarray(scale), np.asarray(zero).astype(np.uint8)


def _by_rows(values: Any, rank: int, is_left: bool) -> Any:
    """Returns scales or zero points of a matrix: one for all, one a row (left) or a column (right)."""
    if values.size == 1:
        return values.reshape(())
    return values.reshape(-1, 1) if values.ndim == 1 and is_left and rank > 1 else values


@operator("MatMulInteger")
def _matmul_integer(_: Call, a: Any, b: Any, a_zero: Any = None, b_zero: Any = None) -> Any:
    left = a.astype(np.int64) - (0 if a_zero is None else _by_rows(a_zero.astype(np.int64), a.ndim, True))
    right = b.astype(np.int64) - (0 if b_zero is None else _by_rows(b_zero.astype(np.int64), b.ndim, False))
    return matmul(left, right)


@operator("QLinearMatMul")
def _qlinear_matmul(call: Call, a: Any, a_s: Any, a_z: Any, b: Any, b_s: Any, b_z: Any, y_s: Any, y_z: Any) -> Any:
    left = (a.astype(np.float64) - _by_rows(a_z.astype(np.float64), a.ndim, True)) * _by_rows(a_s, a.ndim, True)
    right = (b.astype(np.float64) - _by_rows(b_z.astype(np.float64), b.ndim, False)) * _by_rows(b_s, b.ndim, False)
    found = matmul(left, right) / _by_rows(y_s, a.ndim, True)
    low, high = _bounds(call.dtypes[7])
    return np.clip(np.rint(found) + _by_rows(y_z.astype(np.float64), a.ndim, True), low, high)
