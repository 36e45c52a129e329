# SPDX-License-Identifier: Apache-2.0
"""Cast and its relatives: numbers of one type as those of another, and text.

Floats out of an integer's range, and NaN, have no specified value. 8-bit floats are rounded to the nearest number of
the type, ties to the even code; what lies beyond is the greatest number, or as the tables of Cast say without saturate.
"""

import math
from typing import Any

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper

from oracle.registry import NARROW_INTEGERS, Call, InvalidError, UnspecifiedError, is_float, operator

EIGHT_BITS = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")


def dtype_of(number: int) -> Any:
    """Returns the element type of a number of TensorProto.DataType."""
    return helper.tensor_dtype_to_np_dtype(number)


@operator("Cast")
def _cast(call: Call, x: Any) -> Any:
    to = getattr(TensorProto, call.to) if isinstance(call.to, str) else call.to
    return cast(x, dtype_of(to), call.saturate != 0, call.round_mode or "up", call.version)


@operator("CastLike")
def _cast_like(call: Call, x: Any, _: Any) -> Any:
    return cast(x, call.dtypes[1], call.saturate != 0, call.round_mode or "up", call.version)


@operator("BitCast")
def _bit_cast(call: Call, x: Any) -> Any:
    dtype, given = np.dtype(dtype_of(call.to)), np.dtype(call.dtypes[0])
    if given == dtype:
        return x
    if NARROW_INTEGERS.keys() & {dtype, given}:
        raise UnspecifiedError("bits of less than a byte")
    if dtype.itemsize != given.itemsize:
        raise InvalidError(f"{given} as {dtype}")
    return x.astype(given).view(dtype)


def cast(x: Any, dtype: Any, saturate: bool = True, mode: str = "up", version: int = 28) -> Any:
    """Returns a tensor in an element type."""
    dtype = np.dtype(dtype)
    if dtype.kind == "O":
        return _as_text(x)
    if x.dtype == object:
        x = _from_text(x, dtype)
    if dtype.name in EIGHT_BITS:
        return _by_elements(x, dtype, lambda v: _float8(v, dtype, saturate, version))
    if dtype.name == "float8_e8m0fnu":
        return _by_elements(x, dtype, lambda v: _power_of_two(v, saturate, mode))
    if dtype.name == "float4_e2m1fn":
        return _by_elements(x, dtype, lambda v: _float4(v, dtype))
    if dtype.kind == "b" or not is_float(x.dtype) or is_float(dtype):
        return _wrapped(x, dtype)
    return _truncated(x, dtype)


def _wrapped(x: Any, dtype: Any) -> Any:
    if dtype in NARROW_INTEGERS:
        bits = ml_dtypes.iinfo(dtype).bits
        kept = x.astype(np.int64) & (2**bits - 1)
        is_negative = ml_dtypes.iinfo(dtype).min < 0
        return (np.where(kept >= 2 ** (bits - 1), kept - 2**bits, kept) if is_negative else kept).astype(dtype)
    return x.astype(dtype)


def _truncated(x: Any, dtype: Any) -> Any:
    info = ml_dtypes.iinfo(dtype) if dtype in NARROW_INTEGERS else np.iinfo(dtype)
    found = [math.trunc(v) if math.isfinite(v) else None for v in x.ravel().tolist()]
    if any(v is None or not info.min <= v <= info.max for v in found):
        raise UnspecifiedError("a float beyond the integers of the type")
    return np.array(found, np.uint64 if dtype == np.uint64 else np.int64).astype(dtype).reshape(x.shape)


def _by_elements(x: Any, dtype: Any, function: Any) -> Any:
    return np.array([function(float(v)) for v in x.ravel().tolist()], np.float64).astype(dtype).reshape(x.shape)


def _numbers(dtype: Any) -> list[tuple[float, int]]:
    """Returns the finite numbers from 0 up of a type of at most 8 bits, each with its code."""
    codes = np.arange(128 if dtype.itemsize == 1 and dtype.name.startswith("float8") else 8, dtype=np.uint8)
    values = codes.view(dtype).astype(np.float64)
    return sorted((float(v), int(c)) for v, c in zip(values, codes, strict=True) if np.isfinite(v))


def _nearest(size: float, numbers: list[tuple[float, int]]) -> float:
    """Returns the number nearest to a size; infinity where that would be one after the last."""
    (before, _), (last, code) = numbers[-2:]
    listed = [*numbers, (2 * last - before, code + 1)]
    chosen = min(listed, key=lambda number: (abs(number[0] - size), number[1] % 2))
    return math.inf if chosen == listed[-1] else chosen[0]


def _float8(value: float, dtype: Any, saturate: bool, version: int) -> float:
    if math.isnan(value):
        return math.nan
    numbers = _numbers(dtype)
    has_infinity, is_fnuz = dtype.name == "float8_e5m2", dtype.name.endswith("fnuz")
    if math.isinf(value) and saturate and is_fnuz and version < 24:
        return math.nan
    size = math.inf if math.isinf(value) else _nearest(abs(value), numbers)
    if math.isinf(size):
        size = numbers[-1][0] if saturate else (math.inf if has_infinity else math.nan)
    return 0.0 if size == 0 and is_fnuz else math.copysign(size, value)


def _float4(value: float, dtype: Any) -> float:
    if not math.isfinite(value):
        raise UnspecifiedError("what is not finite in 4 bits")
    numbers = _numbers(dtype)
    return math.copysign(min(_nearest(abs(value), numbers), numbers[-1][0]), value)


def _power_of_two(value: float, saturate: bool, mode: str) -> float:
    """E8M0: powers of two from 2^-127 to 2^127, no sign, no zero; the least of them stands for 0."""
    if math.isnan(value):
        return math.nan
    if value < 0 or (value == 0 and (not saturate or math.copysign(1, value) < 0)):
        raise UnspecifiedError("no sign and no zero")
    if value == 0:
        return 2.0**-127
    exponent = math.log2(value) if math.isfinite(value) else math.inf
    low = math.floor(exponent) if math.isfinite(exponent) else 200
    up = (
        {"up": exponent > low, "down": False, "nearest": value - 2.0**low >= 2.0**low / 2}[mode] if low < 128 else False
    )
    power = low + bool(up)
    if -127 <= power <= 127:
        return 2.0**power
    if not saturate:
        raise_nan = power > 127
        return math.nan if raise_nan or mode == "nearest" else 2.0**-127
    return 2.0 ** max(min(power, 127), -127)


def _as_text(x: Any) -> Any:
    if x.dtype == object:
        return x
    if x.dtype == bool or is_float(x.dtype):
        raise UnspecifiedError("the text of a float or a truth")
    return np.array([str(v) for v in x.ravel().tolist()], object).reshape(x.shape)


def _from_text(x: Any, dtype: Any) -> Any:
    """Text as numbers: integers exactly, INF and NaN in any case; text that is no number has no specified value."""
    found = []
    for text in x.ravel().tolist():
        try:
            found.append(float(text) if is_float(dtype) else int(text))
        except ValueError as err:
            raise UnspecifiedError(f"{text!r} as a number") from err
    return np.array(found, np.float64 if is_float(dtype) else None).reshape(x.shape)
