# SPDX-License-Identifier: Apache-2.0
"""Element types that numpy lacks, and how arrays of them cross into ONNX Runtime as raw memory.

An array of `ml_dtypes` holds one element a byte or two; ONNX Runtime keeps elements of 2 and 4 bits packed, first
element in the low bits. Law: `array_from_raw(raw_from_array(a), a.dtype.name, a.shape)` equals `a`.

Source: TensorProto.DataType and the packing of 4- and 2-bit types, onnx.proto3.
"""

from typing import Any, TypeAlias

import numpy as np

from nndeploy.values.types import numpy_dtype

RawArray: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"

RAW_TYPES: dict[str, int] = {
    "bfloat16": 16, "float8_e4m3fn": 17, "float8_e4m3fnuz": 18, "float8_e5m2": 19, "float8_e5m2fnuz": 20,
    "uint4": 21, "int4": 22, "float4_e2m1fn": 23, "float8_e8m0fnu": 24, "uint2": 25, "int2": 26,
}  # fmt: skip
"""Our name -> number in TensorProto.DataType."""

_BITS = {"uint4": 4, "int4": 4, "float4_e2m1fn": 4, "uint2": 2, "int2": 2}


def raw_name(onnxruntime_type: str) -> str:
    """Returns our name for a type such as "tensor(float8e4m3fn)" if it must cross as raw memory, else ""."""
    said = onnxruntime_type.removeprefix("tensor(").removesuffix(")")
    return next((name for name in RAW_TYPES if name.replace("_", "") in (said, said + "fn", said + "fnu")), "")


def raw_from_array(array: "np.ndarray[Any, Any]") -> RawArray:
    """Returns the bytes of an array as ONNX Runtime keeps them, in one dimension."""
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    bits = _BITS.get(array.dtype.name)
    return data if bits is None else _packed(data, bits)


def array_from_raw(raw: RawArray, name: str, shape: tuple[int, ...]) -> "np.ndarray[Any, Any]":
    """Returns the array of type `name` and `shape` whose bytes are `raw`; it owns its memory."""
    bits = _BITS.get(name)
    data = raw.copy() if bits is None else _unpacked(raw, bits, int(np.prod(shape, dtype=np.int64)))
    if name in ("int4", "int2"):
        return _signed(data, bits or 8).astype(numpy_dtype(name)).reshape(shape)
    return data.view(numpy_dtype(name)).reshape(shape)


def _packed(data: RawArray, bits: int) -> RawArray:
    each = 8 // bits
    padded = np.zeros(-(-data.size // each) * each, np.uint8)
    padded[: data.size] = data & ((1 << bits) - 1)
    groups = padded.reshape(-1, each)
    packed: RawArray = np.bitwise_or.reduce(groups << (np.arange(each, dtype=np.uint8) * bits), axis=1)
    return packed


def _unpacked(raw: RawArray, bits: int, size: int) -> RawArray:
    shifts = np.arange(8 // bits, dtype=np.uint8) * bits
    return ((raw[:, None] >> shifts) & ((1 << bits) - 1)).reshape(-1)[:size].astype(np.uint8)


def _signed(data: RawArray, bits: int) -> "np.ndarray[Any, np.dtype[np.int8]]":
    shift = 8 - bits
    return (data << shift).view(np.int8) >> shift
