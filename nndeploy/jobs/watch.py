# SPDX-License-Identifier: Apache-2.0
"""Watches a process with all that it starts, and ends it when its time or its memory is used up."""

import contextlib
import signal
import subprocess
import threading
import time
from dataclasses import dataclass

from nndeploy.sandbox.child_process import ChildProcess, kill_group
from nndeploy.sandbox.memory import used_bytes

LOOK_SECONDS = 0.5
GRACE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Limits:
    """What a process may take with all that it starts: `seconds` of time, `memory_bytes` of memory."""

    seconds: float
    memory_bytes: int


class Watch:
    """A thread that looks after a process inside a `with` block; `verdict` says why it was ended, "" where it was not.

    `is_memory` says that it was for its memory; `most_bytes` is the most that was seen in use.
    The process has a moment to remove what it has half written. Those that it started die with it.
    """

    def __init__(self, process: ChildProcess, limits: Limits) -> None:
        self.verdict = ""
        self.is_memory = False
        self.most_bytes = 0
        self._process, self._limits = process, limits
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="nndeploy-watch", daemon=True)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _look(self) -> None:
        deadline = time.monotonic() + self._limits.seconds
        while not self._is_over.wait(min(LOOK_SECONDS, max(0.0, deadline - time.monotonic()))):
            if time.monotonic() >= deadline:
                self._end(f"it took more than {self._limits.seconds:g} s")
                return
            if self._process.poll() is not None:
                kill_group(self._process)  # what it left may hold its pipes open, and whoever reads them
                return
            used = used_bytes(self._process.pid)
            self.most_bytes = max(self.most_bytes, used)
            if used > self._limits.memory_bytes:
                self.is_memory = True
                self._end(f"it took more than {self._limits.memory_bytes / 2**30:.3g} GiB of memory")
                return

    def _end(self, verdict: str) -> None:
        self.verdict = verdict
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE_SECONDS)
        kill_group(self._process)
