# SPDX-License-Identifier: Apache-2.0
"""A child process that runs jobs one after the other, until it crashes, hangs or is closed.

The parent writes the name of a job's folder to the child's standard input and waits for a line on its standard output;
what the libraries print goes to standard error, of which the last bytes are kept. A child that died, whose time was
over or whose caller was interrupted is gone with its whole group; the job that was running is refused with the reason.

It lives in a sandbox (`nndeploy.sandbox`): it writes its own folder, and reads programs, what its workers share, and
the libraries that the user named; one that needs more of these is started anew.
"""

import contextlib
import selectors
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from nndeploy.errors import BuildRefusedError, UnavailableError, describe_exit, full_disk
from nndeploy.files.held_folder import HeldFolder
from nndeploy.jobs.messages import FULL, NO_SPACE, Request, Response, request_to_folder, response_from_folder
from nndeploy.jobs.tasks import reason_of
from nndeploy.jobs.temporary import is_nearly_full, temporary_folder
from nndeploy.sandbox import places
from nndeploy.sandbox.allowed import Sandbox
from nndeploy.sandbox.child_process import (
    ChildProcess,
    StartsChildren,
    drained,
    end_child,
    start_child,
)

POLL_SECONDS = 0.2
LOG_SECONDS = 0.5  # how long to wait for the end of the log of a child that is gone
END_SECONDS = 5.0  # how long a process that closed its output may take to end
_NOT_THERE = ("No module named 'nndeploy", "No module named nndeploy")


class Child:
    """One child process; `call` starts it where it is not running."""

    def __init__(
        self,
        start: StartsChildren = start_child,
        import_paths: Sequence[str] = (),
        shared_folder: str | None = None,
        *,
        has_sandbox: bool = True,
    ) -> None:
        """Makes a child that is not running yet; `start` starts it, in a thread that outlives it: with that it dies.

        It imports from `import_paths` what its own Python has not.
        It may read `shared_folder`, and where it has no sandbox everything.
        """
        self._start_child = start
        self._import_paths = import_paths
        self._reads = () if shared_folder is None else (shared_folder,)
        self._has_sandbox = has_sandbox
        self._allowed: Sandbox | None = None
        self._held = HeldFolder("job")
        self._folder = str(self._held.path)
        self._process: ChildProcess | None = None
        self._log = bytearray()
        self._reader: threading.Thread | None = None

    def call(
        self, request: Request, seconds_limit: float, keep: Callable[[Path], None] = lambda _folder: None
    ) -> Response:
        """Returns what the child answered; `keep` gets the folder in which the answer lies.

        Raises:
            BuildRefusedError: the library refused, the child crashed, or its time was over.
            InputOutputError: no space is left for what passes between the two.
            NndeployError: the task raised one; it is raised here again.
        """
        with temporary_folder("", inside=self._folder) as folder:
            request_to_folder(request, folder)
            self._may_read([read for path in request.libraries() for read in places.named(path)])
            try:
                self._perform(str(folder), seconds_limit)
                keep(folder)
                return response_from_folder(folder)
            except BuildRefusedError as err:
                if is_nearly_full(str(folder), len(request.model or b"")):
                    raise full_disk() from err
                raise

    def close(self) -> None:
        """Ends the process and removes its folder; a second call does nothing."""
        self._stop()
        self._held.close()

    def _perform(self, folder: str, seconds_limit: float) -> None:
        process = self._running()
        try:
            answer = _answer_within(process, folder, seconds_limit)
        except BaseException:
            self._stop()  # interrupted: what it still answers is of no job that comes later
            raise
        if answer is None:
            self._stop()
            raise BuildRefusedError(f"no answer within {seconds_limit:g} s")
        if answer == NO_SPACE:
            self._stop()
            raise full_disk()
        if not answer or not Path(folder, "response.json").exists():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(END_SECONDS)  # its output is closed: let it end by itself, so that its status tells
            returncode = self._stop()
            last = " ".join(bytes(self._log).decode("utf-8", "replace").strip().splitlines()[-1:])
            if any(text in last for text in _NOT_THERE):
                raise UnavailableError(
                    f"cannot start a child process: {last}", hint="install nndeploy into this Python"
                )
            raise BuildRefusedError(reason_of(Exception(f"the library {describe_exit(returncode)} {last}")))
        if answer == FULL:
            self._stop()

    def _may_read(self, paths: Sequence[str]) -> None:
        """Ends a process whose sandbox does not let it read all of `paths`; the next one will."""
        if self._has_sandbox and (self._allowed is None or not self._allowed.covers(paths)):
            self._stop()
            self._reads = tuple(dict.fromkeys((*self._reads, *paths)))
            self._allowed = Sandbox(self._reads, (self._folder,))

    def _running(self) -> ChildProcess:
        if self._process is None:
            self._process = self._start()
            assert self._process.stderr is not None
            self._reader, self._log = drained(self._process.stderr)
        return self._process

    def _start(self) -> ChildProcess:
        folder = Path(self._folder)
        return self._start_child("nndeploy.jobs.main", (), folder, subprocess.PIPE, self._import_paths, self._allowed)

    def _stop(self) -> int:
        """Ends the process with its group; returns its status."""
        process, self._process = self._process, None
        if process is None or self._reader is None:
            return 0
        end_child(process, self._reader, LOG_SECONDS)
        return int(process.returncode)


def _answer_within(process: ChildProcess, folder: str, seconds: float) -> bytes | None:
    """Asks for the job in `folder`; returns the child's next line, b"" where it ended, None where the time was over."""
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(folder.encode() + b"\n")
        process.stdin.flush()
    deadline = time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while (left := deadline - time.monotonic()) > 0:
            if selector.select(min(left, POLL_SECONDS)):
                return process.stdout.readline()
            if process.poll() is not None:
                return b""  # it ended, and something that it started keeps its output open
    return None
