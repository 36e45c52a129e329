# SPDX-License-Identifier: Apache-2.0
"""Values as plain data (numbers, strings, nested lists), as Python callers write them and JSON lines carry them.

`value_from_plain` converts exactly or refuses: 1.5 or 300 never becomes an uint8, a boolean never a number; a number
for a floating type is rounded to the nearest, and refused where it overflows. NaN and the infinities are the strings
"NaN", "Infinity" and "-Infinity". A complex number is the list [real, imaginary].

Law: `value_from_plain(plain_from_value(v), type_of_v)` equals v, for tensors that are not empty.
"""

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from nndeploy.errors import InputError
from nndeploy.values.types import (
    MapType,
    OptionalType,
    SequenceType,
    TensorType,
    Value,
    ValueType,
    numpy_dtype,
)

Plain: TypeAlias = Any
"""None, bool, int, float, str, list and dict."""

NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

_Array: TypeAlias = np.ndarray[Any, Any]

_NUMBERS: set[type] = {int, float, str}
"""What a floating or complex element may be written as; of the strings only those of NON_FINITE."""


def only_element(value: Value) -> Value:
    """Returns the one element of an array that has one, as Python writes it; any other value as it is."""
    return value.item() if isinstance(value, np.ndarray | np.generic) and value.size == 1 else value


def value_from_plain(data: Plain, value_type: ValueType, name: str) -> Value:
    """Returns the value of type `value_type` that `data` writes; shapes are not checked here.

    Raises:
        InputError: `data` is not exactly a value of that type; the message names the input `name`.
    """
    match value_type:
        case TensorType(dtype, _):
            return tensor_from_plain(data, dtype, name)
        case OptionalType(element):
            return None if data is None else value_from_plain(data, element, name)
        case SequenceType(element):
            if not isinstance(data, list):
                raise InputError(f"{name} must be a list, not {_kind(data)}")
            return [value_from_plain(item, element, f"{name}[{i}]") for i, item in enumerate(data)]
        case MapType(key, element):
            if not isinstance(data, Mapping):
                raise InputError(f"{name} must be a map, not {_kind(data)}")
            return {_key(k, key, name): value_from_plain(v, element, f"{name}[{k!r}]") for k, v in data.items()}


def tensor_from_plain(data: Plain, dtype: str, name: str) -> _Array:
    """Returns the tensor that numbers, strings or nested lists of them write.

    Raises:
        InputError: the lists are ragged, or hold what an element of `dtype` cannot be.
    """
    shape = _array(data, name).shape
    leaves = _leaves(data, len(shape))
    kinds = {type(leaf) for leaf in leaves}
    if odd := kinds - _allowed(dtype):
        raise InputError(f"{name} must be {dtype}, got {_kind_name(odd)}")
    if dtype == "string":
        array = np.empty(len(leaves), dtype=object)
        array[:] = [str(leaf) for leaf in leaves]
        return array.reshape(shape)
    if dtype == "bool":
        return np.array(leaves, dtype=np.bool_).reshape(shape)
    if dtype.startswith("complex"):
        return _complex(_float64(leaves, name).reshape(shape), dtype, name)
    if _is_integer(dtype):
        return _integers(leaves, dtype, name).reshape(shape)
    return _floats(_float64(leaves, name), dtype, name).reshape(shape)


def plain_from_value(value: Value) -> Plain:
    """Returns a value as plain data that JSON can carry."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else _name_of(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, Mapping):
        return {str(key): plain_from_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_from_value(item) for item in value]
    return _plain_from_array(np.asarray(value))


def _plain_from_array(array: _Array) -> Plain:
    if array.dtype.kind == "c":
        parts = np.stack([array.real, array.imag], axis=-1)
        return _plain_from_array(parts)
    if array.dtype.kind in "OSUT":
        return plain_from_value(array.tolist())
    if array.dtype.kind not in "biuf":  # one of ml_dtypes'
        array = array.astype(np.int64 if _is_integer(array.dtype.name) else np.float64)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        return plain_from_value(array.tolist())
    return array.tolist()


def _name_of(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _kind(data: Plain) -> str:
    return "null" if data is None else f"a {type(data).__name__}"


def _kind_name(kinds: set[type]) -> str:
    return ", ".join(sorted("null" if kind is type(None) else kind.__name__ for kind in kinds))


def _allowed(dtype: str) -> set[type]:
    if dtype == "string":
        return {str, np.str_}
    if dtype == "bool":
        return {bool}
    return {int, float} if _is_integer(dtype) else _NUMBERS


def _is_integer(dtype: str) -> bool:
    return dtype.startswith(("int", "uint"))


def _key(key: Plain, dtype: str, name: str) -> int | str:
    if dtype == "string":
        if isinstance(key, str):
            return key
    elif isinstance(key, int) and not isinstance(key, bool):
        return key
    elif isinstance(key, str) and key.removeprefix("-").isdecimal() and key.isascii() and len(key) < 21:
        return int(key)
    raise InputError(f"a key of {name} must be {dtype}, not {key!r:.40}")


def _array(data: Plain, name: str) -> _Array:
    try:
        return np.asarray(data)
    except (ValueError, OverflowError, RecursionError) as err:
        raise InputError(f"{name} is not a tensor: {err}") from err


def _leaves(data: Plain, depth: int) -> list[Plain]:
    """Returns what stands `depth` lists deep, in order."""
    flat = [data]
    for _ in range(depth):
        flat = [item for part in flat for item in part]
    return flat


def _float64(leaves: list[Plain], name: str) -> _Array:
    for leaf in leaves:
        if type(leaf) is str and leaf not in NON_FINITE:
            raise InputError(f"{name} must hold numbers, not {leaf!r:.40}")
    try:
        return np.array(leaves, dtype=np.float64)
    except OverflowError as err:
        raise InputError(f"{name} holds a number that is too large") from err


def _integers(leaves: list[Plain], dtype: str, name: str) -> _Array:
    for leaf in leaves:
        if type(leaf) is float and not leaf.is_integer():
            raise InputError(f"{name} must be {dtype}, got {leaf!r}")
    whole = [int(leaf) for leaf in leaves]
    low, high = _bounds(dtype)
    for worst in (min(whole, default=0), max(whole, default=0)):
        if not low <= worst <= high:
            raise InputError(f"{name} must be {dtype} ({low}..{high}), got {worst}")
    return np.array(whole, dtype=np.uint64 if dtype.startswith("u") else np.int64).astype(numpy_dtype(dtype))


def _bounds(dtype: str) -> tuple[int, int]:
    bits = int(dtype.removeprefix("u").removeprefix("int"))
    return (0, 2**bits - 1) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _floats(array: _Array, dtype: str, name: str) -> _Array:
    with np.errstate(all="ignore"):  # an overflow is found and refused below
        result = array.astype(numpy_dtype(dtype))
    if not np.array_equal(np.isfinite(result.astype(np.float64)), np.isfinite(array.astype(np.float64))):
        raise InputError(f"{name} must be {dtype}, which cannot hold a number this large")
    return result


def _complex(array: _Array, dtype: str, name: str) -> _Array:
    if array.ndim == 0 or array.shape[-1] != 2:
        raise InputError(f"{name} must be {dtype}: each element is a list [real, imaginary]")
    pairs = np.ascontiguousarray(_floats(array, "float32" if dtype == "complex64" else "float64", name))
    return pairs.view(numpy_dtype(dtype))[..., 0]
