# SPDX-License-Identifier: Apache-2.0
"""What a processor calls itself: times of two machines are compared only where these are the same."""

import platform
from functools import cache
from pathlib import Path


@cache
def cpu_name() -> str:
    """Returns what this machine's processor calls itself, its architecture where it does not say."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
