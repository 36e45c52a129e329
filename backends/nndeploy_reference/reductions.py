# SPDX-License-Identifier: Apache-2.0
"""Operators along axes that ONNX's evaluator gets wrong: of nothing, of large numbers, and in old forms.

    ReduceMean        of nothing is NaN, of integers 0
    ReduceLogSumExp   of a scalar; and what is all -inf gives -inf
    LogSoftmax        does not lose what its exponential cannot hold
    Softmax, ...      before opset 13: all axes from `axis` on are one

Source: ONNX operators ReduceMean, ReduceLogSumExp (1-28), Softmax, LogSoftmax, Hardmax (1-13).
"""

from math import prod

import numpy as np

from nndeploy_reference.operator_table import Array, Node, front_axis, in_float32, operator


def _axes(node: Node, x: Array, axes: Array) -> tuple[int, ...]:
    chosen = (node.axes or []) if axes is None else axes.tolist()
    if not chosen and not node.noop_with_empty_axes:
        return tuple(range(x.ndim))
    return tuple(front_axis(int(axis), x.ndim) for axis in chosen)


@operator("ReduceMean")
@in_float32
def _mean(node: Node, x: Array, axes: Array = None) -> Array:
    chosen = _axes(node, x, axes)
    count = prod(x.shape[axis] for axis in chosen)
    total = np.asarray(x.sum(chosen, keepdims=bool(node.keepdims), dtype=np.float64 if x.dtype.kind == "f" else None))
    if x.dtype.kind == "f":
        return (total / np.float64(count)).astype(x.dtype)
    return np.trunc(total / max(count, 1)).astype(x.dtype)


@operator("ReduceLogSumExp")
@in_float32
def _log_sum_exp(node: Node, x: Array, axes: Array = None) -> Array:
    chosen, wide = _axes(node, x, axes), x.astype(np.float64)
    most = wide.max(chosen, keepdims=True, initial=-np.inf)
    most = np.where(np.isfinite(most), most, 0)
    found = np.log(np.exp(wide - most).sum(chosen, keepdims=True)) + most
    return np.asarray(found if node.keepdims else found.squeeze(chosen)).astype(x.dtype)


@operator("Softmax", "LogSoftmax", "Hardmax", before=13)
@in_float32
def _soft_rows(node: Node, x: Array) -> Array:
    axis = front_axis(node.axis, x.ndim)
    rows = x.reshape(prod(x.shape[:axis]), prod(x.shape[axis:]))
    if rows.size == 0:
        return x
    if node.op_type == "Hardmax":
        found = (np.arange(rows.shape[1]) == rows.argmax(1)[:, None]).astype(x.dtype)
    else:
        found = _soft(node.op_type, rows, 1)
    return found.reshape(x.shape)


@operator("LogSoftmax", since=13)
@in_float32
def _log_softmax(node: Node, x: Array) -> Array:
    return _soft(node.op_type, x, node.axis) if x.size else x


def _soft(kind: str, x: Array, axis: int) -> Array:
    shifted = x - x.max(axis, keepdims=True)
    total = np.exp(shifted).sum(axis, keepdims=True)
    return shifted - np.log(total) if kind == "LogSoftmax" else np.exp(shifted) / total
