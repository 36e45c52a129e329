# SPDX-License-Identifier: Apache-2.0
"""The children that all Python calls of a process share, warm from one compile to the next.

Thousands of small models compile quickly, and a library that crashes costs the job that it had, never the caller. The
children end when nobody wanted them for a while, when the process ends however it ends, and are none of a process that
was forked off.
"""

import os
import sys
import threading
from multiprocessing import util
from pathlib import Path

from nndeploy.jobs.workers import ChildWorkers

SECONDS_LIMIT = 600.0
"""Time limit of each call to a library, the same as the default of the command's --time-limit."""
IDLE_SECONDS = 60.0

_lock = threading.Lock()
_shared: ChildWorkers | None = None
_of_the_parent: list[ChildWorkers | None] = []
"""Kept as they are: to collect them would end children of the process that this one was forked off."""


def shared_workers() -> ChildWorkers:
    """Returns the workers of this process; children start when they are first needed.

    They find plugins wherever the caller does, behind all that their own Python has.
    """
    global _shared
    with _lock:
        if _shared is None:
            paths = [str(Path(path).absolute()) for path in sys.path if path]
            _shared = ChildWorkers(1, SECONDS_LIMIT, IDLE_SECONDS, paths)
            util.Finalize(None, _shared.close, exitpriority=0)  # atexit is not called in processes of multiprocessing
        return _shared


def _forget() -> None:
    global _shared, _lock
    _of_the_parent.append(_shared)
    _shared, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget)
