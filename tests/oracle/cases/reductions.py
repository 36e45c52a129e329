# SPDX-License-Identifier: Apache-2.0
"""Cases of operators along axes."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from oracle.cases.case import Case, Fixed, edges, floats, integers, one

F32, F64, F16, BF16 = np.float32, np.float64, np.float16, ml_dtypes.bfloat16
SUMS = ("ReduceSum", "ReduceMean", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare")
LOGS = ("ReduceLogSum", "ReduceLogSumExp")


def cases() -> Iterator[Case]:
    yield from _reductions()
    yield from _arg_extremes()
    yield from _soft()
    yield from _sorted()
    yield from _cumulated()


def _reductions() -> Iterator[Case]:
    axes = Fixed(np.array([1, -1]))
    for name in (*SUMS, *LOGS):
        new = 13 if name == "ReduceSum" else 20 if name in ("ReduceMax", "ReduceMin") else 18
        x = np.abs(floats(2, 3, 4)) + F32(0.5)
        yield one(name, new, x, axes)
        yield one(name, new, x, np.array([0, 2]), keepdims=0, note="axes are an input")
        yield one(name, new, x)
        yield one(name, new, x, noop_with_empty_axes=1)
        yield one(name, new, x, Fixed(np.array([], np.int64)), keepdims=0)
        for old in (1, 11):
            yield one(name, old, x, axes=[1] if old == 1 else [-2], keepdims=0)
        if name != "ReduceSum":
            yield one(name, 13, x, axes=[0, 2])
        yield one(name, new, x.astype(F64), axes)
        yield one(name, new, x.astype(F16), axes)
        yield one(name, new, np.asarray(F32(2.5)), note="scalar")
        yield one(name, new, floats(2, 0, 3), Fixed(np.array([1])), keepdims=0, note="of nothing")
        yield one(name, new, floats(0, 3), Fixed(np.array([1])), note="no rows")
        if name not in LOGS:
            yield one(name, new, edges(F32, largest=False), note="edges")
            for dtype in (np.int32, np.int64):
                yield one(
                    name,
                    new,
                    np.abs(integers(2, 3, dtype=dtype)) if name == "ReduceL2" else integers(2, 3, dtype=dtype),
                    Fixed(np.array([1])),
                )
    for name in ("ReduceSum", "ReduceProd", "ReduceSumSquare", "ReduceL1"):
        yield one(name, 13, np.full((1, 3), np.iinfo(np.int32).max, np.int32), note="int32 wraps", **_last(name))
    for name in ("ReduceMax", "ReduceMin"):
        for dtype in (np.int8, np.uint8):
            yield one(name, 20, edges(dtype), note=f"{np.dtype(dtype).name} edges")
            yield one(
                name, 18, np.zeros((2, 0), dtype), Fixed(np.array([1])), note=f"{np.dtype(dtype).name} of nothing"
            )
        yield one(name, 20, np.array([[True, False], [False, False]]), Fixed(np.array([1])))
    x = np.array([[1000.0, 1000.0], [-1000.0, -1001.0], [-np.inf, -np.inf], [np.inf, 1.0]], F32)
    yield one("ReduceLogSumExp", 18, x, Fixed(np.array([1])), note="large")


def _last(name: str) -> dict[str, object]:
    return {} if name == "ReduceSum" else {"axes": [1]}


def _arg_extremes() -> Iterator[Case]:
    for name in ("ArgMax", "ArgMin"):
        for opset in (1, 11, 13):
            yield one(name, opset, integers(3, 4, dtype=F32, low=0, high=3), axis=1, keepdims=0)
        for last in (0, 1):
            yield one(name, 13, integers(2, 5, dtype=F32, low=0, high=2), axis=-1, select_last_index=last)
            x = np.array([[1, np.nan, 3, np.nan, 2]], F32)
            yield one(name, 13, x, axis=1, select_last_index=last, note=f"NaN last={last}")
        yield one(name, 13, integers(3, 4, dtype=np.int32), axis=0)
        yield one(name, 13, integers(3, 4, dtype=np.uint8, low=0), axis=0)
        yield one(name, 13, floats(3, 4, dtype=F64))
        yield one(name, 13, floats(3, 4, dtype=F16))
        yield one(name, 13, floats(0, 4), axis=1, note="no rows")
        yield one(name, 13, floats(2, 0), axis=1, note="of nothing")


def _soft() -> Iterator[Case]:
    for name in ("Softmax", "LogSoftmax", "Hardmax"):
        for opset in (1, 11, 13):
            yield one(name, opset, floats(2, 3, 4))
            for axis in (0, 1, 2, -1) if opset > 1 else (0, 1, 2):
                yield one(name, opset, floats(2, 3, 4), axis=axis)
        for dtype in (F64, F16, BF16):
            yield one(name, 13, floats(2, 5, dtype=dtype), axis=-1)
        yield one(name, 13, floats(0, 3), axis=1)
        yield one(name, 13, floats(1), axis=0)
        yield one(name, 13, np.array([[1, 3, 3, 2], [0, 0, 0, 0]], F32), note="ties")
        yield one(name, 11, floats(2, 3), axis=1)
    yield one(
        "Softmax", 13, np.array([[1e4, 1e4, 0.0], [-np.inf, 0, 1], [np.nan, 0, 1], [-1e4, -1e4, -1e4]], F32),
        note="edges",
    )  # fmt: skip
    yield one("LogSoftmax", 13, np.array([[1e4, 1e4, 0.0], [-np.inf, 0, 1], [np.nan, 0, 1]], F32), note="edges")


def _sorted() -> Iterator[Case]:
    k = Fixed(np.array([3]))
    for largest in (0, 1):
        x = integers(2, 6, dtype=F32, low=0, high=4)
        yield one("TopK", 11, x, k, axis=1, largest=largest, outputs=2)
        yield one("TopK", 11, integers(2, 6, dtype=np.int64, low=0, high=4), k, largest=largest, outputs=2)
        nan = np.array([[1, np.nan, 3, -np.inf, np.nan, np.inf]], F32)
        yield one("TopK", 11, nan, Fixed(np.array([4])), largest=largest, outputs=2, note=f"NaN largest={largest}")
        yield one("TopK", 11, np.array([-0.0, 0.0, -0.0], F32), k, largest=largest, outputs=2, note=f"zeros {largest}")
    yield one("TopK", 11, floats(5, 3), np.array([2]), axis=0, outputs=2)
    yield one("TopK", 10, floats(2, 5), k, outputs=2)
    yield one("TopK", 1, floats(2, 5), k=2, axis=1, outputs=2)
    yield one("TopK", 11, floats(2, 5, dtype=F64), k, outputs=2)
    yield one("TopK", 11, floats(2, 5, dtype=F16), k, outputs=2)
    yield one("TopK", 24, floats(2, 5, dtype=BF16), k, outputs=2)
    yield one("TopK", 24, np.array([1, np.nan, 2, np.nan]).astype(BF16), k, outputs=2, note="bfloat16 NaN")
    yield one("TopK", 11, floats(2, 3), Fixed(np.array([4])), outputs=2, note="more than there are")
    yield one("TopK", 11, floats(0, 4), k, outputs=2)


def _cumulated() -> Iterator[Case]:
    for name, opset in (("CumSum", 11), ("CumSum", 14), ("CumProd", 26)):
        for exclusive in (0, 1):
            for reverse in (0, 1):
                x = floats(2, 4)
                yield one(name, opset, x, Fixed(np.array(1)), exclusive=exclusive, reverse=reverse)
        yield one(name, opset, floats(3, 2), np.array(-2), note="axis is an input")
        yield one(name, opset, integers(5, dtype=np.int32), Fixed(np.array(0, np.int32)))
        yield one(name, opset, np.full(3, np.iinfo(np.int64).max), Fixed(np.array(0)), note="int64 wraps")
        yield one(name, opset, floats(2, 0), Fixed(np.array(1)), exclusive=1)
        yield one(name, opset, floats(2, 3, dtype=F64), Fixed(np.array(0)))
