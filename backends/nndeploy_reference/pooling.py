# SPDX-License-Identifier: Apache-2.0
"""Pooling: one step for each place of the window, over all windows at once.

An average counts elements of the input, with count_include_pad those of its padding too. NaN is the greatest.

Source: ONNX operators MaxPool, AveragePool, LpPool, GlobalMaxPool, GlobalAveragePool, GlobalLpPool (1-22), MaxUnpool
(9-22), MaxRoiPool (1, 22), LRN (1, 13).
"""

from functools import reduce
from itertools import product
from math import ceil, floor, prod
from typing import Any

import numpy as np

from nndeploy_reference.operator_table import Array, Node, in_float32, operator
from nndeploy_reference.windows import windows_of


def _least(dtype: Any) -> float:
    return -np.inf if dtype.kind == "f" else float(np.iinfo(dtype).min)


@operator("MaxPool")
@in_float32
def _max_pool(node: Node, x: Array) -> tuple[Array, ...]:
    windows = windows_of(node, x.shape[2:], node.kernel_shape)
    padded = windows.padded(x, _least(x.dtype))
    if node.num_outputs == 1:
        return (reduce(np.maximum, (padded[(..., *view)] for _, view in windows.taps())),)
    places = np.arange(prod(x.shape[2:])).reshape(x.shape[2:], order="F" if node.storage_order else "C")
    numbered = windows.padded(places, -1)
    best = np.full((*x.shape[:2], *windows.counts), _least(x.dtype), x.dtype)
    index = np.full(best.shape, -1)
    for _, view in windows.taps():
        value, place = padded[(..., *view)], numbered[view]
        is_new = (place >= 0) & ((value > best) | (index < 0) | (np.isnan(value) & ~np.isnan(best)))
        best, index = np.where(is_new, value, best), np.where(is_new, place, index)
    images = np.arange(prod(x.shape[:2])).reshape(*x.shape[:2], *(1 for _ in x.shape[2:]))
    return best, (images * places.size + index).astype(np.int64)


@operator("AveragePool")
@in_float32
def _average_pool(node: Node, x: Array) -> Array:
    windows = windows_of(node, x.shape[2:], node.kernel_shape)
    padded, mask = windows.padded(x, 0), np.ones(x.shape[2:])
    counted = windows.padded(mask, 0, within=bool(node.count_include_pad))
    total = sum(padded[(..., *view)].astype(np.float64) for _, view in windows.taps())
    return (total / sum(counted[view] for _, view in windows.taps())).astype(x.dtype)


@operator("LpPool")
@in_float32
def _lp_pool(node: Node, x: Array) -> Array:
    windows = windows_of(node, x.shape[2:], node.kernel_shape)
    padded = np.abs(windows.padded(x, 0).astype(np.float64)) ** node.p
    return (sum(padded[(..., *view)] for _, view in windows.taps()) ** (1 / node.p)).astype(x.dtype)


@operator("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool")
@in_float32
def _global_pool(node: Node, x: Array) -> Array:
    axes = tuple(range(2, x.ndim))
    if node.op_type == "GlobalMaxPool":
        return x.max(axes, keepdims=True)
    wide = x.astype(np.float64)
    if node.op_type == "GlobalAveragePool":
        return wide.mean(axes, keepdims=True).astype(x.dtype)
    return ((np.abs(wide) ** node.p).sum(axes, keepdims=True) ** (1 / node.p)).astype(x.dtype)


@operator("MaxUnpool")
def _max_unpool(node: Node, x: Array, indices: Array, output_shape: Array = None) -> Array:
    rank = x.ndim - 2
    strides, pads = node.strides or [1] * rank, node.pads or [0] * (2 * rank)
    spatial = [
        (size - 1) * stride + k - pads[i] - pads[rank + i]
        for i, (size, stride, k) in enumerate(zip(x.shape[2:], strides, node.kernel_shape, strict=True))
    ]
    small = np.zeros(prod(x.shape[:2]) * prod(spatial), x.dtype)
    if indices.size and not (indices.min() >= 0 and indices.max() < small.size):
        raise IndexError(f"an index out of range in MaxUnpool: {indices.max()} of {small.size}")
    small[indices.ravel()] = x.ravel()
    small = small.reshape(*x.shape[:2], *spatial)
    if output_shape is None:
        return small
    found = np.zeros(output_shape.tolist(), x.dtype)
    found[tuple(map(slice, small.shape))] = small
    return found


@operator("LRN")
@in_float32
def _lrn(node: Node, x: Array) -> Array:
    wide, channels = x.astype(np.float64), x.shape[1]
    before = (node.size - 1) // 2
    pads = [(0, 0)] * x.ndim
    pads[1] = (before, node.size - 1 - before)
    squares = np.pad(wide * wide, pads)
    total = sum(squares[:, i : i + channels] for i in range(node.size))
    return (wide / (node.bias + node.alpha / node.size * total) ** node.beta).astype(x.dtype)


@operator("MaxRoiPool")
@in_float32
def _max_roi_pool(node: Node, x: Array, rois: Array) -> Array:
    """Corners are rounded, bins take whole elements outward; a bin of nothing is 0. Source: Fast R-CNN."""
    height, width = node.pooled_shape
    found = np.zeros((len(rois), x.shape[1], height, width), x.dtype)
    for r, roi in enumerate(rois.astype(np.float64)):
        left, top, right, bottom = np.round(roi[1:] * node.spatial_scale).astype(int).tolist()
        rows = _bins(top, max(bottom - top + 1, 1), height, x.shape[2])
        columns = _bins(left, max(right - left + 1, 1), width, x.shape[3])
        for i, j in product(range(height), range(width)):
            part = x[int(roi[0]), :, rows[i], columns[j]]
            found[r, :, i, j] = part.max((1, 2)) if part.size else 0
    return found


def _bins(begin: int, size: int, count: int, limit: int) -> list[slice]:
    edges = [(floor(i * size / count) + begin, ceil((i + 1) * size / count) + begin) for i in range(count)]
    return [slice(min(max(a, 0), limit), min(max(b, 0), limit)) for a, b in edges]
