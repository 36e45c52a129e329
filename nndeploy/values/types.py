# SPDX-License-Identifier: Apache-2.0
"""The types of the values that flow through a program: tensors, sequences, optionals and maps.

Both halves use it, so it imports numpy alone. A value is an `np.ndarray` (strings: dtype object), a `list`
(sequence), a `dict` (map) or `None` (an optional that is absent). Law: `type_from_json(type_to_json(t)) == t`.

Source: the type system of ONNX (TypeProto), with numpy's names for the element types.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from nndeploy.errors import DataError

Value: TypeAlias = Any
"""np.ndarray, list, dict or None; see the module's docstring."""

Array: TypeAlias = np.ndarray[Any, Any]
"""An array of any shape and element type."""

Dim: TypeAlias = int | str | None
"""A size, the name of a symbolic size, or None where nothing is known."""

NUMPY_DTYPES = (
    "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "bool", "complex64", "complex128",
)  # fmt: skip
ML_DTYPES = (
    "bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
    "float4_e2m1fn", "int4", "uint4", "int2", "uint2",
)  # fmt: skip
DTYPES = (*NUMPY_DTYPES, *ML_DTYPES, "string")
MAX_RANK = 64  # numpy's own limit
MAX_TYPE_DEPTH = 8


@dataclass(frozen=True, slots=True)
class TensorType:
    """A tensor: `dtype` is one of `DTYPES`, `shape` is None where not even the rank is known."""

    dtype: str
    shape: tuple[Dim, ...] | None

    def __str__(self) -> str:
        if self.shape is None:
            return f"{self.dtype}[...]"
        return f"{self.dtype}[{','.join('?' if d is None else str(d) for d in self.shape)}]"


@dataclass(frozen=True, slots=True)
class SequenceType:
    """A list of values of one type."""

    element: "ValueType"

    def __str__(self) -> str:
        return f"sequence({self.element})"


@dataclass(frozen=True, slots=True)
class OptionalType:
    """A value or None."""

    element: "ValueType"

    def __str__(self) -> str:
        return f"optional({self.element})"


@dataclass(frozen=True, slots=True)
class MapType:
    """A dict; `key` is an integer dtype or "string"."""

    key: str
    value: "ValueType"

    def __str__(self) -> str:
        return f"map({self.key},{self.value})"


ValueType: TypeAlias = TensorType | SequenceType | OptionalType | MapType


@dataclass(frozen=True, slots=True)
class DimRange:
    """The sizes that a symbolic dimension may take; `best` is the one to tune for.

    They are `min`, `min + step`, ..., `max`: both ends are included.
    """

    min: int
    max: int
    best: int
    step: int = 1

    def __str__(self) -> str:
        return f"{self.min}..{self.max}" + (f":{self.step}" if self.step != 1 else "")

    def holds(self, size: int) -> bool:
        """Returns whether the dimension may have this size."""
        return self.min <= size <= self.max and (size - self.min) % self.step == 0

    def at_least(self, size: int) -> int:
        """Returns the smallest size that is `size` or more, the largest of all where there is none."""
        num_steps = -((self.min - max(size, self.min)) // self.step)
        return min(self.max, self.min + num_steps * self.step)


def ranges_text(ranges: Mapping[str, DimRange]) -> str:
    """Returns ranges as "N 1..8, H 32..640:32"."""
    return ", ".join(f"{name} {limits}" for name, limits in ranges.items())


def numpy_dtype(name: str) -> np.dtype[Any]:
    """Returns the numpy dtype for a name of `DTYPES`; "string" is object.

    Raises:
        DataError: the name is unknown, or is one of ml_dtypes' and ml_dtypes is not installed.
    """
    if name in NUMPY_DTYPES:
        return np.dtype(name)
    if name == "string":
        return np.dtype(object)
    if name in ML_DTYPES:
        try:
            import ml_dtypes
        except ImportError as err:
            raise DataError(f"values of type {name} need the package ml-dtypes", hint="pip install ml-dtypes") from err
        found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return found
    raise DataError(f"unknown element type {name!r}")


@lru_cache
def dtype_name(dtype: np.dtype[Any]) -> str:  # NumPy puts a name together anew each time
    """Returns the name in `DTYPES` of a numpy dtype; str, bytes and object are "string"."""
    return "string" if dtype.kind in "OSUT" else dtype.name


def type_to_json(value_type: ValueType) -> dict[str, Any]:
    """Returns the plain-data form of a type, as manifests hold it."""
    match value_type:
        case TensorType(dtype, shape):
            return {"kind": "tensor", "dtype": dtype, "shape": None if shape is None else list(shape)}
        case SequenceType(element):
            return {"kind": "sequence", "element": type_to_json(element)}
        case OptionalType(element):
            return {"kind": "optional", "element": type_to_json(element)}
        case MapType(key, value):
            return {"kind": "map", "key": key, "value": type_to_json(value)}


def type_from_json(data: object, depth: int = 0) -> ValueType:
    """Returns the type that `data` describes.

    Raises:
        DataError: `data` is not the plain-data form of a type.
    """
    if not isinstance(data, Mapping) or depth > MAX_TYPE_DEPTH:
        raise DataError(f"not a value type: {data!r:.80}")
    match data.get("kind"), set(data):
        case "tensor", fields if fields == {"kind", "dtype", "shape"}:
            return TensorType(_dtype_from_json(data["dtype"]), _shape_from_json(data["shape"]))
        case "sequence", fields if fields == {"kind", "element"}:
            return SequenceType(type_from_json(data["element"], depth + 1))
        case "optional", fields if fields == {"kind", "element"}:
            return OptionalType(type_from_json(data["element"], depth + 1))
        case "map", fields if fields == {"kind", "key", "value"}:
            return MapType(_dtype_from_json(data["key"]), type_from_json(data["value"], depth + 1))
    raise DataError(f"not a value type: {data!r:.80}")


def _dtype_from_json(data: object) -> str:
    if not isinstance(data, str) or data not in DTYPES:
        raise DataError(f"unknown element type {data!r:.40}")
    return data


def _shape_from_json(data: object) -> tuple[Dim, ...] | None:
    if data is None:
        return None
    if not isinstance(data, list) or len(data) > MAX_RANK or not all(_is_dim(dim) for dim in data):
        raise DataError(f"not a shape: {data!r:.80}")
    return tuple(data)


def _is_dim(dim: object) -> bool:
    return dim is None or isinstance(dim, str) or (isinstance(dim, int) and not isinstance(dim, bool) and dim >= 0)


def shapes_text(sample: Mapping[str, Value]) -> str:
    """Returns the shapes of a sample's tensors as text, "x[1,3,224,224] n[]"; the same shapes give the same text."""
    return _shapes_line((name, value.shape) for name, value in sample.items() if isinstance(value, np.ndarray))


def shapes_in_short(sample: Mapping[str, Value]) -> str:
    """Returns the same for people: names that differ by numbers alone, of one shape, as "past.*.key[1,2,16,64]"."""
    shapes = {name: value.shape for name, value in sample.items() if isinstance(value, np.ndarray)}
    patterns = {name: (re.sub(r"\d+", "*", name), shape) for name, shape in shapes.items()}
    alike = Counter(patterns.values())
    shown = {name: pattern if alike[pattern] > 1 else (name, shapes[name]) for name, pattern in patterns.items()}
    return _shapes_line(dict.fromkeys(shown.values()))


def _shapes_line(shapes: Iterable[tuple[str, tuple[int, ...]]]) -> str:
    return " ".join(f"{name}[{','.join(map(str, shape))}]" for name, shape in shapes)


def type_of_value(value: Value) -> ValueType:
    """Returns the type of a value that is present, with its rank but no sizes.

    Raises:
        DataError: the type cannot be told: an absent optional, or an empty list or map.
    """
    if isinstance(value, list) and value:
        return SequenceType(type_of_value(value[0]))
    if isinstance(value, Mapping) and value:
        key, element = next(iter(value.items()))
        return MapType("string" if isinstance(key, str) else "int64", type_of_value(element))
    if isinstance(value, float):
        return TensorType("float32", ())  # what maps hold: numbers that a library handed out as Python's own
    if isinstance(value, str | bytes | int):
        return TensorType("int64" if isinstance(value, int) else "string", ())
    if isinstance(value, np.ndarray | np.generic):
        return TensorType(dtype_name(value.dtype), (None,) * value.ndim)
    raise DataError(f"cannot tell the type of {value!r:.40}")
