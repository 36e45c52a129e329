# SPDX-License-Identifier: Apache-2.0
"""Memory as kernels need it: where an array lies, bytes that begin at a cache line, and outputs that are used again."""

import ctypes
import math
import sys
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from nndeploy.files.huge_pages import HUGE_PAGES_FROM, memory_to_fill

ByteArray: TypeAlias = "np.ndarray[Any, Any]"

ALIGNMENT = 64
"""A cache line, and the largest vector."""
KEPT_OUTPUTS = 4
"""Memories of each output that are kept for later calls."""
_REFERENCES_OF_FREE = 4
"""References to bytes that nobody else holds: the list, the array in them, the loop's variable, the argument."""


class OutputMemory:
    """Memory of one output: that of an earlier call is taken again once nobody holds its array any more.

    Fresh memory of the system costs a page fault every 4 KiB, which is more than many a kernel takes to write it.
    """

    def __init__(self, name: str, dtype: Any) -> None:
        self.name = name
        self._dtype = np.dtype(dtype)
        self._kept: list[tuple[ByteArray, ByteArray, int]] = []

    def taken(self, shape: tuple[int, ...]) -> tuple[ByteArray, int]:
        """Returns an array and its address."""
        for number, (memory, array, address) in enumerate(self._kept):
            if sys.getrefcount(memory) == _REFERENCES_OF_FREE:
                if array.shape == shape:
                    return array.view(), address
                del array
                return self._reshaped(number, shape)
        memory, array, address = self._made(shape)
        if len(self._kept) < KEPT_OUTPUTS:
            self._kept.append((memory, array, address))
        return array.view(), address

    def _reshaped(self, number: int, shape: tuple[int, ...]) -> tuple[ByteArray, int]:
        """Returns free memory as an array of another shape, or new memory in its place where it is too small."""
        memory, _, address = self._kept[number]
        start, num_bytes = address - address_of(memory), math.prod(shape) * self._dtype.itemsize
        if start + num_bytes > memory.size:
            self._kept[number] = self._made(shape)
        else:
            array = memory[start : start + num_bytes].view(self._dtype).reshape(shape)
            self._kept[number] = (memory, array, address)
        return self._kept[number][1].view(), self._kept[number][2]

    def _made(self, shape: tuple[int, ...]) -> tuple[ByteArray, ByteArray, int]:
        """Returns bytes, an array in them that begins at a cache line, and its address; views hold the bytes."""
        data = aligned_zeros(math.prod(shape) * self._dtype.itemsize)
        assert isinstance(data.base, np.ndarray)
        array = data.view(self._dtype).reshape(shape)
        return data.base, array, address_of(array)


_HEAD_BYTES, _pointer_at = object.__basicsize__, ctypes.c_void_p.from_address


def _address_by_interface(array: ByteArray) -> int:
    return int(array.__array_interface__["data"][0])


def _address_by_object(array: ByteArray) -> int:
    """NumPy's ABI has the address right behind the object's head; asking for it otherwise takes a microsecond."""
    return _pointer_at(id(array) + _HEAD_BYTES).value or 0


def _address_reader() -> Callable[[ByteArray], int]:
    """Returns the fast way where it gives what NumPy's own does: another interpreter may lay out objects otherwise."""
    if sys.implementation.name != "cpython" or object.__basicsize__ != 2 * ctypes.sizeof(ctypes.c_void_p):
        return _address_by_interface
    probes: list[ByteArray] = [np.zeros(3), np.zeros((2, 4), np.uint8)[1:]]
    is_right = all(_address_by_object(probe) == _address_by_interface(probe) for probe in probes)
    return _address_by_object if is_right else _address_by_interface


address_of = _address_reader()
"""Returns the address of an array's first element."""


def aligned_copy(data: ByteArray) -> ByteArray:
    """Returns a copy of bytes that begins at a cache line."""
    copy = aligned_zeros(data.size)
    copy[:] = data
    return copy


def aligned_zeros(num_bytes: int) -> ByteArray:
    """Returns zeros that begin at a cache line; where they are many, their memory is there before they are written."""
    if num_bytes >= HUGE_PAGES_FROM:
        return memory_to_fill(num_bytes, at_once=True)
    whole = np.zeros(num_bytes + ALIGNMENT, np.uint8)
    start = -address_of(whole) % ALIGNMENT
    return whole[start:][:num_bytes]  # in two steps: an empty slice would begin where the whole does
