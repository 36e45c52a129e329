# SPDX-License-Identifier: Apache-2.0
"""Reads and writes arrays in NumPy's .npy form; what is read may have been written by anybody.

The header is taken apart here and held against the number of bytes that follow before anything is allocated, so a
header that claims terabytes, negative sizes or Python objects is one clear line. Nothing is ever unpickled.

Source: NumPy's documentation of the npy format, versions 1.0, 2.0 and 3.0.
"""

import ast
import math
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO, TypeAlias

import numpy as np

from nndeploy.errors import InputError
from nndeploy.values.types import MAX_RANK

MAGIC = b"\x93NUMPY"
MAX_HEADER_BYTES = 16384  # a header of rank 64 has less than 2 kB
MAX_SIZE = 1 << 62

Read: TypeAlias = Callable[[int], bytes]

_Array: TypeAlias = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class NpyHeader:
    """What stands before the data; `num_bytes` is its own length."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    is_fortran: bool
    num_bytes: int

    @property
    def data_bytes(self) -> int:
        """How many bytes of data must follow."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_npy(read: Read, total_bytes: int) -> _Array:
    """Returns the array in a stream of exactly `total_bytes`; `read(n)` gives the next n bytes, fewer at the end.

    Raises:
        InputError: the bytes are no array, hold Python objects, or are more or fewer than the header says.
    """
    header = _read_header(read)
    if header.data_bytes != total_bytes - header.num_bytes:
        raise InputError(
            f"the header says {_text(header)}, {header.data_bytes} bytes, but {total_bytes - header.num_bytes} follow"
        )
    data = read(header.data_bytes)
    if len(data) != header.data_bytes:
        raise InputError(f"ends after {len(data)} of {header.data_bytes} bytes")
    return _array(header, data)


def write_npy(file: BinaryIO, array: _Array) -> None:
    """Writes an array; strings as NumPy's fixed-width text, small element types as raw bytes of their size."""
    if array.dtype.kind in "OST":
        array = np.array(array, dtype=np.str_)
    np.lib.format.write_array(file, np.asarray(array, order="C"), allow_pickle=False)


def _read_header(read: Read) -> NpyHeader:
    start = read(len(MAGIC) + 2)
    if start[: len(MAGIC)] != MAGIC or len(start) < len(MAGIC) + 2:
        raise InputError("is no npy array: it does not begin as one")
    major = start[len(MAGIC)]
    if major not in (1, 2, 3):
        raise InputError(f"is an npy array of the unknown version {major}")
    length_bytes = 2 if major == 1 else 4
    length = int.from_bytes(_exactly(read, length_bytes), "little")
    if length > MAX_HEADER_BYTES:
        raise InputError(f"has a header of {length} bytes, more than {MAX_HEADER_BYTES}")
    text = _exactly(read, length).decode("utf-8" if major == 3 else "latin-1", "replace")
    return _header_from_text(text, len(start) + length_bytes + length)


def _exactly(read: Read, count: int) -> bytes:
    data = read(count)
    if len(data) != count:
        raise InputError("ends inside its header")
    return data


_PARSING = threading.Lock()
"""CPython 3.11 counts the depth of its parser for all threads together: where two parse, one may fail (SystemError)."""


def _header_from_text(text: str, num_bytes: int) -> NpyHeader:
    try:
        with _PARSING:
            fields = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError) as err:
        raise InputError("has a header that is no dict") from err
    if not isinstance(fields, dict) or set(fields) != {"descr", "fortran_order", "shape"}:
        raise InputError("has a header without descr, fortran_order and shape")
    if not isinstance(fields["fortran_order"], bool):
        raise InputError(f"has the odd fortran_order {fields['fortran_order']!r:.40}")
    return NpyHeader(_dtype(fields["descr"]), _shape(fields["shape"]), fields["fortran_order"], num_bytes)


def _dtype(descr: object) -> np.dtype[Any]:
    if isinstance(descr, str) and descr.lstrip("<>|=").startswith("O"):
        raise InputError("holds Python objects, which are never loaded", hint="save text as an array of strings")
    if not isinstance(descr, str) or not re.fullmatch(r"[<>|=]?[biufcSUV][0-9]{1,9}", descr):
        raise InputError(f"has elements of the kind {descr!r:.40}, which is not a tensor's")
    try:
        return np.dtype(descr)
    except (TypeError, ValueError) as err:
        raise InputError(f"has elements of the unknown kind {descr!r}") from err


def _shape(shape: object) -> tuple[int, ...]:
    sizes = shape if isinstance(shape, tuple) else None
    if sizes is None or not all(type(size) is int and 0 <= size <= MAX_SIZE for size in sizes):
        raise InputError(f"has the odd shape {shape!r:.80}")
    if len(sizes) > MAX_RANK or math.prod(size or 1 for size in sizes) > MAX_SIZE:
        raise InputError(f"has the odd shape {shape!r:.80}")
    return sizes


def _array(header: NpyHeader, data: bytes) -> _Array:
    if header.dtype.itemsize == 0:
        return np.zeros(header.shape, header.dtype)
    flat = np.frombuffer(data, header.dtype)
    return flat.reshape(header.shape[::-1]).T if header.is_fortran else flat.reshape(header.shape)


def _text(header: NpyHeader) -> str:
    return f"{header.dtype.name}[{','.join(map(str, header.shape))}]"
