# SPDX-License-Identifier: Apache-2.0
"""How much memory a compile may take: the limit of each process, and what a process and its children have together."""

import contextlib
import gc
import os
import resource
from pathlib import Path

from nndeploy.files.given_back import give_heap_back
from nndeploy.sandbox.child_process import descendants

MEMORY_SHARE = 0.75
"""Share of the machine's memory that a compile may take."""
MOST_KEPT_BYTES = 256 << 20
"""What the libraries themselves take is half of it."""
_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


def machine_memory_bytes() -> int:
    """Returns the memory of this machine, or of the container that this process is in."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError, ValueError):  # no such group, or "max"
        memory = min(memory, int(_CGROUP_LIMIT.read_text(encoding="ascii")))
    return memory


def default_memory_limit() -> int:
    """Returns what a compile may take in all where nobody says."""
    return int(machine_memory_bytes() * MEMORY_SHARE)


def limit_memory(num_bytes: int) -> None:
    """Lets this process, and those that it will start, take no more than so many bytes each; never more than before."""
    _limit(resource.RLIMIT_DATA, num_bytes)


def limit_file_size(num_bytes: int) -> None:
    """Lets this process, and those that it will start, write no file of more bytes; never more than before."""
    _limit(resource.RLIMIT_FSIZE, num_bytes)


def limit_processor_time(seconds: int) -> None:
    """Lets this process, and those that it will start, compute no longer than that each; never longer than before."""
    _limit(resource.RLIMIT_CPU, seconds)


def _limit(what: int, most: int) -> None:
    _, hard = resource.getrlimit(what)
    least = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(what, (least, least))


def give_memory_back() -> None:
    """Gives what this process has freed back to the system."""
    gc.collect()
    give_heap_back()


def keeps_much() -> bool:
    """Returns whether this process has more memory than one with nothing to do should, after it gave back what it can.

    Only one that seems to do so: looking for what can be freed takes some ten milliseconds.
    """
    if not _has_much():
        return False
    give_memory_back()
    return _has_much()


def _has_much() -> bool:
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return False
    return int(status.partition("RssAnon:")[2].split()[0]) << 10 > MOST_KEPT_BYTES


def memory_limit() -> int:
    """Returns what this process may take: its limit, at most what a compile may take in all."""
    soft, _ = resource.getrlimit(resource.RLIMIT_DATA)
    return default_memory_limit() if soft == resource.RLIM_INFINITY else min(soft, default_memory_limit())


def used_bytes(pid: int) -> int:
    """Returns the memory that a process and all below it have for themselves; 0 for those that have ended."""
    return sum(map(_own_bytes, (pid, *descendants(pid))))


def _own_bytes(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError):
        _, resident, shared, *_ = map(int, Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split())
        return max(0, resident - shared) * os.sysconf("SC_PAGE_SIZE")
    return 0
