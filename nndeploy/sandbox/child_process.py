# SPDX-License-Identifier: Apache-2.0
"""Processes that are started for what a stranger made: in a sandbox, and ended with all that they start.

The parent's side: `start_child` to `kill_group`. The child's: `die_with_parent`, first of all.
"""

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

from nndeploy.errors import UnavailableError
from nndeploy.sandbox import idle_threads
from nndeploy.sandbox.allowed import Sandbox
from nndeploy.sandbox.capabilities import PR_SET_NO_NEW_PRIVS
from nndeploy.sandbox.places import key_folders

MAX_LOG_BYTES = 64 * 1024
_BOOT = (
    "import runpy, sys; module, allowed, count = sys.argv[1], sys.argv[2], int(sys.argv[3]); "
    "sys.path += sys.argv[4 : 4 + count]; sys.argv[1:] = sys.argv[4 + count :]; "
    "from nndeploy.sandbox.enter import enter_said; enter_said(allowed); runpy.run_module(module, run_name='__main__')"
)

_HOMES: WeakKeyDictionary["ChildProcess", Path] = WeakKeyDictionary()
_ChildProcess = TypeVar("_ChildProcess", bound="ChildProcess")
MAX_SWEEPS = 10
"""What forks without end while it is killed is left to the next limit."""

PARENT = "NNDEPLOY_PARENT"
"""The variable that tells a child the number of its parent, which is 1 where that is a container's first process."""

KERNELS_WITHOUT = "NNDEPLOY_KERNELS_WITHOUT"
"""The variable that names instructions which the kernel library does without."""

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


class ChildProcess(Protocol):
    """What `subprocess.Popen` and `nndeploy.sandbox.forked.ForkedProcess` have in common."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | Any: ...
    @property
    def stdin(self) -> IO[bytes] | None: ...
    @property
    def stdout(self) -> IO[bytes] | None: ...
    @property
    def stderr(self) -> IO[bytes] | None: ...

    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, sig: int, /) -> None: ...


class StartsChildren(Protocol):
    """What `start_child` does, by whatever means."""

    def __call__(
        self,
        module: str,
        arguments: Sequence[str],
        folder: Path,
        stdin: int = subprocess.DEVNULL,
        import_paths: Sequence[str] = (),
        sandbox: Sandbox | None = None,
    ) -> ChildProcess: ...


def die_with_parent() -> None:
    """Makes this process die with its parent, gain no privileges and dump no core.

    What those that it starts leave behind becomes its own: whose process takes how much is known as long as it lives.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if hasattr(libc, "prctl"):
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if os.environ.get(PARENT, str(os.getppid())) != str(os.getppid()):
        sys.exit(1)  # the parent died before we could say so
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def child_environment(folder: Path) -> dict[str, str]:
    """Returns the environment of a child; caches lie in its own folder.

    Nothing of it is the user's but the search path, and what kernels are to do without.
    """
    return {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "LANG": "C.UTF-8",
        PARENT: str(os.getpid()),
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "ORT_DISABLE_TELEMETRY": "1",
        idle_threads.VARIABLE: idle_threads.SOON,
        **({KERNELS_WITHOUT: said} if (said := os.environ.get(KERNELS_WITHOUT)) else {}),
    }


def start_child(
    module: str,
    arguments: Sequence[str],
    folder: Path,
    stdin: int = subprocess.DEVNULL,
    import_paths: Sequence[str] = (),
    sandbox: Sandbox | None = None,
    descriptors: Sequence[int] = (),
) -> ChildProcess:
    """Starts `python -m module` in a session of its own, with pipes for its standard output and error.

    `import_paths` are searched after all that its own Python has, so that nothing is shadowed. The module is run inside
    `sandbox`, where the account's keys stay hidden; None is none. It has `descriptors` too, by the same numbers.

    Raises:
        UnavailableError: nobody knows where this Python is, as where it is part of another program.
    """
    if not sys.executable:
        hint = "set sys.executable; from Python, workers=InProcessWorkers() needs no child"
        raise UnavailableError("cannot start a child process: sys.executable is empty", hint=hint)
    command = ["-c", _BOOT, module, sandbox_text(sandbox), str(len(import_paths)), *import_paths, *arguments]
    process = subprocess.Popen(
        [sys.executable, "-I", "-P", "-B", *command],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=child_environment(folder),
        start_new_session=True,
        pass_fds=tuple(descriptors),
    )
    return at_home(process, folder)


def sandbox_text(sandbox: Sandbox | None) -> str:
    """Returns a sandbox as a child is told of it, with the account's keys hidden; "" is none."""
    return "" if sandbox is None else replace(sandbox, hidden=tuple(map(str, key_folders()))).to_text()


def at_home(process: _ChildProcess, folder: Path) -> _ChildProcess:
    """Returns a process of which `kill_group` is to know that its home is a folder."""
    _HOMES[process] = folder
    return process


def kill_group(process: ChildProcess) -> None:
    """Kills a child with its group, and whatever it or those that it started have started in other groups.

    A child that is gone has no descendants any more: what it left is known by its home.
    """
    below = descendants(process.pid) if process.poll() is None else []
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    kill_each(below)
    process.wait()
    if (home := _HOMES.get(process)) is not None:
        _kill_at_home(home)


def end_child(process: ChildProcess, log_reader: threading.Thread, seconds: float) -> None:
    """Kills a child with all that it started, and closes its pipes; its log is read to its end, or for so long."""
    kill_group(process)
    log_reader.join(seconds)
    log = () if log_reader.is_alive() else (process.stderr,)
    for pipe in (process.stdin, process.stdout, *log):
        if pipe is not None:
            with contextlib.suppress(OSError, ValueError):  # what was written to it is not wanted any more
                pipe.close()


def _kill_at_home(home: Path) -> None:
    for _ in range(MAX_SWEEPS):
        found = list(_at_home(os.fsencode(f"HOME={home}")))
        kill_each(found)
        if not found:
            return


def kill_each(pids: Iterable[int]) -> None:
    """Kills processes by their numbers; those that are gone, or nobody of ours, stay as they are."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _at_home(mark: bytes) -> Iterator[int]:
    """Yields the processes that were started with a home, or one inside it; zombies have none."""
    for name in filter(str.isdigit, os.listdir("/proc") if os.path.isdir("/proc") else ()):  # noqa: PTH112, PTH208
        with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:  # noqa: PTH123
            if any(one == mark or one.startswith(mark + b"/") for one in file.read().split(b"\0")):
                yield int(name)


def drained(stream: IO[bytes]) -> tuple[threading.Thread, bytearray]:
    """Returns a started thread that reads `stream` to its end, and the buffer with the last bytes of it."""
    log = bytearray()

    def read() -> None:
        while chunk := os.read(stream.fileno(), 65536):
            log.extend(chunk)
            del log[:-MAX_LOG_BYTES]

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    return thread, log


def descendants(pid: int) -> list[int]:
    """Returns the processes that a process started, those that these started, and so on; parents come first."""
    found, waiting = list[int](), [pid]
    while waiting:
        children = children_of(waiting.pop())
        found += children
        waiting += children
    return found


def children_of(pid: int) -> list[int]:
    """Returns the processes that a process has started, or that became its own."""
    children = list[int]()
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                children += map(int, (task / "children").read_text(encoding="ascii").split())
    return children
