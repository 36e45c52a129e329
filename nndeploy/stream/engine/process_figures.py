# SPDX-License-Identifier: Apache-2.0
"""Figures of this process, or of several as one, under the names that every Prometheus client library gives them.

Source: Prometheus, "Writing client libraries", process metrics; proc(5).
"""

import os
import resource
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from nndeploy.stream.engine.exposition import family

_PAGE_BYTES, _TICKS = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")
_UTIME, _STIME, _CUTIME, _CSTIME, _START, _VSIZE, _RSS = 11, 12, 13, 14, 19, 20, 21
"""Fields of /proc/PID/stat behind the name of the process."""


def num_open_files(pid: int | str = "self") -> int:
    """Returns how many descriptors a process has open, this one if none is named."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def process_families(workers: Sequence[int] = (), *, is_open_metrics: bool = False) -> Iterator[str]:
    """Yields the lines of the time, memory and open files of this process.

    With `workers`, children of this one's parent, they are of these and the parent together: what is shared is counted
    once, the time is also that of workers that have ended, and the open files are those of the one that has most.
    """
    booted = int(Path("/proc/stat").read_text().partition("\nbtime ")[2].partition("\n")[0])
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    first, ticks, memory, addresses, files = _of_several(workers) if workers else _of_this()
    for name, kind, about, value in (
        ("cpu_seconds_total", "counter", "User and system time in seconds.", ticks / _TICKS),
        ("start_time_seconds", "gauge", "When it began, in seconds since 1970.", booted + first / _TICKS),
        ("resident_memory_bytes", "gauge", "Memory that it has in bytes.", memory),
        ("virtual_memory_bytes", "gauge", "Addresses that it has in bytes.", addresses),
        ("open_fds", "gauge", "Open files.", files),
        ("max_fds", "gauge", "How many may be open.", float("inf") if most == resource.RLIM_INFINITY else most),
    ):
        yield from family(f"process_{name}", kind, about, [({}, value)], is_open_metrics=is_open_metrics)


def _of_this() -> tuple[int, float, int, int, int]:
    """Returns when this process began, the time it took, both in ticks, its memory, addresses and open files."""
    found, usage = _stat("self"), resource.getrusage(resource.RUSAGE_SELF)
    ticks = (usage.ru_utime + usage.ru_stime) * _TICKS
    return found[_START], ticks, found[_RSS] * _PAGE_BYTES, found[_VSIZE], num_open_files()


def _of_several(workers: Sequence[int]) -> tuple[int, float, int, int, int]:
    parent = os.getppid()
    found = _stat(parent)
    first, ticks = found[_START], found[_UTIME] + found[_STIME] + found[_CUTIME] + found[_CSTIME]
    memory, addresses, files = _shared_out(parent), found[_VSIZE], num_open_files(parent)
    for pid in workers:
        with suppress(OSError):  # it has ended: its time is among that of the parent's children
            found = _stat(pid)
            ticks += found[_UTIME] + found[_STIME]
            memory, addresses = memory + _shared_out(pid), addresses + found[_VSIZE]
            files = max(files, num_open_files(pid))
    return first, ticks, memory, addresses, files


def _stat(pid: int | str) -> list[int]:
    text = Path(f"/proc/{pid}/stat").read_bytes().decode("ascii", "replace")
    _, *numbers = text.rpartition(") ")[2].split()  # from the third field on; the name may hold anything
    return [0, *map(int, numbers)]


def _shared_out(pid: int) -> int:
    """Returns the memory of a process in bytes, of a page that several have its share."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    return int(text.partition("\nPss:")[2].split()[0]) << 10
