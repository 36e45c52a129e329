# SPDX-License-Identifier: Apache-2.0
"""Memory that this process needs no longer, given back to the system while the process lives."""

import contextlib
import ctypes
import mmap
from functools import cache


def give_back(memory: memoryview, begin: int, end: int) -> None:
    """Gives back the whole pages of a part of private memory, which may be written; they are zeros from then on.

    Nothing happens on a system that does not take them.
    """
    import numpy as np  # which those who start the command need not

    address = int(np.frombuffer(memory, np.uint8).ctypes.data) if len(memory) else 0
    first = -(-(address + begin) // mmap.PAGESIZE) * mmap.PAGESIZE
    last = (address + end) // mmap.PAGESIZE * mmap.PAGESIZE
    if first < last:
        _libc().madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), mmap.MADV_DONTNEED)


def give_heap_back() -> None:
    """Gives back what was freed of the C library's heap."""
    with contextlib.suppress(AttributeError):  # no glibc
        _libc().malloc_trim(0)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)
