# SPDX-License-Identifier: Apache-2.0
"""Cases of operators that move, repeat, make or choose elements."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from oracle.cases.case import Case, Fixed, edges, floats, integers, one

F32, F64, F16 = np.float32, np.float64, np.float16
FAR, NEAR = np.iinfo(np.int64).max, np.iinfo(np.int64).min


def cases() -> Iterator[Case]:
    yield from _shapes()
    yield from _slices()
    yield from _pads()
    yield from _splits()
    yield from _made()
    yield from _gathered()
    yield from _scattered()
    yield from _chosen()


def ints(*values: int) -> Fixed:
    return Fixed(np.array(values, np.int64))


def text(*values: str) -> Any:
    return np.array(values, object)


def _shapes() -> Iterator[Case]:
    x = floats(2, 3, 4)
    for opset, attributes in (
        (1, {}), (15, {"start": 1}), (15, {"end": -1}), (19, {"start": -9, "end": 9}), (21, {"start": 2, "end": 1}),
    ):  # fmt: skip
        yield one("Shape", opset, x, **attributes)
    yield one("Size", 13, x)
    yield one("Size", 13, floats(0, 3))
    for shape in ((6, 4), (-1, 2), (0, -1), (24,), (2, 0, 2, 2)):
        yield one("Reshape", 14, x, ints(*shape))
        yield one("Reshape", 14, x, np.array(shape), note=f"shape is an input {shape}")
    yield one("Reshape", 1, x, shape=[4, 0, 2])
    yield one("Reshape", 14, floats(0, 3), ints(0, 5), allowzero=1)
    yield one("Reshape", 14, floats(0, 3), ints(3, -1), note="no elements, one size to infer")
    yield one("Reshape", 5, floats(1), ints(), note="a scalar")
    yield one("Reshape", 14, x, ints(5, -1), note="that does not fit")
    for axis in (-3, -1, 0, 1, 2, 3):
        yield one("Flatten", 13, x, axis=axis)
    yield one("Flatten", 1, floats(2, 3))
    yield one("Flatten", 9, floats(), axis=0, note="scalar")
    yield one("Squeeze", 1, floats(1, 2, 1), axes=[0])
    yield one("Squeeze", 11, floats(1, 2, 1), axes=[-1])
    yield one("Squeeze", 13, floats(1, 2, 1), ints(0, -1))
    yield one("Squeeze", 13, floats(1, 2, 1))
    yield one("Unsqueeze", 1, floats(2, 3), axes=[0, 3])
    yield one("Unsqueeze", 11, floats(2, 3), axes=[-1, 0])
    yield one("Unsqueeze", 13, floats(2, 3), ints(-1, 1))
    yield one("Unsqueeze", 13, floats(), ints(0))
    yield one("Transpose", 1, x)
    yield one("Transpose", 13, x, perm=[1, 2, 0])
    yield one("Transpose", 13, text("a", "b").reshape(1, 2))
    yield one("Expand", 8, floats(3, 1), ints(2, 1, 4))
    yield one("Expand", 13, floats(3, 1), np.array([1]), note="a shorter shape, as an input")
    yield one("Expand", 13, floats(1, 3), ints(0, 3))
    yield one("Tile", 1, x, Fixed(np.array(2, F32)), Fixed(np.array(1, F32)))
    yield one("Tile", 6, floats(2, 3), ints(2, 1))
    yield one("Tile", 13, floats(2, 3), np.array([0, 2]))
    for opset, axis in ((1, None), (4, 0), (11, -1), (13, 1)):
        yield one("Concat", opset, floats(2, 2), floats(2, 2), axis=axis)
    yield one("Concat", 13, floats(2, 0), floats(2, 2), axis=1)
    yield one("Concat", 13, text("a"), text("b", "c"), axis=0)
    yield one("Identity", 19, text("a", "b"))
    yield one("Identity", 14, [floats(2), floats(3)], note="of a sequence")
    for mode in ("DCR", "CRD"):
        yield one("DepthToSpace", 13, floats(1, 8, 2, 3), blocksize=2, mode=mode)
        yield one("SpaceToDepth", 28, floats(1, 2, 4, 6), blocksize=2, mode=mode)
    yield one("DepthToSpace", 1, floats(1, 8, 2, 3), blocksize=2)
    yield one("SpaceToDepth", 13, floats(1, 2, 4, 6), blocksize=2)
    for upper in (0, 1):
        for k in (-2, 0, 1):
            yield one("Trilu", 14, floats(2, 3, 4), Fixed(np.array(k)), upper=upper)
    yield one("Trilu", 14, integers(3, 3))
    yield one("CenterCropPad", 18, floats(5, 4, 3), ints(2, 7, 3))
    yield one("CenterCropPad", 18, floats(5, 4, 3), ints(8, 1), axes=[-1, 0])


def _slices() -> Iterator[Case]:
    x = floats(4, 5)
    for starts, ends, axes, steps in (
        ([0, 1], [3, 4], None, None), ([1], [-1], [1], None), ([-1], [NEAR], [0], [-1]), ([3], [0], [0], [-1]),
        ([FAR], [NEAR], [1], [-2]), ([-9], [9], [1], [2]), ([2], [2], [0], None),
        ([3], [1], [0], [1]), ([9], [12], [0], None),
        ([-2, -1], [-9, -9], [1, 0], [-2, -1]), ([1], [FAR], [-1], [3]), ([0], [NEAR], [0], [-1]),
        ([-1], [-1], [0], [-1]),
    ):  # fmt: skip
        parts = [
            ints(*starts), ints(*ends), None if axes is None else ints(*axes), None if steps is None else ints(*steps),
        ]  # fmt: skip
        while parts[-1] is None:
            parts.pop()
        yield one("Slice", 13, x, *parts)
        fed = [part if part is None else part.value for part in parts]
        yield one("Slice", 13, x, *fed, note=f"inputs {starts} {ends} {axes} {steps}")
    yield one("Slice", 1, x, starts=[1, -3], ends=[1000, -1])
    yield one("Slice", 1, x, starts=[-2], ends=[5], axes=[1])
    yield one("Slice", 10, x, ints(0, 4), ints(4, 0), ints(0, 1), ints(2, 1))
    yield one(
        "Slice", 11, x, Fixed(np.array([1], np.int32)), Fixed(np.array([3], np.int32)), Fixed(np.array([-1], np.int32))
    )
    yield one("Slice", 13, floats(0, 3), ints(-1), ints(NEAR), ints(0), ints(-1))
    yield one("Slice", 13, text("a", "b", "c"), ints(2), ints(0), ints(0), ints(-1))


def _pads() -> Iterator[Case]:
    x = floats(3, 4)
    for mode, pads in (
        ("constant", [1, 0, 0, 2]), ("constant", [-1, 1, 0, -2]), ("reflect", [1, 2, 2, 3]),
        ("edge", [2, 1, 0, 3]), ("wrap", [1, 2, 3, 1]),
    ):  # fmt: skip
        opset = 19 if mode == "wrap" else 18
        yield one("Pad", opset, x, ints(*pads), mode=mode)
        yield one("Pad", opset, x, np.array(pads), mode=mode, note=f"pads are an input {mode} {pads}")
        if mode != "wrap" and min(pads) >= 0:
            yield one("Pad", 2, x, pads=pads, mode=mode)
    yield one("Pad", 1, x, paddings=[0, 1, 2, 0], value=1.5)
    yield one("Pad", 11, x, ints(1, 1, 1, 1), Fixed(np.array(-1.5, F32)))
    yield one("Pad", 13, integers(2, 2), ints(0, 1, 0, 1), Fixed(np.array(7)))
    yield one("Pad", 18, x, ints(2, 1), None, ints(-1))
    yield one("Pad", 18, floats(1, 1, 3, 3), ints(1, 2, 1, 2), None, ints(3, 2), mode="reflect")
    yield one("Pad", 13, text("a"), ints(1, 0), note="text")
    yield one("Pad", 13, np.array([True]), ints(1, 1))
    yield one("Pad", 18, floats(0, 2), ints(1, 0, 1, 0), note="no rows")


def _splits() -> Iterator[Case]:
    x = floats(6, 4)
    yield one("Split", 1, x, axis=0, split=[2, 4], outputs=2)
    yield one("Split", 2, x, axis=1, outputs=2)
    yield one("Split", 11, x, axis=-1, split=[1, 3], outputs=2)
    yield one("Split", 13, x, ints(1, 0, 5), outputs=3)
    yield one("Split", 13, x, outputs=3)
    yield one("Split", 18, x, axis=0, num_outputs=3, outputs=3)
    yield one("Split", 18, floats(7, 2), axis=0, num_outputs=3, outputs=3)
    yield one("Split", 18, x, np.array([3, 1]), axis=1, outputs=2, note="sizes are an input")


def _made() -> Iterator[Case]:
    yield one("ConstantOfShape", 9, np.array([2, 3]))
    yield one("ConstantOfShape", 9, np.array([0, 3]), value=numpy_helper.from_array(np.array([7])))
    yield one("ConstantOfShape", 20, np.array([], np.int64), value=numpy_helper.from_array(np.array([True])))
    for attributes in (
        {"value_float": 1.5}, {"value_ints": [1, 2]}, {"value_string": "a"}, {"value_strings": ["a", "b"]},
        {"value_int": 3},
    ):  # fmt: skip
        yield one("Constant", 13, **attributes)
    sparse = helper.make_sparse_tensor(
        numpy_helper.from_array(np.array([1.5, 2.5], F32), "v"),
        numpy_helper.from_array(np.array([[0, 1], [1, 2]]), "i"), [2, 3]
    )  # fmt: skip
    yield one("Constant", 13, sparse_value=sparse)
    for dtype in (None, TensorProto.INT32, TensorProto.DOUBLE):
        for k in (0, 1, -1):
            yield one("EyeLike", 9, floats(2, 3), k=k, dtype=dtype)
    for start, limit, delta in ((3, 9, 3), (10, 4, -2), (0, 5, 2), (5, 0, 1), (0, 0, 1)):
        yield one(
            "Range", 11, *(np.array(v, np.int64) for v in (start, limit, delta)), note=f"int64 {start} {limit} {delta}"
        )
        yield one(
            "Range", 11, *(np.array(v, F32) for v in (start, limit, delta)), note=f"float32 {start} {limit} {delta}"
        )
    yield one("Range", 11, *(np.array(v, F64) for v in (0.5, 3.1, 0.25)), note="float64")
    yield one("Range", 27, *(np.array(v, F16) for v in (0.5, 3, 0.25)), note="float16")
    for opset, attributes in ((1, {"is_test": 1}), (6, {"is_test": 1, "ratio": 0.3}), (7, {}), (10, {"ratio": 0.3})):
        yield one("Dropout", opset, floats(2, 3), outputs=1, **attributes)
    yield one("Dropout", 13, floats(2, 3), Fixed(np.array(0.5, F32)), Fixed(np.array(False)), outputs=2)
    yield one("Dropout", 13, floats(2, 3), Fixed(np.array(0.0, F32)), Fixed(np.array(True)), outputs=2)


def _gathered() -> Iterator[Case]:
    x = floats(3, 4, 2)
    for axis in (0, 1, -1):
        yield one("Gather", 13, x, np.array([[0, 1], [-1, 0]]), axis=axis)
        yield one("Gather", 13, x, Fixed(np.array(1)), axis=axis)
        yield one("GatherElements", 13, x, integers(2, 2, 2, low=0, high=2), axis=axis)
    yield one("Gather", 1, x, np.array([2, 0], np.int32))
    yield one("Gather", 13, floats(3, 4), np.zeros((0, 2), np.int64))
    yield one("Gather", 13, text("a", "b", "c"), np.array([2, -3]))
    for bad in (3, -4, 10**12):
        yield one("Gather", 13, x, np.array([0, bad]), note=f"index {bad} of 3")
        yield one("GatherElements", 13, floats(3), np.array([bad]), note=f"index {bad} of 3")
        yield one("GatherND", 13, floats(3), np.array([[bad]]), note=f"index {bad} of 3")
        yield one("ScatterElements", 18, floats(3), np.array([bad]), floats(1), note=f"index {bad} of 3")
        yield one("ScatterND", 18, floats(3), np.array([[bad]]), floats(1), note=f"index {bad} of 3")
    yield one("GatherElements", 13, x, np.full((1, 4, 2), -1), note="below 0")
    yield one("GatherND", 13, x, np.array([[0, 1], [-1, 2]]))
    yield one("GatherND", 13, x, np.array([[[0, 1]], [[2, 3]]]))
    yield one("GatherND", 12, x, np.array([[1], [0], [3]]), batch_dims=1)
    yield one("GatherND", 11, x, np.array([[1]]))


def _scattered() -> Iterator[Case]:
    x = floats(3, 4)
    rows, places = np.array([[1, 0, 2, 0]]), np.array([[0, 1], [2, 3], [-1, 0]])
    yield one("Scatter", 9, x, rows, floats(1, 4))
    yield one("ScatterElements", 11, x, rows, floats(1, 4))
    yield one("ScatterElements", 13, x, np.array([[1], [-1], [0]]), floats(3, 1), axis=1)
    yield one("ScatterND", 11, x, places, floats(3))
    yield one("ScatterND", 13, x, np.array([[2], [0]]), floats(2, 4))
    twice = np.array([[0, 0, 1, 1], [0, 2, 1, 2]])
    for reduction in ("add", "mul", "max", "min"):
        opset = 16 if reduction in ("add", "mul") else 18
        yield one("ScatterElements", opset, x, twice, floats(2, 4), reduction=reduction)
        yield one("ScatterND", opset, x, np.array([[0, 1], [0, 1], [2, 2]]), floats(3), reduction=reduction)
        yield one("ScatterND", 18, integers(3), np.array([[0], [0]]), integers(2), reduction=reduction)
    nan = np.array([np.nan, 1.0], F32)
    for reduction in ("max", "min"):
        yield one(
            "ScatterND", 18, np.array([1, np.nan], F32), np.array([[0], [1]]), nan, reduction=reduction,
            note=f"NaN {reduction}",
        )  # fmt: skip
    yield one("TensorScatter", 24, floats(2, 3, 4, 2), floats(2, 3, 2, 2), np.array([1, 2]))
    yield one("TensorScatter", 24, floats(2, 3, 4, 2), floats(2, 3, 3, 2), np.array([3, 2]), mode="circular")
    yield one("TensorScatter", 24, floats(2, 4, 2), floats(2, 1, 2), axis=1)


def _chosen() -> Iterator[Case]:
    values = Fixed(np.array([0.5, 2.0], F32))
    for axis in (0, 1, -1, -2):
        yield one("OneHot", 11, np.array([[0, 2], [-1, 7]]), Fixed(np.array(3)), values, axis=axis)
    yield one("OneHot", 9, np.array([0, 2, 1]), Fixed(np.array([3])), values)
    yield one("OneHot", 9, np.array([0, 3, -1]), Fixed(np.array(3)), values, note="beyond the depth")
    yield one(
        "OneHot", 11, np.array([0, 1], F32), np.array(2, F32), np.array([0, 9]), note="float indices, depth an input"
    )
    yield one("NonZero", 13, integers(3, 4, low=0, high=2))
    yield one("NonZero", 9, np.array([0.0, -0.0, np.nan, 1.0], F32))
    yield one("NonZero", 13, np.array(5.0, F32), note="scalar")
    yield one("NonZero", 13, floats(0, 2))
    mask = np.array([True, False, True])
    yield one("Compress", 11, floats(3, 2), mask, axis=0)
    yield one("Compress", 9, floats(3, 2), mask)
    yield one("Compress", 11, floats(3, 4), mask, axis=-1)
    for time, batch in ((0, 1), (1, 0)):
        x = floats(4, 3, 2) if time == 0 else floats(3, 4, 2)
        yield one("ReverseSequence", 10, x, np.array([4, 0, 2]), time_axis=time, batch_axis=batch)
    for order in (0, 1):
        x = np.array([2, 1, 1, 3, 4, 3], F32)
        yield one("Unique", 11, x, sorted=order, outputs=4)
        yield one("Unique", 11, integers(4, 2, low=0, high=2), sorted=order, axis=0, outputs=4)
        yield one("Unique", 11, integers(2, 5, low=0, high=2), sorted=order, axis=-1, outputs=4)
    yield one("Unique", 11, text("b", "a", "b"), outputs=["y", "", "inverse"])
    yield one("Unique", 11, np.zeros((3, 0), F32), axis=1, note="no columns")
    yield one("Unique", 11, np.zeros(0, np.int64), outputs=4)
    for dtype in (np.int32, np.bool_, np.uint8):
        yield one("Where", 9, np.array([True, False]), edges(dtype)[:2], edges(dtype)[-2:])
