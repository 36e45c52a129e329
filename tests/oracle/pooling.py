# SPDX-License-Identifier: Apache-2.0
"""Pooling over windows, written as loops over windows.

Sizes: with ceil_mode a last window that would begin beyond the input and its padding at the beginning is left out.
SAME: the output has ceil(size / stride) elements; the odd pad goes to the end (UPPER) or the beginning (LOWER).
An average counts elements of the input, with count_include_pad those of the padding too, but none beyond it.
"""

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from oracle.registry import Call, InvalidError, UnspecifiedError, operator


class Windows:
    """Where windows lie over the spatial axes of an input."""

    def __init__(self, call: Call, sizes: tuple[int, ...], kernel: list[int]) -> None:
        rank = len(sizes)
        self.sizes, self.kernel = sizes, kernel
        self.strides = call.strides or [1] * rank
        self.dilations = call.dilations or [1] * rank
        if not len(kernel) == len(self.strides) == len(self.dilations) == rank:
            raise InvalidError("attributes of another rank than the input")
        self.spans = [(k - 1) * d + 1 for k, d in zip(kernel, self.dilations, strict=True)]
        mode = call.auto_pad or "NOTSET"
        pads = call.pads or [0] * (2 * rank)
        if mode.startswith("SAME"):
            self.counts = [-(-size // stride) for size, stride in zip(sizes, self.strides, strict=True)]
            totals = [
                max((count - 1) * stride + span - size, 0)
                for count, stride, span, size in zip(self.counts, self.strides, self.spans, sizes, strict=True)
            ]
            self.begins = [(total + (mode == "SAME_LOWER")) // 2 for total in totals]
            self.ends = [total - begin for total, begin in zip(totals, self.begins, strict=True)]
            return
        if mode == "VALID":
            pads = [0] * (2 * rank)
        self.begins, self.ends = pads[:rank], pads[rank:]
        self.counts = [self._count(axis, bool(call.ceil_mode) and mode == "NOTSET") for axis in range(rank)]

    def _count(self, axis: int, is_ceil: bool) -> int:
        stride, room = self.strides[axis], self.sizes[axis] + self.begins[axis] + self.ends[axis] - self.spans[axis]
        if room < 0:
            raise InvalidError("a window that is larger than the input")
        count = (-(-room // stride) if is_ceil else room // stride) + 1
        is_beyond = (count - 1) * stride >= self.sizes[axis] + self.begins[axis]
        return count - 1 if is_ceil and is_beyond else count

    def under(self, k: tuple[int, ...]) -> tuple[Any, Any]:
        """Returns the windows of which element `k` lies inside the input, and where in the input it lies."""
        offsets = [i * d - b for i, d, b in zip(k, self.dilations, self.begins, strict=True)]
        to, at = zip(*map(matching, self.counts, self.sizes, self.strides, offsets), strict=True)
        return to, at

    def places(self) -> Iterator[tuple[tuple[int, ...], list[tuple[tuple[int, ...], tuple[int, ...]]], int]]:
        """Yields for each window its place in the output, the elements of the input in it, and how many with padding.

        Elements are (place in the kernel, place in the input).
        """
        for place in product(*(range(count) for count in self.counts)):
            inside, num_with_pads = [], 0
            for k in product(*(range(size) for size in self.kernel)):
                at = tuple(
                    p * s - b + i * d
                    for p, s, b, i, d in zip(place, self.strides, self.begins, k, self.dilations, strict=True)
                )
                num_with_pads += all(a < n + e for a, n, e in zip(at, self.sizes, self.ends, strict=True))
                if all(0 <= a < n for a, n in zip(at, self.sizes, strict=True)):
                    inside.append((k, at))
            yield place, inside, num_with_pads


def matching(num_from: int, num_to: int, stride: int, offset: int) -> tuple[slice, slice]:
    """Returns the numbers a of an axis for which a * stride + offset is a number of another one, and these."""
    first = max(0, -(offset // stride))
    count = max(0, min(num_from - 1, (num_to - 1 - offset) // stride) - first + 1)
    begin = first * stride + offset
    return slice(first, first + count), slice(begin, begin + (count - 1) * stride + 1 if count else begin, stride)


@operator("MaxPool")
def _max_pool(call: Call, x: Any) -> Any:
    windows = Windows(call, x.shape[2:], call.kernel_shape)
    found = np.zeros((*x.shape[:2], *windows.counts), x.dtype)
    indices = np.zeros(found.shape, np.int64)
    for (n, c), (place, inside, _) in product(np.ndindex(x.shape[:2]), list(windows.places())):
        if not inside:
            raise UnspecifiedError("a window of padding alone")
        values = [x[(n, c, *at)] for _, at in inside]
        chosen = int(np.argmax(values))  # the first NaN, else the first greatest
        found[(n, c, *place)] = values[chosen]
        indices[(n, c, *place)] = _linear(x.shape, n, c, inside[chosen][1], bool(call.storage_order))
    return found, indices


def _linear(shape: tuple[int, ...], n: int, c: int, at: tuple[int, ...], by_columns: bool) -> int:
    spatial = shape[2:]
    within = np.ravel_multi_index(at, spatial, order="F" if by_columns else "C") if at else 0
    return int((n * shape[1] + c) * math.prod(spatial) + within)


@operator("AveragePool")
def _average_pool(call: Call, x: Any) -> Any:
    windows = Windows(call, x.shape[2:], call.kernel_shape)
    found = np.zeros((*x.shape[:2], *windows.counts))
    for place, inside, num_with_pads in windows.places():
        count = num_with_pads if call.count_include_pad else len(inside)
        if count == 0:
            raise UnspecifiedError("a window of padding alone")
        found[(..., *place)] = sum(x[(..., *at)] for _, at in inside) / count
    return found


@operator("LpPool")
def _lp_pool(call: Call, x: Any) -> Any:
    kernel = call.kernel_shape
    if kernel is None:
        raise UnspecifiedError("no kernel_shape")
    windows = Windows(call, x.shape[2:], kernel)
    found = np.zeros((*x.shape[:2], *windows.counts))
    for place, inside, _ in windows.places():
        found[(..., *place)] = sum(np.abs(x[(..., *at)]) ** call.p for _, at in inside) ** (1 / call.p)
    return found


@operator("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool")
def _global_pool(call: Call, x: Any) -> Any:
    rows = x.reshape(*x.shape[:2], math.prod(x.shape[2:]))
    if rows.shape[2] == 0:
        raise UnspecifiedError("nothing to pool")
    if call.op == "GlobalMaxPool":
        found = rows.max(2)
    elif call.op == "GlobalAveragePool":
        found = rows.mean(2)
    else:
        found = (np.abs(rows) ** call.p).sum(2) ** (1 / call.p)
    return found.reshape(*x.shape[:2], *(1 for _ in x.shape[2:]))


@operator("MaxUnpool")
def _max_unpool(call: Call, x: Any, indices: Any, output_shape: Any = None) -> Any:
    rank = x.ndim - 2
    strides, pads = call.strides or [1] * rank, call.pads or [0] * (2 * rank)
    spatial = [
        (size - 1) * stride + kernel - pads[i] - pads[rank + i]
        for i, (size, stride, kernel) in enumerate(zip(x.shape[2:], strides, call.kernel_shape, strict=True))
    ]
    own = (*x.shape[:2], *spatial)
    shape = own if output_shape is None else tuple(output_shape.tolist())
    if indices.shape != x.shape or len(shape) != x.ndim:
        raise InvalidError(f"{indices.shape} of {x.shape} into {shape}")
    if shape != own:
        raise UnspecifiedError("whether indices count in the given shape or in the one that follows")
    found = np.zeros(math.prod(shape), x.dtype)
    for value, index in zip(x.ravel(), indices.ravel(), strict=True):
        if not 0 <= index < found.size:
            raise InvalidError(f"index {index} of {found.size}")
        found[index] = value
    return found.reshape(shape)


@operator("LRN")
def _lrn(call: Call, x: Any) -> Any:
    found = np.empty_like(x)
    for c in range(x.shape[1]):
        first = max(0, c - math.floor((call.size - 1) / 2))
        last = min(x.shape[1] - 1, c + math.ceil((call.size - 1) / 2))
        square_sum = (x[:, first : last + 1] ** 2).sum(1)
        found[:, c] = x[:, c] / (call.bias + call.alpha / call.size * square_sum) ** call.beta
    return found


@operator("MaxRoiPool")
def _max_roi_pool(call: Call, x: Any, rois: Any) -> Any:
    """Bins of a region are bounded by floor and ceil; what is empty gives 0.

    The specification says no more than "max pooling across each RoI": regions that are no whole number of bins are
    left open.
    """
    height, width = call.pooled_shape
    found = np.zeros((len(rois), x.shape[1], height, width))
    for r, roi in enumerate(rois):
        batch = int(roi[0])
        if not 0 <= batch < x.shape[0]:
            raise InvalidError(f"batch {batch} of {x.shape[0]}")
        x1, y1, x2, y2 = (roi[1:] * call.spatial_scale).tolist()
        if any(v != int(v) for v in (x1, y1, x2, y2)) or (x2 - x1 + 1) % width or (y2 - y1 + 1) % height:
            raise UnspecifiedError("regions that are no whole number of bins")
        if not (0 <= x1 <= x2 < x.shape[3] and 0 <= y1 <= y2 < x.shape[2]):
            raise UnspecifiedError("regions beyond the input")
        rows, columns = int(y2 - y1 + 1) // height, int(x2 - x1 + 1) // width
        for i, j in product(range(height), range(width)):
            top, left = int(y1) + i * rows, int(x1) + j * columns
            found[r, :, i, j] = x[batch, :, top : top + rows, left : left + columns].max((1, 2))
    return found
