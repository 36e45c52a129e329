# SPDX-License-Identifier: Apache-2.0
"""Jobs built on this machine: a thread for each that runs, which waits for the job's own process.

The process that the user started is the parent of every compile: one that dies by whatever means takes its compiles
along, and those take what they started.
"""

import queue
import threading
from dataclasses import replace

from nndeploy.compiler.cached_compile import CacheOptions
from nndeploy.farm.build_job import Build, Tell
from nndeploy.farm.job import Job
from nndeploy.farm.machine import machine_of
from nndeploy.farm.outcome import Outcome
from nndeploy.farm.resources import Slots
from nndeploy.target.target import Target


class LocalEngine:
    """Builds as many jobs at once as `slots` admit."""

    def __init__(self, slots: Slots, here: Target, caching: CacheOptions, tell: Tell) -> None:
        self._machine = machine_of(slots, here)
        self._caching = caching
        self._tell = tell
        self._running: dict[str, Build] = {}
        self._done: queue.SimpleQueue[tuple[Job, Outcome]] = queue.SimpleQueue()

    def why_never(self, job: Job) -> str:
        return self._machine.why_never(job)

    def has_room(self, job: Job) -> bool:
        return self._machine.admits(job, [build.job for build in self._running.values()])

    def start(self, job: Job, number: int) -> None:
        build = self._running[job.id] = self._machine.build_of(job, self._tell)
        thread = threading.Thread(target=self._run, args=(job, build, number), name=f"nndeploy-{job.id}", daemon=True)
        thread.start()

    def wait(self, seconds: float) -> list[tuple[Job, Outcome]]:
        found = []
        try:
            found.append(self._done.get(timeout=seconds))
            while True:
                found.append(self._done.get_nowait())
        except queue.Empty:
            pass
        for job, _ in found:
            self._running.pop(job.id, None)
        return found

    def cancel(self) -> None:
        for build in list(self._running.values()):
            build.cancel()

    def close(self) -> None:
        """Does nothing: threads end with their jobs."""

    def _run(self, job: Job, build: Build, number: int) -> None:
        self._done.put((job, replace(build.run(self._caching), tries=number)))
