# SPDX-License-Identifier: Apache-2.0
"""A session that lives in a process of its own, in a sandbox: what its code does there costs one call, or nothing.

    a crash            another process takes its place and the call is made once more; the second crash is its error
    a hang             the process is ended when the call's time is over, which is its error
    anything else      as if the session were here

Law: no call is made three times, and none is answered by what was computed for another.
"""

import contextlib
import os
import subprocess
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import NamedTuple

from nndeploy.errors import DataError, UnavailableError
from nndeploy.files.account_folders import NOBODYS_HOME
from nndeploy.files.held_folder import HeldFolder
from nndeploy.runtime.asked_process import AskedProcess, CrashError
from nndeploy.runtime.chain import on_host
from nndeploy.runtime.isolated_worker import WorkerRequest
from nndeploy.runtime.shared_values import SharedValues
from nndeploy.sandbox import places
from nndeploy.sandbox.allowed import Sandbox
from nndeploy.sandbox.child_process import start_child
from nndeploy.values.types import Value


class CallLimits(NamedTuple):
    """How long opening a session may take, and a call; None: any time."""

    opening_seconds: float
    item_seconds: float | None


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
        self._worker: AskedProcess | None = None
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
            with contextlib.suppress(CrashError):
                return self._called(values)
            try:
                return self._called(values)
            except CrashError as err:
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
        except CrashError:
            self._end()
            raise
        try:
            return self._made.read(told)
        except DataError:
            self._end()  # what it says next would be of this call too
            raise

    def _running(self) -> AskedProcess:
        if self._worker is None:
            for values in (self._given, self._made):
                values.forget()
            self._worker = self._starter.submit(self._start).result()
            try:
                self._worker.opened(self._limits.opening_seconds)
            except CrashError as err:
                self._end()
                raise UnavailableError(f"the worker {err} while it opened") from err
        return self._worker

    def _start(self) -> AskedProcess:
        descriptors = (self._request.descriptor, self._given.descriptor, self._made.descriptor)
        return AskedProcess(
            start_child(
                "nndeploy.runtime.isolated_worker", [self._request.to_text()], self._folder, subprocess.PIPE,
                self._import_paths, self._sandbox, descriptors,
            )
        )  # fmt: skip

    def _end(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.end()


def _held_folder() -> HeldFolder | None:
    """Returns a folder for what a worker writes; a machine without any has workers that write nothing."""
    try:
        return HeldFolder("isolated")
    except OSError:
        return None
