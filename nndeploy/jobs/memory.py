# SPDX-License-Identifier: Apache-2.0
"""How much memory a compile may take: the limit of each process, and what a process and its children have together."""

import contextlib
import os
import resource
from pathlib import Path

MEMORY_SHARE = 0.75
"""Share of the machine's memory that a compile may take."""
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
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    least = num_bytes if hard == resource.RLIM_INFINITY else min(num_bytes, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (least, least))


def memory_limit() -> int:
    """Returns what this process may take: its limit, at most what a compile may take in all."""
    soft, _ = resource.getrlimit(resource.RLIMIT_DATA)
    return default_memory_limit() if soft == resource.RLIM_INFINITY else min(soft, default_memory_limit())


def used_bytes(pid: int) -> int:
    """Returns the memory that a process and all below it have for themselves; 0 for those that have ended."""
    used, waiting = 0, [pid]
    while waiting:
        folder = Path("/proc", str(waiting.pop()))
        with contextlib.suppress(OSError, ValueError):
            _, resident, shared, *_ = map(int, (folder / "statm").read_text(encoding="ascii").split())
            used += max(0, resident - shared) * os.sysconf("SC_PAGE_SIZE")
            for task in (folder / "task").iterdir():
                with contextlib.suppress(OSError):
                    waiting += map(int, (task / "children").read_text(encoding="ascii").split())
    return used
