# SPDX-License-Identifier: Apache-2.0
"""Cases of pooling, over windows, regions and whole channels."""

from collections.abc import Iterator
from itertools import product

import numpy as np

from oracle.cases.case import Case, Fixed, floats, integers, one

F32, F64, F16 = np.float32, np.float64, np.float16


def cases() -> Iterator[Case]:
    yield from _windows()
    yield from _versions()
    yield from _types_and_ranks()
    yield from _global()
    yield from _unpooling()
    yield from _regions()
    yield from _lrn()


PADS = ([0, 0, 0, 0], [0, 0, 1, 1], [1, 1, 0, 0], [1, 0, 1, 1], [1, 1, 1, 1])


def _windows() -> Iterator[Case]:
    for name in ("MaxPool", "AveragePool", "LpPool"):
        for k, s, pads in product((2, 3), (1, 2), PADS):
            yield one(name, 22, floats(1, 2, 5, 6), kernel_shape=[k, k], strides=[s, s], pads=pads)
        for mode, k, s, size in product(("SAME_UPPER", "SAME_LOWER", "VALID"), (2, 3), (1, 2, 3), (5, 6)):
            yield one(name, 22, floats(1, 1, size, size), kernel_shape=[k, k], strides=[s, s], auto_pad=mode)
        for k, s, pads in product((2, 3), (2, 3), ([0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 1, 1])):
            x = floats(1, 1, 6, 8)
            yield one(name, 22, x, kernel_shape=[k, k], strides=[s, s], pads=pads, ceil_mode=1)
        for dilation, mode in product((2, 3), ("NOTSET", "SAME_LOWER", "SAME_UPPER")):
            x = floats(1, 2, 9, 8)
            yield one(name, 22, x, kernel_shape=[2, 2], dilations=[dilation, dilation], auto_pad=mode)
        yield one(name, 22, floats(1, 1, 7, 7), kernel_shape=[3, 3], dilations=[2, 2], strides=[2, 2], ceil_mode=1)
    for pads, ceil in product(PADS[1:], (0, 1)):
        x = floats(1, 1, 6, 7)
        yield one(
            "AveragePool", 22, x, kernel_shape=[3, 3], strides=[2, 2], pads=pads, ceil_mode=ceil, count_include_pad=1
        )
    yield one(
        "AveragePool", 22, floats(1, 1, 5, 5), kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_LOWER",
        count_include_pad=1,
    )  # fmt: skip


def _versions() -> Iterator[Case]:
    x = floats(2, 1, 5, 5)
    for opset in (1, 8, 10, 11, 12):
        yield one("MaxPool", opset, x, kernel_shape=[2, 2], pads=[0, 0, 1, 1])
    for opset in (8, 10, 12, 22):
        for order in (0, 1):
            y = floats(1, 2, 4, 5)
            yield one("MaxPool", opset, y, kernel_shape=[2, 2], strides=[2, 2], storage_order=order, outputs=2)
        yield one("MaxPool", opset, floats(2, 2, 4, 5), kernel_shape=[3, 3], pads=[1, 1, 1, 1], outputs=2)
    for opset in (1, 7, 10, 11, 19):
        yield one("AveragePool", opset, x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 0, 1])
        if opset >= 7:
            yield one("AveragePool", opset, x, kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)
    for opset in (2, 11, 18):
        yield one("LpPool", opset, x, kernel_shape=[3, 3], strides=[2, 2], p=1)
        yield one("LpPool", opset, x, kernel_shape=[2, 2], pads=[0, 0, 1, 1], p=3)
    yield one("LpPool", 1, x, kernel_shape=[2, 2], p=1.5)
    nan = floats(1, 1, 4, 4)
    nan[0, 0, 1, 1], nan[0, 0, 3, 3] = np.nan, -np.inf
    yield one("MaxPool", 12, nan, kernel_shape=[2, 2], note="NaN and -inf")
    yield one("MaxPool", 12, nan, kernel_shape=[2, 2], outputs=2, note="NaN and -inf")
    yield one(
        "MaxPool", 12, np.full((1, 1, 3, 3), -np.inf, F32), kernel_shape=[2, 2], pads=[1, 1, 1, 1], note="-inf alone"
    )
    yield one("AveragePool", 11, nan, kernel_shape=[2, 2], note="NaN and -inf")


def _types_and_ranks() -> Iterator[Case]:
    for name, dtype in product(("MaxPool", "AveragePool", "LpPool"), (F64, F16)):
        x = floats(1, 2, 5, 5, dtype=dtype)
        yield one(name, 22, x, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
        yield one(name, 22, x, kernel_shape=[2, 2], pads=[0, 0, 1, 1])
    for dtype in (np.int8, np.uint8):
        x = integers(1, 2, 5, 5, dtype=dtype, low=0, high=100)
        yield one("MaxPool", 12, x, kernel_shape=[2, 2], pads=[1, 1, 0, 0])
    yield one(
        "MaxPool", 12, np.full((1, 1, 3, 3), -100, np.int8), kernel_shape=[2, 2], pads=[1, 1, 1, 1], note="int8 below 0"
    )
    for name in ("MaxPool", "AveragePool", "LpPool"):
        yield one(name, 22, floats(2, 2, 7), kernel_shape=[3], strides=[2], pads=[1, 0])
        yield one(name, 22, floats(1, 2, 4, 5, 4), kernel_shape=[2, 2, 2], strides=[2, 1, 2], pads=[0, 1, 0, 0, 0, 1])
        yield one(name, 22, floats(1, 2, 1, 1), kernel_shape=[1, 1])
        yield one(name, 22, floats(0, 2, 4, 4), kernel_shape=[2, 2])


def _global() -> Iterator[Case]:
    for name in ("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"):
        for shape in ((2, 3, 4), (2, 3, 4, 5), (1, 2, 3, 2, 2), (2, 3, 1, 1)):
            yield one(name, 22, floats(*shape))
        yield one(name, 22, floats(2, 3, 4, 5, dtype=F64))
        yield one(name, 22, floats(2, 3, 4, 5, dtype=F16))
        yield one(name, 2 if "Lp" in name else 1, floats(2, 3, 4, 5))
    for p in (1, 3):
        yield one("GlobalLpPool", 22, floats(2, 3, 4, 5), p=p)
    nan = floats(1, 2, 3, 3)
    nan[0, 1, 1, 1] = np.nan
    yield one("GlobalMaxPool", 22, nan, note="NaN")


def _unpooling() -> Iterator[Case]:
    indices = np.array([[[[5, 7], [13, 15]]]])
    for opset in (9, 11, 22):
        yield one("MaxUnpool", opset, floats(1, 1, 2, 2), indices, kernel_shape=[2, 2], strides=[2, 2])
    shape = Fixed(np.array([1, 1, 4, 4]))
    yield one("MaxUnpool", 11, floats(1, 1, 2, 2), indices, shape, kernel_shape=[2, 2], strides=[2, 2])
    yield one("MaxUnpool", 11, floats(1, 2, 2), np.array([[[1, 3], [4, 7]]]), kernel_shape=[2], strides=[2])
    yield one(
        "MaxUnpool", 11, floats(1, 1, 2, 2), indices + 1, kernel_shape=[2, 2], strides=[2, 2], note="index out of range"
    )


def _regions() -> Iterator[Case]:
    x = floats(2, 2, 6, 8)
    rois = np.array([[0, 0, 0, 3, 3], [1, 2, 1, 5, 4], [1, 0, 0, 7, 5]], F32)
    yield one("MaxRoiPool", 1, x, rois[:2], pooled_shape=[2, 2])
    yield one("MaxRoiPool", 22, x, rois[2:], pooled_shape=[1, 1])
    yield one("MaxRoiPool", 1, x, np.array([[0, 0, 0, 6, 6]], F32), pooled_shape=[2, 2], spatial_scale=0.5)


def _lrn() -> Iterator[Case]:
    for size, opset in product((1, 2, 3, 4, 5, 7), (1, 13)):
        yield one("LRN", opset, floats(2, 4, 2, 3), size=size, alpha=0.5, beta=0.75, bias=2.0)
    yield one("LRN", 13, floats(1, 5, 3, dtype=F64), size=2, alpha=0.5)
    yield one("LRN", 13, floats(1, 5, 3, 3, dtype=F16), size=4, alpha=0.5)
