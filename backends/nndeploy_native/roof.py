# SPDX-License-Identifier: Apache-2.0
"""What the processor does at most, measured by the kernel library (`c/model/roof.c`)."""

from nndeploy.errors import UnavailableError
from nndeploy.plugin.interface import Roof
from nndeploy.target.target import host_target
from nndeploy_native.kernel_library import kernel_library

FLOAT32, INT8, READING = 0, 1, 2
"""NND_PROBE_FLOAT32 and the two after it."""
LEAST_BYTES, MOST_BYTES = 1 << 14, 1 << 28
"""The sizes of memory that are read; more is not held by caches either."""


def measured_roof(threads: int | None, most_bytes: int) -> Roof:
    """Returns the roof for so many threads, None: one a core, and sizes of memory up to the first from `most_bytes` on.

    Raises:
        UnavailableError: the kernel library is not installed, or there is no memory or thread for it.
    """
    library, threads = kernel_library("fp32"), threads or host_target().num_cores
    sizes = [LEAST_BYTES]
    while sizes[-1] < min(most_bytes, MOST_BYTES):
        sizes.append(2 * sizes[-1])
    float32, int8, *reading = (
        float(library.nnd_probe(*one, threads))
        for one in [(FLOAT32, 0), (INT8, 0), *((READING, size) for size in sizes)]
    )
    if not all((float32, int8, *reading)):
        raise UnavailableError(f"what {threads} threads do at most cannot be measured here")
    for at in reversed(range(len(reading) - 1)):
        reading[at] = max(reading[at], reading[at + 1])  # fewer bytes are read no slower
    return Roof(threads, float32, int8, dict(zip(sizes, reading, strict=True)))
