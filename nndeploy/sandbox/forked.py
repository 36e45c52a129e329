# SPDX-License-Identifier: Apache-2.0
"""Children that a fork server starts: what they import is imported once, not once for each.

Comes in: what `nndeploy.sandbox.child_process.start_child` takes. Goes out: a process with the same face. Law: a server
that cannot be had, or is gone, costs the time of the imports and nothing else.
"""

import contextlib
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import IO

from nndeploy.errors import UnavailableError
from nndeploy.files.held_folder import HeldFolder
from nndeploy.sandbox.allowed import Sandbox
from nndeploy.sandbox.child_process import (
    PARENT,
    ChildProcess,
    at_home,
    child_environment,
    drained,
    end_child,
    sandbox_text,
    start_child,
)
from nndeploy.sandbox.fork_server import MAX_MESSAGE, Request, serve

_THREAD = "nndeploy-forks"
LOG_SECONDS = 1.0


class ForkedProcess:
    """A child that is not this process's own: how it ended is told by the server."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdin: IO[bytes] | None = None
        self.stdout: IO[bytes] | None = None
        self.stderr: IO[bytes] | None = None
        self._is_over = threading.Event()

    def poll(self) -> int | None:
        """Returns how it ended, None while it runs."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Returns how it ended.

        Raises:
            subprocess.TimeoutExpired: it runs longer than `timeout` seconds.
        """
        if not self._is_over.wait(timeout):
            raise subprocess.TimeoutExpired("", timeout or 0.0)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Sends it a signal; one that has ended gets none."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def ended(self, returncode: int) -> None:
        """Hears how it ended."""
        self.returncode = returncode
        self._is_over.set()


class _Connection:
    """A server process, and what it tells; `end` ends it."""

    def __init__(self, connection: socket.socket, end: Callable[[], None]) -> None:
        self._socket, self._end = connection, end
        self._is_gone = False
        self._running: dict[int, ForkedProcess] = {}
        self._answers: queue.SimpleQueue[ForkedProcess | OSError] = queue.SimpleQueue()
        self._lock = threading.Lock()

    def forked(self, request: Request, descriptors: Sequence[int]) -> ForkedProcess:
        """Returns the child of a request, which has the descriptors as standard input, output and error.

        Raises:
            OSError: there is none: the server is gone, or the machine has no place for another process.
        """
        with self._lock:
            if self._is_gone:
                raise ConnectionResetError
            memory = os.memfd_create("nndeploy-request")
            with os.fdopen(memory, "wb") as file:
                file.write(request.to_bytes())
                file.flush()
                file.seek(0)
                socket.send_fds(self._socket, [b"fork"], [memory, *descriptors])
            found = self._answers.get()
        if isinstance(found, OSError):
            raise found
        return found

    def close(self) -> None:
        """Ends the server, and with it what it started."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._end()

    def hear(self) -> None:
        """Listens to the server as long as there is one."""
        with self._socket:
            while message := self._received():
                self._told(json.loads(message))
        self._is_gone = True  # its children died with it
        for process in [*self._running.values()]:
            process.ended(-signal.SIGKILL)
        self._answers.put(ConnectionResetError())

    def _received(self) -> bytes:
        try:
            return self._socket.recv(MAX_MESSAGE)
        except OSError:
            return b""

    def _told(self, message: dict[str, int]) -> None:
        if "started" in message:
            process = ForkedProcess(message["started"])
            self._running[process.pid] = process
            self._answers.put(process)
        elif "failed" in message:
            self._answers.put(OSError(message["failed"], os.strerror(message["failed"])))
        else:
            self._running.pop(message["ended"]).ended(message["status"])


class ForkServer:
    """Starts children as `start_child` does, in a part of the time.

    `connect` gives the server's process when the first child is wanted, where there is no `connection` yet. Children
    import from `import_paths` what their own Python has not.
    """

    def __init__(
        self, import_paths: Sequence[str], connect: Callable[[], _Connection], connection: _Connection | None = None
    ) -> None:
        self._import_paths, self._connect, self._connection = tuple(import_paths), connect, connection
        self._is_closed = False
        self._lock = threading.Lock()

    def start_child(
        self,
        module: str,
        arguments: Sequence[str],
        folder: Path,
        stdin: int = subprocess.DEVNULL,
        import_paths: Sequence[str] = (),
        sandbox: Sandbox | None = None,
    ) -> ChildProcess:
        """Starts `python -m module` as `nndeploy.sandbox.child_process.start_child` does.

        Raises:
            UnavailableError: as there.
        """
        if tuple(import_paths) == self._import_paths:
            request = Request(module, list(arguments), child_environment(folder), sandbox_text(sandbox))
            with contextlib.suppress(OSError, UnavailableError):
                return at_home(_with_pipes(self._connected(), request, stdin), folder)
        return start_child(module, arguments, folder, stdin, import_paths, sandbox)

    def close(self) -> None:
        """Ends the server with all children; a second call does nothing, and later children are started without."""
        with self._lock:
            self._is_closed = True
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _connected(self) -> _Connection:
        with self._lock:
            if self._is_closed:
                raise ConnectionResetError
            if self._connection is None:
                self._is_closed = True  # where it cannot be had, it is asked for once
                self._connection = self._connect()
                self._is_closed = False
            return self._connection


def fork_server(modules: Sequence[str], import_paths: Sequence[str] = ()) -> ForkServer:
    """Returns a server whose process is a Python of its own that has imported `modules`."""
    return ForkServer(import_paths, partial(_started, tuple(modules), tuple(import_paths)))


def fork_server_off_this(import_paths: Sequence[str] = ()) -> ForkServer:
    """Returns a server whose process is forked off this one here and now, with all that this one has imported.

    This process has one thread yet, and has seen nothing of a stranger's.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.environ[PARENT] = str(parent)
        ours.close()
        serve(theirs)
        sys.exit()
    theirs.close()

    def end() -> None:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

    connection = _Connection(ours, end)
    threading.Thread(target=connection.hear, name=_THREAD, daemon=True).start()
    return ForkServer(import_paths, lambda: connection, connection)


def _started(modules: Sequence[str], import_paths: Sequence[str]) -> _Connection:
    """Returns a server that has been started, and is heard by the thread that started it: with that one it would die.

    Raises:
        UnavailableError, OSError: none can be started.
    """
    connected: Future[_Connection] = Future()

    def run() -> None:
        try:
            connection = _with_process(modules, import_paths)
        except Exception as err:
            connected.set_exception(err)
            return
        connected.set_result(connection)
        connection.hear()

    threading.Thread(target=run, name=_THREAD, daemon=True).start()
    return connected.result()


def _with_process(modules: Sequence[str], import_paths: Sequence[str]) -> _Connection:
    folder = HeldFolder("fork")
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        descriptor = theirs.fileno()
        process = start_child(
            "nndeploy.sandbox.fork_server", [str(descriptor), *modules], folder.path,
            import_paths=import_paths, descriptors=[descriptor],
        )  # fmt: skip
    assert process.stderr is not None
    reader, _ = drained(process.stderr)

    def end() -> None:
        end_child(process, reader, LOG_SECONDS)
        folder.close()

    return _Connection(ours, end)


def _with_pipes(connection: _Connection, request: Request, stdin: int) -> ForkedProcess:
    """Returns the child of a request, with pipes for its output and error, and for its input where `stdin` says so."""
    with ExitStack() as theirs, ExitStack() as ours:
        given = None
        if stdin == subprocess.PIPE:
            reads, writes = os.pipe()
            given = ours.enter_context(os.fdopen(writes, "wb"))
        else:
            reads = os.open(os.devnull, os.O_RDONLY)
        theirs.callback(os.close, reads)
        ends, files = [reads], list[IO[bytes]]()
        for _ in range(2):
            reads, writes = os.pipe()
            theirs.callback(os.close, writes)
            ends.append(writes)
            files.append(ours.enter_context(os.fdopen(reads, "rb")))
        process = connection.forked(request, ends)
        process.stdin, (process.stdout, process.stderr) = given, files
        ours.pop_all()
    return process
