# SPDX-License-Identifier: Apache-2.0
"""Memory of one record that is kept for the next ones, instead of being given back to the system and taken anew.

Left alone, glibc gives back what is free at the end of a heap beyond some times the largest array, and each record
that needs it again costs a page fault for every 4 KiB: a sixth of the time of a stream of small images.

Source: mallopt(3); glibc, malloc/malloc.c: setting one of the thresholds ends that glibc adapts both to what is freed.
"""

import ctypes
import os
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h."""
KEPT_BYTES = 128 << 20
"""What is free at the end of a heap is given back beyond so much."""
MAPPED_BYTES = 32 << 20
"""Arrays from so many bytes on are mapped each by itself, and given back when they are freed: the most glibc takes."""


@cache
def keep_freed_memory() -> bool:
    """Lets this process keep the memory it frees, and returns whether it does.

    It does not where the user said how memory is kept (MALLOC_... or GLIBC_TUNABLES), or the C library is another one.
    """
    if any(name.startswith("MALLOC_") for name in os.environ) or "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", ""):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(_MMAP_THRESHOLD, MAPPED_BYTES) and mallopt(_TRIM_THRESHOLD, KEPT_BYTES))
