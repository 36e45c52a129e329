# SPDX-License-Identifier: Apache-2.0
"""Operators along axes that ONNX's evaluator gets wrong: of nothing, of large numbers, and in old forms.

    ReduceMean        of nothing is NaN, of integers 0
    ReduceLogSumExp   of a scalar; and what is all -inf gives -inf
    LogSoftmax        does not lose what its exponential cannot hold
    Softmax, ...      before opset 13: all axes from `axis` on are one; of nothing
    TopK              of equals takes the first, holds NaN for the greatest; all types

Source: ONNX operators ReduceMean, ReduceLogSumExp (1-28), Softmax, LogSoftmax, Hardmax (1-13), TopK (1-24).
"""

from math import prod

import numpy as np

from nndeploy_reference.operator_table import Array, Node, front_axis, in_float32, is_narrow, operator


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
    keep = {"axis": chosen, "keepdims": bool(node.keepdims)}
    if x.dtype.kind == "f":
        return np.asarray(x.sum(dtype=np.float64, **keep) / np.float64(count)).astype(x.dtype)
    count, wide = max(count, 1), x.astype(np.uint64 if x.dtype.kind == "u" else np.int64)
    rest = (wide % count).sum(**keep)  # divided first: the sum may not fit
    found = (wide // count).sum(**keep) + rest // count
    return np.asarray(found + ((found < 0) & (rest % count > 0))).astype(x.dtype)


@operator("ReduceLogSumExp")
@in_float32
def _log_sum_exp(node: Node, x: Array, axes: Array = None) -> Array:
    chosen, wide = _axes(node, x, axes), x.astype(np.float64)
    most = wide.max(chosen, keepdims=True, initial=-np.inf)
    most = np.where(np.isfinite(most), most, 0)
    found = np.log(np.exp(wide - most).sum(chosen, keepdims=True)) + most
    return np.asarray(found if node.keepdims else found.squeeze(chosen)).astype(x.dtype)


@operator("Softmax", "LogSoftmax", "Hardmax")
@in_float32
def _soft(node: Node, x: Array) -> Array:
    axis = front_axis(node.axis, x.ndim)
    if x.size == 0:
        return x
    if node.version < 13:
        return _along(node.op_type, x.reshape(prod(x.shape[:axis]), prod(x.shape[axis:])), 1).reshape(x.shape)
    return _along(node.op_type, x, axis)


def _along(kind: str, x: Array, axis: int) -> Array:
    if kind == "Hardmax":
        places = np.arange(x.shape[axis]).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
        return (places == np.expand_dims(x.argmax(axis), axis)).astype(x.dtype)
    shifted = x - x.max(axis, keepdims=True)
    total = np.exp(shifted).sum(axis, keepdims=True)
    return shifted - np.log(total) if kind == "LogSoftmax" else np.exp(shifted) / total


@operator("TopK")
def _top_k(node: Node, x: Array, k: Array = None) -> tuple[Array, ...]:
    axis, count = front_axis(-1 if node.axis is None else node.axis, x.ndim), int(node.k if k is None else k.item())
    if not 0 <= count <= x.shape[axis]:
        raise ValueError(f"TopK of {count} among {x.shape[axis]}")
    keys = x.astype(np.float32) if is_narrow(x.dtype) else x
    if node.largest == 0:
        order = np.argsort(keys, axis, kind="stable")
    else:  # backwards twice, so that of equals the first stays in front
        order = x.shape[axis] - 1 - np.flip(np.argsort(np.flip(keys, axis), axis, kind="stable"), axis)
    chosen = np.take(order, np.arange(count), axis)
    return np.take_along_axis(x, chosen, axis), chosen.astype(np.int64)
