# SPDX-License-Identifier: Apache-2.0
"""A session that lives in a process of its own, in a sandbox: what its code does there costs one call, or nothing.

    a crash            another process takes its place and the call is made once more; the second crash is its error
    a hang             the process is ended when the call's time is over, which is its error
    anything else      as if the session were here

Law: no call is made three times, and none is answered by what was computed for another.
"""

import contextlib
import json
import os
import select
import subprocess
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

from nndeploy.errors import (
    DataError,
    InputOutputError,
    NndeployError,
    OtherVariantError,
    PolicyError,
    UnavailableError,
    describe_exit,
    error_from_json,
    one_line,
)
from nndeploy.files.account_folders import NOBODYS_HOME
from nndeploy.files.held_folder import HeldFolder
from nndeploy.runtime.chain import on_host
from nndeploy.runtime.isolated_worker import WorkerRequest
from nndeploy.runtime.shared_values import SharedValues
from nndeploy.sandbox import places
from nndeploy.sandbox.allowed import Sandbox
from nndeploy.sandbox.child_process import ChildProcess, drained, end_child, kill_group, start_child
from nndeploy.values.types import Value

MAX_ANSWER_BYTES = 1 << 20
_LOG_SECONDS = 0.5


class CallLimits(NamedTuple):
    """How long opening a session may take, and a call; None: any time."""

    opening_seconds: float
    item_seconds: float | None


class _CrashError(Exception):
    """The process is gone; `str(error)` says how."""


class IsolatedSession:
    """A session in a worker; several threads may call `run`, one after the other is served."""

    def __init__(self, request: WorkerRequest, import_paths: tuple[str, ...], limits: CallLimits) -> None:
        """Starts the worker and opens the session; `request` names no memory yet.

        Raises:
            NndeployError: what opening it raised.
            UnavailableError: the worker ended before it was open.
        """
        self._given, self._made = SharedValues(), SharedValues()
        self._request = replace(request, given=self._given.descriptor, made=self._made.descriptor)
        self._import_paths = import_paths
        self._limits = limits
        self._held = _held_folder()
        self._folder = self._held.path if self._held is not None else NOBODYS_HOME / os.urandom(8).hex()
        reads = [path for named in request.custom_op_libraries for path in places.named(named)]
        self._sandbox = Sandbox(tuple(reads), () if self._held is None else (str(self._folder),))
        self._starter = ThreadPoolExecutor(1, "nndeploy-isolated")  # a child dies with the thread that started it
        self._lock = threading.Lock()
        self._worker: _Worker | None = None
        try:
            self._running()
        except BaseException:
            self.close()
            raise

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the value of every output by name.

        Raises:
            DataError: the call took too long, or ended its worker twice.
            NndeployError: what the session raised there.
        """
        values = on_host(inputs, inputs)
        with self._lock:
            with contextlib.suppress(_CrashError):
                return self._called(values)
            try:
                return self._called(values)
            except _CrashError as err:
                raise DataError(f"{err}, twice; it is not tried again", hint="nndeploy verify BUNDLE") from err

    def close(self) -> None:
        """Ends the worker; a second call does nothing."""
        with self._lock:
            self._end()
            self._starter.shutdown()
            self._given.close()
            self._made.close()
            if self._held is not None:
                self._held.close()

    def _called(self, values: Mapping[str, Value]) -> dict[str, Value]:
        worker = self._running()
        try:
            told = worker.answer(self._given.write(values), self._limits.item_seconds)
        except TimeoutError as err:
            self._end()
            what = f"no answer within {self._limits.item_seconds:g} s"
            raise DataError(what, hint="--item-timeout gives more") from err
        except _CrashError:
            self._end()
            raise
        try:
            return self._made.read(told)
        except DataError:
            self._end()  # what it says next would be of this call too
            raise

    def _running(self) -> "_Worker":
        if self._worker is None:
            for values in (self._given, self._made):
                values.forget()
            self._worker = self._starter.submit(self._start).result()
            try:
                self._worker.opened(self._limits.opening_seconds)
            except _CrashError as err:
                self._end()
                raise UnavailableError(f"the worker {err} while it opened") from err
        return self._worker

    def _start(self) -> "_Worker":
        descriptors = (self._request.descriptor, self._given.descriptor, self._made.descriptor)
        return _Worker(
            start_child(
                "nndeploy.runtime.isolated_worker", [self._request.to_text()], self._folder, subprocess.PIPE,
                self._import_paths, self._sandbox, descriptors,
            )
        )  # fmt: skip

    def _end(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.end()


class _Worker:
    """One process: asked by a line, and answering by one."""

    def __init__(self, process: ChildProcess) -> None:
        assert process.stderr is not None
        self._process = process
        self._reader, self._log = drained(process.stderr)
        assert process.stdout is not None
        self._poll = select.poll()
        self._poll.register(process.stdout, select.POLLIN)

    def opened(self, seconds: float) -> None:
        """Waits until the session is open; raises what opening it raised."""
        try:
            self._answer(seconds)
        except TimeoutError as err:
            raise _CrashError(f"did not respond within {seconds:.0f} s") from err

    def answer(self, told: int, seconds: float | None) -> int:
        """Returns what is told of the outputs, where so much is told of the inputs.

        Raises:
            TimeoutError: it took too long.
            NndeployError: what the session raised.
        """
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            os.write(self._process.stdin.fileno(), b"%d\n" % told)
        return self._answer(seconds)

    def _answer(self, seconds: float | None) -> int:
        line = self._line(seconds)
        if not line.endswith(b"\n"):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_LOG_SECONDS)
            raise _CrashError(self._how_it_ended())
        try:
            said = json.loads(line)
            if "error" not in said:
                return int(said["bytes"])
            error = _error_from(said)
        except (ValueError, TypeError, KeyError, AttributeError) as err:
            raise _CrashError("sent an invalid response") from err
        raise error

    def _line(self, seconds: float | None) -> bytes:
        """Returns what it writes up to the end of a line, or of all, or of what an answer may have."""
        assert self._process.stdout is not None
        stream, line = self._process.stdout.fileno(), b""
        deadline = None if seconds is None else time.monotonic() + seconds
        while not line.endswith(b"\n") and len(line) < MAX_ANSWER_BYTES:
            if deadline is not None and not self._poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                raise TimeoutError
            if not (piece := os.read(stream, MAX_ANSWER_BYTES)):
                break
            line += piece
        return line

    def _how_it_ended(self) -> str:
        returncode = self._process.poll()
        kill_group(self._process)
        self._reader.join(_LOG_SECONDS)
        last = bytes(self._log).decode("utf-8", "replace").strip().splitlines()[-1:]
        ended = "closed its output" if returncode is None else describe_exit(returncode)
        return one_line(f"{ended} {' '.join(last)}")[:300].strip()

    def end(self) -> None:
        """Ends the process with all that it started."""
        end_child(self._process, self._reader, _LOG_SECONDS)


def _held_folder() -> HeldFolder | None:
    """Returns a folder for what a worker writes; a machine without any has workers that write nothing."""
    try:
        return HeldFolder("isolated")
    except OSError:
        return None


def _error_from(said: Mapping[str, Any]) -> NndeployError:
    error = error_from_json({key: str(said["error"][key])[:1000] for key in ("code", "what", "where", "hint")})
    if said.get("is_of_variant"):
        return OtherVariantError(error.what, where=error.where, hint=error.hint)
    return (
        error
        if isinstance(error, DataError | InputOutputError | PolicyError | UnavailableError)
        else DataError(str(error))
    )
