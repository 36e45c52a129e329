# SPDX-License-Identifier: Apache-2.0
"""Jobs built on this machine: a thread for each that runs, which waits for the job's own process.

The process that the user started is the parent of every compile: one that dies by whatever means takes its compiles
along, and those take what they started.
"""

import contextlib
import queue
import threading
from dataclasses import replace

from nndeploy.build_cache.remote_cache import RemoteCache
from nndeploy.compiler.cached_compile import CacheOptions, Surroundings
from nndeploy.compiler.compile_server import compile_server
from nndeploy.errors import BusyError, NndeployError
from nndeploy.farm.build_job import Build, Tell
from nndeploy.farm.job import Job
from nndeploy.farm.machine import machine_of
from nndeploy.farm.outcome import Outcome
from nndeploy.farm.resources import Slots
from nndeploy.target.target import Target


class LocalEngine:
    """Builds as many jobs at once as `slots` admit."""

    def __init__(
        self, slots: Slots, here: Target, caching: CacheOptions, tell: Tell, remote: RemoteCache | None = None
    ) -> None:
        self._machine = machine_of(slots, here)
        self._caching = caching
        self._server = compile_server()
        self._around = Surroundings(remote=remote, start=self._server.start_child)
        self._tell = tell
        self._running: dict[str, tuple[Job, Build]] = {}
        self._done: queue.SimpleQueue[tuple[Build, Outcome]] = queue.SimpleQueue()

    def why_never(self, job: Job) -> str:
        return self._machine.why_never(job)

    def has_room(self, job: Job) -> bool:
        return self._machine.admits(job, [one for one, _ in self._running.values()])

    def start(self, job: Job, number: int) -> None:
        build = self._machine.build_of(job, self._tell)
        self._running[job.id] = (job, build)
        thread = threading.Thread(target=self._run, args=(build, number), name=f"nndeploy-{job.id}", daemon=True)
        try:
            thread.start()
        except RuntimeError as err:  # the machine has no thread left
            self._done.put((build, build.failed(BusyError(str(err)))))

    def wait(self, seconds: float) -> list[tuple[Job, Outcome]]:
        found = []
        with contextlib.suppress(queue.Empty):
            found.append(self._done.get(timeout=seconds))
            while True:
                found.append(self._done.get_nowait())
        return [(self._ended(build), outcome) for build, outcome in found if self._is_running(build)]

    def cancel(self) -> None:
        for _, build in list(self._running.values()):
            if not build.cancel():  # it may wait for a build of another command for as long as that takes
                self._done.put((build, build.failed(BusyError("waited for an identical build"))))

    def close(self) -> None:
        """Ends the server of compiles; threads end with their jobs."""
        self._server.close()

    def _is_running(self, build: Build) -> bool:
        return self._running.get(build.job.id, (None, None))[1] is build

    def _ended(self, build: Build) -> Job:
        return self._running.pop(build.job.id)[0]

    def _run(self, build: Build, number: int) -> None:
        try:
            outcome = build.run(self._caching, self._around)
        except BaseException as err:  # nobody would hear of a thread that ended by it, and the batch wait for ever
            outcome = build.failed(NndeployError(f"{type(err).__name__}: {err}"))
        self._done.put((build, replace(outcome, tries=number)))
