# SPDX-License-Identifier: Apache-2.0
"""Calls that touch files, counted and made to fail in a forked child: Python's side of file_faults.c.

`preloaded()` starts this program again with the library before the C library. `in_child` forks, so that a point costs
what the work costs, and not the start of Python; `recorded` also gives the list of what was written, synced and named.
"""

import ctypes
import errno
import mmap
import os
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")
VARIABLE = "NNDEPLOY_FILE_FAULTS"
DEADLINE_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens at a call: the process is killed, or the call fails, or writes half (and then is killed, or not)."""

    name: str
    kind: int
    errno: int = 0
    stays: bool = False


NOTHING = Fault("none", 0)
FAULTS = (
    Fault("kill", 1),
    Fault("kill in a write", 3),
    Fault("half a write", 4),
    Fault("EIO", 2, errno.EIO),
    Fault("EIO from then on", 2, errno.EIO, stays=True),
    Fault("ENOSPC", 2, errno.ENOSPC),
    Fault("ENOSPC from then on", 2, errno.ENOSPC, stays=True),
    Fault("EINTR", 2, errno.EINTR),
)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child ended: its exit code, None where it was killed; whether it came to the call, and met the fault."""

    code: int | None
    was_reached: bool
    was_met: bool


@dataclass(frozen=True, slots=True)
class Operation:
    """A change: c create, o open, w write, t truncate, s sync, r rename, l link, u unlink, d mkdir."""

    kind: str
    inode: int
    number: int
    path: str
    more: bytes


def preloaded() -> None:
    """Returns in a process that has the library; starts this program again where it has not."""
    if os.environ.get(VARIABLE):
        return
    library = Path(tempfile.gettempdir()) / f"nndeploy-file-faults-{os.getuid()}-{SOURCE.stat().st_mtime_ns}.so"
    if not library.exists():
        made = library.with_suffix(f".{os.getpid()}")
        command = [sys.executable, "-m", "ziglang", "cc", "-shared", "-fPIC", "-O1", "-o", str(made), str(SOURCE)]
        subprocess.run(command, check=True)
        made.replace(library)
    # ONNX Runtime reports home, and numpy's threads do not survive a fork, unless they are told
    told = {"ORT_DISABLE_TELEMETRY": "1", "OPENBLAS_NUM_THREADS": "1", VARIABLE: str(library)}
    os.execve(sys.executable, sys.orig_argv, {**os.environ, **told, "LD_PRELOAD": str(library)})  # noqa: S606


def _library() -> ctypes.CDLL:
    found = ctypes.CDLL(os.environ[VARIABLE])
    found.nnd_watch.argtypes = [
        ctypes.c_char_p, ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_int, ctypes.c_int,
    ]  # fmt: skip
    found.nnd_calls.restype = found.nnd_met.restype = ctypes.c_long
    return found


def in_child(act: Callable[[], int], folder: Path, fault: Fault = NOTHING, at: int = 0, log: int = -1) -> Ended:
    """Returns how a child ended that did `act` in a folder; its `at`-th call there met the fault."""
    counts = mmap.mmap(-1, 16)
    child = os.fork()
    if child == 0:
        code = 99
        try:
            signal.alarm(DEADLINE_SECONDS)
            os.chdir(folder)
            library = _library()
            library.nnd_watch(os.fsencode(folder), fault.kind, fault.errno, at, fault.stays, log)
            code = act()
            library.nnd_unwatch()
            counts[:] = struct.pack("=2q", library.nnd_calls(), library.nnd_met())
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    num_calls, num_met = struct.unpack("=2q", counts[:])
    counts.close()
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL, f"ended by signal {os.WTERMSIG(status)}"
        return Ended(None, True, True)
    return Ended(os.WEXITSTATUS(status), bool(at) and num_calls >= at, num_met > 0)


def recorded(act: Callable[[], int], folder: Path) -> tuple[Ended, list[Operation]]:
    """Returns how a child ended, and what it did to the files of a folder."""
    with tempfile.TemporaryFile() as log:
        ended = in_child(act, folder, log=log.fileno())
        log.seek(0)
        return ended, _operations(log.read())


_HEAD = struct.Struct("=cQqIQ")


def _operations(data: bytes) -> list[Operation]:
    found, at = [], 0
    while at < len(data):
        kind, inode, number, path_length, more_length = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        path, at = data[at : at + path_length], at + path_length
        more, at = data[at : at + more_length], at + more_length
        found.append(Operation(kind.decode(), inode, number, os.fsdecode(path), more))
    return found
