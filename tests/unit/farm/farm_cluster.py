# SPDX-License-Identifier: Apache-2.0
"""A cluster in threads of this process: a real scheduler and real workers on loopback, whose builds are pretended."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from nndeploy.farm.cluster.certificates import CLIENT, SCHEDULER, WORKER, certificates_in, make_certificates
from nndeploy.farm.cluster.place import Place
from nndeploy.farm.cluster.scheduler import new_scheduler
from nndeploy.farm.cluster.worker import FarmWorker, new_worker
from nndeploy.farm.cluster.worker_builds import WorkerBuilds
from nndeploy.farm.job import Job
from nndeploy.farm.machine import Machine
from nndeploy.farm.outcome import Outcome
from nndeploy.farm.resources import Slots

MEMORY = 8 << 30
SECONDS = 120.0
"""No test waits so long, but for a machine that is busy with others."""


def job_of(folder: Path, name: str = "m", **fields: Any) -> Job:
    source = folder / f"{name}.onnx"
    given: dict[str, Any] = {"given": {}, "limits": {}, **fields}
    return Job(
        id=f"{name}/host", model=name, target="host", variant="", source=str(source),
        output=str(folder / "dist" / f"{name}.nnd"), **given,
    )  # fmt: skip


def good(job: Job, **fields: Any) -> Outcome:
    return Outcome(
        job=job.id, model=job.model, target=job.target, variant=job.variant, status="ok", output=job.output, **fields
    )


class PretendedBuilds(WorkerBuilds):
    """Lays jobs out as a worker does; what then builds is a function of the job."""

    def __init__(self, folder: Path, machine: Machine, build: Callable[[Job], Outcome]) -> None:
        super().__init__(folder, machine, 1 << 30)
        self._build = build
        self.heard_ends: list[str] = []

    def _run(self, job: Job, batch: str, told: Any) -> Outcome:
        told(batch, job.id, "build")
        return self._build(job)

    def end(self, batch: str) -> None:
        self.heard_ends.append(batch)


def copied(job: Job) -> Outcome:
    """Builds what is the model, byte for byte."""
    Path(job.output).write_bytes(Path(job.source).read_bytes())
    return good(job, seconds=1.0, key="ab" * 32)


def machine(num_jobs: int = 1, **has: dict[str, int]) -> Machine:
    return Machine(Slots(num_jobs, 1, MEMORY, MEMORY // num_jobs, ""), has)


class Farm:
    """A scheduler, inside a `with` block; workers join and leave as a test wants."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.certificates = folder / "certificates"
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.workers: list[FarmWorker] = []

    def __enter__(self) -> Self:
        make_certificates(self.certificates)
        self._thread.start()
        self.scheduler = self.call(self._scheduler())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self.workers:
            self.call(worker.close(executor_wait=False))
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def place(self) -> Place:
        return Place(self.scheduler.address, certificates_in(self.certificates, CLIENT))

    def worker(
        self, name: str, build: Callable[[Job], Outcome] = copied, has: Machine | None = None, **options: Any
    ) -> FarmWorker:
        folder = self._folder / name
        builds = PretendedBuilds(folder, has or machine(), build)
        shown = certificates_in(self.certificates, WORKER)
        made: FarmWorker = self.call(new_worker(self.scheduler.address, shown, builds, folder, name, **options))
        self.workers.append(made)
        return made

    def lose(self, worker: FarmWorker) -> None:
        """Cuts off a worker, as the end of its process does."""
        self.call(self._cut(worker))

    def stop(self) -> None:
        """Ends the scheduler."""
        self.call(self.scheduler.close())

    def call(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(SECONDS)

    async def _scheduler(self) -> Any:
        return await new_scheduler("tls://127.0.0.1:0", certificates_in(self.certificates, SCHEDULER))

    async def _cut(self, worker: FarmWorker) -> None:
        worker.batched_stream.comm.abort()
        await worker.close(executor_wait=False)
