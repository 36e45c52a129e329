# SPDX-License-Identifier: Apache-2.0
"""Figures of this process under the names that every Prometheus client library gives them.

Source: Prometheus, "Writing client libraries", process metrics; proc(5).
"""

import os
import resource
from collections.abc import Iterator
from pathlib import Path

from nndeploy.stream.engine.exposition import family

_PAGE_BYTES, _TICKS = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")


def num_open_files() -> int:
    """Returns how many descriptors this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


def process_families(*, is_open_metrics: bool = False) -> Iterator[str]:
    """Yields the lines of this process's time, memory and open files."""
    text = Path("/proc/self/stat").read_bytes().decode("ascii", "replace")
    found = text.rpartition(") ")[2].split()  # from the third field on; the name may hold anything
    booted = int(Path("/proc/stat").read_text().partition("\nbtime ")[2].partition("\n")[0])
    usage, most = resource.getrusage(resource.RUSAGE_SELF), resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    for name, kind, about, value in (
        ("cpu_seconds_total", "counter", "User and system time in seconds.", usage.ru_utime + usage.ru_stime),
        ("start_time_seconds", "gauge", "When it began, in seconds since 1970.", booted + int(found[19]) / _TICKS),
        ("resident_memory_bytes", "gauge", "Memory that it has in bytes.", int(found[21]) * _PAGE_BYTES),
        ("virtual_memory_bytes", "gauge", "Addresses that it has in bytes.", int(found[20])),
        ("open_fds", "gauge", "Open files.", num_open_files()),
        ("max_fds", "gauge", "How many may be open.", float("inf") if most == resource.RLIM_INFINITY else most),
    ):
        yield from family(f"process_{name}", kind, about, [({}, value)], is_open_metrics=is_open_metrics)
