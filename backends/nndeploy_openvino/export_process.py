# SPDX-License-Identifier: Apache-2.0
"""The process in which a blob is made: it has imported the library, and done nothing with it yet.

Where this process is as new and has one thread, a copy of it is kept (`stand_by`), off which each of them is forked.
Elsewhere each is started anew, which takes 0.2 s more. Law: both give the same bytes.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import BinaryIO

from nndeploy_openvino.export_blob import main
from nndeploy_openvino.library import core, openvino

_THREADS = "/proc/self/task"


@dataclass(frozen=True, slots=True)
class StandBy:
    """The copy of this process: a request is a line of JSON, its answers are a process's number and how it ended."""

    requests: BinaryIO
    answers: BinaryIO
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, folder: Path, precision: str, seconds: float) -> int:
        """Returns the status of a process that left in `folder` what `export_blob` leaves.

        Raises:
            subprocess.TimeoutExpired: it would have taken longer.
            OSError, ValueError: the copy is gone.
        """
        with self._lock:
            self.requests.write(json.dumps([str(folder), precision]).encode() + b"\n")
            pid = int(self.answers.readline())
            is_late = not select.select([self.answers], [], [], seconds)[0]
            if is_late:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            status = int(self.answers.readline())
        if is_late:
            raise subprocess.TimeoutExpired("", seconds)
        return status


@cache
def stand_by() -> StandBy | None:
    """Returns the copy, made now; None where this process has other threads, or has used the library before."""
    openvino()
    if core.cache_info().currsize or not os.path.isdir(_THREADS) or len(os.listdir(_THREADS)) > 1:  # noqa: PTH112, PTH208
        return None
    reads, requests = os.pipe()
    answers, writes = os.pipe()
    try:
        pid = os.fork()
    except OSError:
        for descriptor in (reads, requests, answers, writes):
            os.close(descriptor)
        return None
    if pid == 0:
        try:
            _serve(reads, writes)
        finally:
            os._exit(0)
    os.close(reads)
    os.close(writes)
    return StandBy(os.fdopen(requests, "wb", 0), os.fdopen(answers, "rb", 0))


def export(folder: Path, precision: str, seconds: float) -> int:
    """Compiles the IR in `folder`; returns how the process ended that left a blob there, or a reason.

    Raises:
        subprocess.TimeoutExpired: it would have taken more than `seconds`.
    """
    if (copy := stand_by()) is not None:
        with contextlib.suppress(OSError, ValueError):
            return copy.run(folder, precision, seconds)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-P", "-m", "nndeploy_openvino.export_blob", str(folder), precision]
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False
    )
    return done.returncode


def _serve(reads: int, writes: int) -> None:
    """Forks a process for each request until nobody can ask any more; it holds nothing open that is its parent's."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    for number in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208
        if number > 2 and number not in (reads, writes):
            with contextlib.suppress(OSError):
                os.close(number)
    with os.fdopen(reads, "rb") as requests:
        for line in requests:
            folder, precision = json.loads(line)
            pid = os.fork()
            if pid == 0:
                status = 1
                try:
                    main(Path(folder), precision)
                    status = 0
                finally:
                    os._exit(status)
            os.write(writes, b"%d\n" % pid)
            os.write(writes, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
