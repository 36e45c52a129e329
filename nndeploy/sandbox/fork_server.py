# SPDX-License-Identifier: Apache-2.0
"""A process that has imported what its children need, and forks one for each request: they begin at once.

    python -m nndeploy.sandbox.fork_server DESCRIPTOR MODULE ...

Comes in, on a socket: requests, each the name of a module with its arguments, environment and sandbox, and the child's
standard descriptors. Goes out: the number of each child as it starts, and how it ended. Laws: this process has one
thread and sees nothing of a stranger's, so a child is as if it had been started anew; what a child leaves behind when
it ends is ended before that is told.
"""

import contextlib
import errno
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import tempfile
from dataclasses import asdict, dataclass

from nndeploy.sandbox.child_process import MAX_SWEEPS, PARENT, children_of, die_with_parent, kill_each
from nndeploy.sandbox.enter import enter_said

NUM_DESCRIPTORS = 4
"""A request's: the request itself as a file in memory, standard input, output and error."""
MAX_MESSAGE = 256
_FIRST_OTHER = 3


@dataclass(frozen=True, slots=True)
class Request:
    """What a child is to be: `python -m module arguments` in a sandbox ("" is none)."""

    module: str
    arguments: list[str]
    environment: dict[str, str]
    sandbox: str

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self)).encode()


class _Server:
    """The children that run; their numbers are those of the machine."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._running: set[int] = set()
        self._woken, self._wakes = os.pipe()
        for descriptor in (self._woken, self._wakes):
            os.set_blocking(descriptor, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wakes, warn_on_full_buffer=False)

    def next_child(self) -> Request | None:
        """Returns in a child what it is to do; in this process None, when nobody will ask any more."""
        while True:
            ready, _, _ = select.select([self._connection.fileno(), self._woken], [], [])
            if self._woken in ready:
                os.read(self._woken, 4096)
                self._tell_ended()
            if self._connection.fileno() in ready:
                message, descriptors, _, _ = socket.recv_fds(self._connection, MAX_MESSAGE, NUM_DESCRIPTORS)
                if not message:
                    return None
                request = self._forked(descriptors)
                if request is not None:
                    return request

    def _forked(self, descriptors: list[int]) -> Request | None:
        server = os.getpid()
        try:
            pid = os.fork()
        except OSError as err:
            self._tell({"failed": err.errno or errno.EAGAIN})
            pid = -1
        if pid == 0:
            self._connection.detach()
            return _begun(server, descriptors)
        if pid > 0:
            self._running.add(pid)
            self._tell({"started": pid})
        for descriptor in descriptors:
            os.close(descriptor)
        return None

    def _tell_ended(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in self._running:
                self._running.remove(pid)
                self._end_orphans()
                self._tell({"ended": pid, "status": os.waitstatus_to_exitcode(status)})

    def _end_orphans(self) -> None:
        """Kills what became this process's when the one that started it ended."""
        for _ in range(MAX_SWEEPS):
            orphans = [pid for pid in children_of(os.getpid()) if pid not in self._running]
            kill_each(orphans)
            for pid in orphans:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)
            if not orphans:
                return

    def _tell(self, message: dict[str, int]) -> None:
        with contextlib.suppress(OSError):  # who asked is gone: the next look at the socket says so
            self._connection.send(json.dumps(message).encode())


def _begun(server: int, descriptors: list[int]) -> Request:
    """Makes a process that was just forked one of its own; returns what it is to do."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.environ[PARENT] = str(server)
    die_with_parent()
    os.setsid()
    with os.fdopen(descriptors[0], "rb") as file:
        request = Request(**json.loads(file.read()))
    for number, descriptor in enumerate(descriptors[1:]):
        os.dup2(descriptor, number)
    os.closerange(_FIRST_OTHER, os.sysconf("SC_OPEN_MAX"))
    os.environ.clear()
    os.environ.update({**request.environment, PARENT: str(server)})
    tempfile.tempdir = None
    return request


def serve(connection: socket.socket) -> None:
    """Forks children until the other end of the socket closes, and returns; in a child, when it has done its work."""
    die_with_parent()
    with open(os.devnull, "r+b") as nothing:  # noqa: PTH123 - its pipes are its parent's children's
        os.dup2(nothing.fileno(), 0)
        os.dup2(nothing.fileno(), 1)
    request = _Server(connection).next_child()
    if request is not None:
        enter_said(request.sandbox)
        sys.argv = [request.module, *request.arguments]
        runpy.run_module(request.module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    for name in sys.argv[2:]:
        importlib.import_module(name)
    serve(socket.socket(fileno=int(sys.argv[1])))
