# SPDX-License-Identifier: Apache-2.0
"""Tensors as the Open Inference Protocol writes them: datatypes, shapes, and elements in raw or listed form.

Comes in: a datatype, a shape and bytes or a list, from anybody. Goes out: an array of exactly that dtype and shape, and
back. Laws: nothing is allocated from a shape alone, only from bytes or elements that were sent; for arrays of every
datatype, `array_from_raw(name, datatype, shape, raw_from_array(a))` equals a.

Source: Open Inference Protocol, "Tensor Data Types"; the raw form of BYTES is that of the binary tensor data extension:
each element is its length, 4 bytes little-endian, and then so many bytes.
"""

import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from nndeploy.bundle.manifest import NamedType
from nndeploy.errors import InputError, UsageError, did_you_mean
from nndeploy.runtime.plain_data import tensor_from_plain
from nndeploy.values.types import MAX_RANK, OptionalType, TensorType, ValueType, numpy_dtype

DTYPES = {
    "BOOL": "bool",
    "UINT8": "uint8", "UINT16": "uint16", "UINT32": "uint32", "UINT64": "uint64",
    "INT8": "int8", "INT16": "int16", "INT32": "int32", "INT64": "int64",
    "FP16": "float16", "FP32": "float32", "FP64": "float64", "BF16": "bfloat16",
    "BYTES": "string",
}  # fmt: skip
"""Datatype of the protocol -> dtype of `nndeploy.values.types`."""
DATATYPES = {dtype: datatype for datatype, dtype in DTYPES.items()}
DYNAMIC = -1
MAX_ELEMENTS = (1 << 63) // 16
"""A tensor has at most so many elements: then all bytes of it have an address, also where an element has 16."""
_LENGTH = struct.Struct("<I")

Array: TypeAlias = np.ndarray[Any, Any]
Buffer: TypeAlias = bytes | memoryview


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or output of a model as metadata tell it; a size that varies is -1."""

    name: str
    datatype: str
    shape: tuple[int, ...]


def tensor_of(item: NamedType) -> Tensor:
    """Returns what metadata say of an input or output; one of unknown rank has the shape (-1,).

    Raises:
        UsageError: the protocol has no form for its type.
    """
    tensor = _tensor_type(item.type)
    if tensor is None or tensor.dtype not in DATATYPES:
        raise UsageError(f"{item.name!r} ({item.type}) has no form in the protocol", hint="run takes every type")
    shape = (None,) if tensor.shape is None else tensor.shape
    sizes = tuple(size if isinstance(size, int) else DYNAMIC for size in shape)
    return Tensor(item.name, DATATYPES[tensor.dtype], sizes)


def _tensor_type(value_type: ValueType) -> TensorType | None:
    inner = value_type.element if isinstance(value_type, OptionalType) else value_type
    return inner if isinstance(inner, TensorType) else None


def checked_shape(shape: object, label: str) -> tuple[int, ...]:
    """Returns a shape that somebody sent.

    Raises:
        InputError: it is no list of sizes.
    """
    is_shape = isinstance(shape, Sequence) and len(shape) <= MAX_RANK
    if not is_shape or not all(type(size) is int and 0 <= size < 1 << 63 for size in shape):  # type: ignore[attr-defined]
        raise InputError(f"{label} has no shape", hint="a list of sizes from 0 on, for example [1, 8]")
    sizes: tuple[int, ...] = tuple(shape)  # type: ignore[arg-type]
    if math.prod(max(1, size) for size in sizes) > MAX_ELEMENTS:  # NumPy counts so too: a 0 makes no shape small
        raise InputError(f"{label} has a shape that is too large, {list(sizes)}")
    return sizes


def array_from_raw(name: str, datatype: str, shape: tuple[int, ...], raw: Buffer) -> Array:
    """Returns the tensor that raw bytes are, in memory that may be theirs and is not to be written.

    Raises:
        InputError: the datatype is unknown, or the bytes are not those of a tensor of that shape.
    """
    label = f"input {name!r}"
    dtype = dtype_of(datatype, label)
    count = math.prod(shape)
    if datatype == "BYTES":
        texts = np.empty(len(raw) // _LENGTH.size, dtype=object)  # no more than these can be
        num_texts = 0
        for num_texts, text in enumerate(_texts(raw, label), 1):
            texts[num_texts - 1] = text
        _check_count(label, shape, num_texts)
        return texts[:num_texts].reshape(shape)
    if len(raw) != count * dtype.itemsize:
        want = f"{count * dtype.itemsize} bytes ({datatype} {list(shape)})"
        raise InputError(f"{label} must have {want}, got {len(raw)}")
    array = np.frombuffer(raw, dtype.newbyteorder("<") if dtype.kind in "iuf" else dtype)
    if datatype == "BOOL" and array.view(np.uint8).max(initial=0) > 1:
        raise InputError(f"{label} holds a BOOL that is neither 0 nor 1")
    return array.reshape(shape)


def array_from_elements(name: str, datatype: str, shape: tuple[int, ...], elements: object) -> Array:
    """Returns the tensor of numbers, strings or nested lists of them, whose order is that of the tensor.

    Raises:
        InputError: the datatype is unknown, an element is none of it, or there are not so many.
    """
    label = f"input {name!r}"
    dtype_of(datatype, label)
    if not isinstance(elements, list):
        raise InputError(f"{label} has no data", hint="a list of elements, or binary_data_size and bytes")
    array = tensor_from_plain(elements, DTYPES[datatype], label)
    _check_count(label, shape, array.size)
    return array.reshape(shape)


def raw_from_array(array: Array) -> bytes:
    """Returns the elements of a tensor as raw bytes, in order; texts as UTF-8."""
    if array.dtype.kind not in "OSUT":
        plain = array.astype(array.dtype.newbyteorder("<"), copy=False) if array.dtype.kind in "iuf" else array
        return plain.tobytes()
    parts = bytearray()
    for item in array.ravel().tolist():
        text = item if isinstance(item, bytes) else str(item).encode("utf-8", "surrogateescape")
        parts += _LENGTH.pack(len(text)) + text
    return bytes(parts)


def dtype_of(datatype: object, label: str) -> np.dtype[Any]:
    """Returns the numpy dtype of a datatype that somebody sent.

    Raises:
        InputError: there is none of that name.
    """
    if not isinstance(datatype, str) or datatype not in DTYPES:
        raise InputError(f"{label} has the unknown datatype {datatype!r:.40}", hint=did_you_mean(str(datatype), DTYPES))
    return numpy_dtype(DTYPES[datatype])


def _check_count(label: str, shape: tuple[int, ...], num_elements: int) -> None:
    if num_elements != math.prod(shape):
        raise InputError(f"{label} must have {math.prod(shape)} elements ({list(shape)}), got {num_elements}")


def _texts(raw: Buffer, label: str) -> Iterator[bytes]:
    place = 0
    while place < len(raw):
        if len(raw) - place < _LENGTH.size:
            raise InputError(f"{label} ends within the length of an element")
        (length,) = _LENGTH.unpack_from(raw, place)
        place += _LENGTH.size
        if length > len(raw) - place:
            raise InputError(f"{label} has an element of {length} bytes, and {len(raw) - place} bytes left")
        yield bytes(raw[place : place + length])
        place += length
