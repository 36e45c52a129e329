# SPDX-License-Identifier: Apache-2.0
"""Cases of casts and of linear quantisation."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper

from oracle.cases.case import Case, Fixed, edges, floats, integers, one

F32, F64, F16, BF16 = np.float32, np.float64, np.float16, ml_dtypes.bfloat16
NUMBERS = (F32, F64, F16, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.bool_)
EIGHT = ("FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ")


def cases() -> Iterator[Case]:
    yield from _casts()
    yield from _small_floats()
    yield from _quantised()
    yield from _dequantised()


def _number(dtype: Any) -> int:
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def _casts() -> Iterator[Case]:
    for source, target in product((F32, F64, F16, np.int8, np.int32, np.int64, np.uint8, np.uint64, np.bool_), NUMBERS):
        is_cut = np.dtype(source).kind == "f" and np.dtype(target).kind in "iu"
        x = np.abs(floats(7)).astype(source) if is_cut else edges(source)
        yield one("Cast", 13, x, to=_number(target), note=f"{np.dtype(source).name} to {np.dtype(target).name}")
    yield one("Cast", 13, np.array([-2.75, -0.5, 1.5, 2.999], F32), to=TensorProto.INT32, note="cut toward zero")
    for opset, to in ((1, "INT32"), (1, "DOUBLE"), (6, TensorProto.INT64), (9, TensorProto.FLOAT16)):
        yield one("Cast", opset, np.array([-2.75, 1.5, 0.0], F32), to=to)
    words = np.array(["1.5", "-inf", "NaN", "+INF", "1e3"], object)
    yield one("Cast", 9, words, to=TensorProto.FLOAT)
    yield one("Cast", 13, np.array(["12", "-7", "9007199254740993"], object), to=TensorProto.INT64)
    yield one("Cast", 9, np.array([12, -7]), to=TensorProto.STRING)
    yield one("Cast", 13, edges(BF16), to=TensorProto.FLOAT, note="bfloat16 to float32")
    yield one("Cast", 13, edges(F32), to=TensorProto.BFLOAT16, note="float32 to bfloat16")
    yield one("CastLike", 15, floats(3), np.zeros(1, np.int64))
    yield one("CastLike", 19, edges(np.int64), np.zeros(1, np.int8))
    for target in ("INT4", "UINT4"):
        yield one("Cast", 21, np.array([0, 1, 7, -3 if target == "INT4" else 15], F32), to=getattr(TensorProto, target))
        yield one("Cast", 21, np.array([0, 7, 8, 200, -1], np.int32), to=getattr(TensorProto, target))
    yield one("Cast", 21, np.array([-8, -1, 0, 7]).astype(ml_dtypes.int4), to=TensorProto.FLOAT)
    yield one("Cast", 21, np.array([0, 9, 15]).astype(ml_dtypes.uint4), to=TensorProto.INT32)
    for source, target in ((F32, np.int32), (np.int32, F32), (F64, np.uint64), (F16, np.int16)):
        yield one("BitCast", 26, edges(source)[:6], to=_number(target))


def _small_floats() -> Iterator[Case]:
    values = np.array([0, -0.0, 1.06, -3.4, 448, 464, 465, 1e6, -1e6, np.nan, 0.001, 60000, 61440, 1e-9, 17, 19], F32)
    finite = np.array([0, 0.3, -1.2, 1.25, 2.5, 5, 6, 7, -100], F32)
    for name, saturate in product(EIGHT, (0, 1)):
        yield one(
            "Cast", 19, values, to=getattr(TensorProto, name), saturate=saturate,
            note=f"float32 to {name} saturate={saturate}",
        )  # fmt: skip
        infinite = np.array([np.inf, -np.inf], F32)
        yield one(
            "Cast", 24, infinite, to=getattr(TensorProto, name), saturate=saturate,
            note=f"infinities to {name} saturate={saturate}",
        )  # fmt: skip
    for name in EIGHT:
        dtype = helper.tensor_dtype_to_np_dtype(getattr(TensorProto, name))
        yield one(
            "Cast", 19, np.arange(0, 256, 7, dtype=np.uint8).view(dtype), to=TensorProto.FLOAT,
            note=f"{name} to float32",
        )  # fmt: skip
    yield one("Cast", 23, finite, to=TensorProto.FLOAT4E2M1)
    for mode in ("up", "down", "nearest"):
        yield one(
            "Cast", 24, np.array([1, 1.5, 3, 1e30, 0.3, 2.0**-127], F32), to=TensorProto.FLOAT8E8M0, round_mode=mode
        )


def _quantised() -> Iterator[Case]:
    x = floats(3, 4)
    scale = Fixed(np.array(0.25, F32))
    for dtype, opset in (
        (np.uint8, 10), (np.int8, 13), (np.int16, 21), (np.uint16, 21), (ml_dtypes.int4, 21), (ml_dtypes.uint4, 21),
    ):  # fmt: skip
        yield one("QuantizeLinear", opset, x, scale, Fixed(np.array(1).astype(dtype)))
        yield one(
            "QuantizeLinear", max(opset, 13), x, Fixed(np.array([0.25, 0.5, 1, 0.125], F32)),
            Fixed(np.array([0, 1, 2, 1]).astype(dtype)),
        )  # fmt: skip
    yield one("QuantizeLinear", 10, x, scale)
    yield one(
        "QuantizeLinear", 13, np.array([0.125, 0.375, -0.125, 1e9, -1e9, np.inf, -np.inf], F32), scale,
        Fixed(np.array(128, np.uint8)), note="ties and beyond",
    )  # fmt: skip
    yield one("QuantizeLinear", 13, x, Fixed(np.array([0.25, 0.5, 1], F32)), Fixed(np.zeros(3, np.int8)), axis=0)
    yield one(
        "QuantizeLinear", 21, floats(2, 5), Fixed(floats(2, 3, low=1)), Fixed(integers(2, 3, dtype=np.int8)), axis=1,
        block_size=2,
    )  # fmt: skip
    yield one("QuantizeLinear", 21, x, scale, output_dtype=TensorProto.INT16)
    yield one("QuantizeLinear", 19, x.astype(F16), Fixed(np.array(0.25, F16)), Fixed(np.array(3, np.uint8)))
    yield one("QuantizeLinear", 10, integers(2, 3, dtype=np.int32), scale, Fixed(np.array(3, np.uint8)))
    for name in EIGHT:
        dtype = helper.tensor_dtype_to_np_dtype(getattr(TensorProto, name))
        yield one("QuantizeLinear", 19, x * F32(100), scale, Fixed(np.zeros((), dtype)), note=name)
    yield one("DynamicQuantizeLinear", 11, floats(3, 4), outputs=3)
    yield one("DynamicQuantizeLinear", 11, np.abs(floats(3, 4)) + F32(1), outputs=3, note="above 0")
    yield one("DynamicQuantizeLinear", 11, -np.abs(floats(5)) - F32(1), outputs=3, note="below 0")


def _dequantised() -> Iterator[Case]:
    for dtype, opset in (
        (np.uint8, 10), (np.int8, 13), (np.int16, 21), (np.uint16, 21), (ml_dtypes.int4, 21), (ml_dtypes.uint4, 21),
    ):  # fmt: skip
        x = integers(3, 4, low=0, high=8).astype(dtype)
        yield one("DequantizeLinear", opset, x, Fixed(np.array(0.25, F32)), Fixed(np.array(1).astype(dtype)))
        yield one(
            "DequantizeLinear", max(opset, 13), x, Fixed(np.array([0.25, 0.5, 1, 2], F32)),
            Fixed(np.array([0, 1, 2, 3]).astype(dtype)),
        )  # fmt: skip
    yield one("DequantizeLinear", 10, integers(3, dtype=np.int32), Fixed(np.array(0.25, F32)))
    yield one("DequantizeLinear", 13, integers(3, 2, dtype=np.int8), Fixed(np.array([1, 2, 3], F32)), axis=-2)
    yield one(
        "DequantizeLinear", 21, integers(2, 5, dtype=np.int8), Fixed(floats(2, 3)),
        Fixed(integers(2, 3, dtype=np.int8)), axis=1, block_size=2,
    )  # fmt: skip
    yield one("DequantizeLinear", 19, integers(3, dtype=np.int8), Fixed(np.array(0.25, F16)))
    yield one(
        "DequantizeLinear", 23, integers(3, dtype=np.int8), Fixed(np.array(0.25, F32)), output_dtype=TensorProto.FLOAT16
    )
    for name in EIGHT:
        dtype = helper.tensor_dtype_to_np_dtype(getattr(TensorProto, name))
        yield one("DequantizeLinear", 19, floats(4).astype(dtype), Fixed(np.array(0.5, F32)), note=name)
