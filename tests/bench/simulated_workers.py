# SPDX-License-Identifier: Apache-2.0
"""Workers of a cluster whose builds are a sleep: a job's estimate in seconds, then a bundle that was built before."""

import asyncio
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from nndeploy.farm.cluster.worker import new_worker
from nndeploy.farm.cluster.worker_builds import WorkerBuilds
from nndeploy.farm.job import Job
from nndeploy.farm.machine import this_machine
from nndeploy.farm.outcome import Outcome


class Sleeping(WorkerBuilds):
    def __init__(self, folder: Path, bundle: Path) -> None:
        super().__init__(folder, this_machine(1), 1 << 30)
        self._bundle = bundle

    def _run(self, job: Job, batch: str, told: Any) -> Outcome:
        told(batch, job.id, "build")
        time.sleep(job.estimate)
        shutil.copyfile(self._bundle, job.output)
        return Outcome(
            job=job.id, model=job.model, target=job.target, variant=job.variant, status="ok", seconds=job.estimate
        )


async def serve(address: str, folder: Path, bundle: Path, name: str, number: int) -> None:
    """Runs as many workers as asked for in this process, until it is killed."""
    workers = [
        await new_worker(address, None, Sleeping(folder / f"{name}-{one}", bundle), folder, f"{name}-{one}")
        for one in range(number)
    ]
    print("ready", flush=True)
    await asyncio.gather(*(worker.finished() for worker in workers))


if __name__ == "__main__":
    address, folder, bundle, name, number = sys.argv[1:]
    asyncio.run(serve(address, Path(folder), Path(bundle), name, int(number)))
