# SPDX-License-Identifier: Apache-2.0
"""A counter of the processor through perf_event_open, where the system has one and allows it.

Source: perf_event_open(2); struct perf_event_attr of linux/perf_event.h, its first 64 bytes (PERF_ATTR_SIZE_VER0).
"""

import ctypes
import os
import platform
import struct

CACHE_MISSES = (0, 3)
"""PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES: of the last level, as a rule."""
_SYSTEM_CALLS = {"x86_64": 298, "aarch64": 241}
_ATTR_BYTES = 64
_EXCLUDE_KERNEL_AND_HYPERVISOR = 1 << 5 | 1 << 6


def opened_counter(kind: tuple[int, int] = CACHE_MISSES) -> int:
    """Returns a file descriptor from which 8 bytes, the count of this thread, can be read at any time.

    Raises:
        OSError: the processor or the system has no such counter, or does not let us read it.
    """
    number = _SYSTEM_CALLS.get(platform.machine())
    if number is None:
        raise OSError(0, f"perf_event_open: not known for {platform.machine()}")
    event_type, config = kind
    attr = struct.pack("=IIQQQQQ", event_type, _ATTR_BYTES, config, 0, 0, 0, _EXCLUDE_KERNEL_AND_HYPERVISOR)
    attr += bytes(_ATTR_BYTES - len(attr))
    library = ctypes.CDLL(None, use_errno=True)
    descriptor = int(library.syscall(number, ctypes.c_char_p(attr), 0, -1, -1, 0))
    if descriptor < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"perf_event_open: {os.strerror(error)}")
    return descriptor
