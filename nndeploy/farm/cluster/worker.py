# SPDX-License-Identifier: Apache-2.0
"""A worker of a cluster: says what it has, takes files in pieces, builds jobs, and hands out what was built.

Comes in: messages of the scheduler, one function that is named. Goes out: plain data. Laws: it works for a scheduler of
the same release alone; it listens where the scheduler reaches it and nowhere else; when it loses the scheduler, all
that it was building ends.
"""

import asyncio
import os
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from distributed import Worker, get_worker, rpc
from distributed.utils import get_ip

from nndeploy.build_cache.entry import Blob
from nndeploy.errors import BusyError, NndeployError, UnavailableError
from nndeploy.farm.cluster.certificates import Certificates
from nndeploy.farm.cluster.dask_setup import release, security_of, why_another
from nndeploy.farm.cluster.scheduler import END
from nndeploy.farm.cluster.scheduler_address import parted
from nndeploy.farm.cluster.until_signal import until_signal
from nndeploy.farm.cluster.worker_builds import WorkerBuilds
from nndeploy.farm.machine import Machine, machine_to_json
from nndeploy.registry.web_address import is_loopback_host

SLOT = "SLOT"
CONNECT_SECONDS = 60


def topic_of(batch: str) -> str:
    """Returns where a batch hears what its jobs are at."""
    return f"nndeploy-{batch}"


def resources_of(machine: Machine) -> dict[str, float]:
    """Returns what a machine has as numbers by name."""
    has = {resource_of(need, value): count for need, values in machine.has.items() for value, count in values.items()}
    return {SLOT: machine.slots.num_jobs, **has}


def resource_of(need: str, value: str) -> str:
    """Returns how what a job needs is called among the resources of workers."""
    return f"{need}_{value}".replace("-", "_").replace(".", "_")


def build(request: Mapping[str, Any]) -> dict[str, Any]:
    """Builds a job on the worker that runs this; the one function that coordinators send, by its name."""
    worker = get_worker()

    def told(batch: str, job: str, stage: str) -> None:
        worker.log_event(topic_of(batch), [job, stage])

    result: dict[str, Any] = worker.builds.build(request, told)
    return result


class FarmWorker(Worker):  # type: ignore[misc]  # dask's, of which we take no types
    """Dask's worker with the builds of this machine, and without its web server."""

    def __init__(self, address: str, builds: WorkerBuilds, *, release: str, **options: Any) -> None:
        slots = builds.machine.slots.num_jobs
        resources = resources_of(builds.machine)
        super().__init__(address, nthreads=slots, resources=resources, memory_limit=0, **options)
        self.builds = builds
        self._release = release
        self.handlers |= {
            "nndeploy_about": self._about,
            "nndeploy_missing": self._missing,
            "nndeploy_store": self._store,
            "nndeploy_read": self._read,
            END: self._end,
        }

    def start_http_server(self, *_: Any, **__: Any) -> None:
        """Starts none: what it shows is nobody's business."""

    async def close(self, *arguments: Any, **options: Any) -> Any:
        """Ends all builds, then the worker."""
        self.builds.end_all()
        return await super().close(*arguments, **options)

    async def _about(self) -> dict[str, Any]:
        return {"release": self._release, "name": str(self.name), "machine": machine_to_json(self.builds.machine)}

    async def _missing(self, blobs: list[list[Any]]) -> list[list[Any]]:
        return self.builds.missing(blobs)

    async def _store(self, sha256: str, size: int, sender: str, offset: int, piece: bytes) -> str:
        """Returns what went wrong, "" if nothing did."""
        try:
            await asyncio.to_thread(self.builds.blobs.store, Blob(sha256, size), sender, offset, piece)
        except NndeployError as err:
            return str(err)
        return ""

    async def _read(self, sha256: str, size: int, offset: int) -> bytes:
        """Returns a piece, an empty one where there is none."""
        try:
            return await asyncio.to_thread(self.builds.blobs.read, Blob(sha256, size), offset)
        except NndeployError:
            return b""

    async def _end(self, batch: str) -> None:
        await asyncio.to_thread(self.builds.end, batch)


async def new_worker(
    address: str,
    certificates: Certificates | None,
    builds: WorkerBuilds,
    folder: Path,
    name: str = "",
    port: int = 0,
    own_release: str = "",
) -> FarmWorker:
    """Returns a worker that has joined the scheduler at an address; `own_release` is said in place of this one's.

    Raises:
        UnavailableError: no scheduler is there that takes these certificates, or it has another release.
    """
    security = security_of(certificates)
    try:
        async with rpc(address, connection_args=security.get_connection_args("worker")) as scheduler:
            theirs = await asyncio.wait_for(scheduler.nndeploy_release(), CONNECT_SECONDS)
    except (OSError, TimeoutError) as err:
        raise UnavailableError(f"no scheduler can be reached: {err}", where=address) from err
    except (TypeError, AttributeError, KeyError, RuntimeError, ValueError) as err:
        raise UnavailableError("the server is not an nndeploy scheduler", where=address) from err
    if why := why_another(theirs):
        raise UnavailableError(f"the scheduler runs another release: {why}", where=address)
    _, host, _ = parted(address)
    options = {"host": "127.0.0.1" if is_loopback_host(host) else get_ip(host), "port": port}
    worker = FarmWorker(
        address, builds, release=own_release or release(), name=name or f"{socket.gethostname()}-{os.getpid()}",
        security=security, local_directory=str(folder / "dask"), **options,
    )  # fmt: skip
    await worker
    return worker


def run_worker(
    address: str,
    certificates: Certificates | None,
    builds: WorkerBuilds,
    folder: Path,
    name: str,
    port: int,
    started: Callable[[str], None],
) -> None:
    """Runs a worker until a signal comes.

    Raises:
        UnavailableError: it cannot join.
        BusyError: the scheduler is gone.
    """

    async def serve() -> None:
        worker = await new_worker(address, certificates, builds, folder, name, port)
        try:
            started(worker.name)
            await until_signal(worker.finished())
        finally:
            await worker.close(nanny=False)
        raise BusyError("the scheduler is gone", where=address, hint="start the worker again when it is back")

    asyncio.run(serve())
