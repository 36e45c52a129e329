# SPDX-License-Identifier: Apache-2.0
"""The scheduler of a cluster: knows the workers, and hands what coordinators send to the worker that they chose.

Law: the builds of a coordinator that is gone are ended.
"""

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from distributed import Scheduler

from nndeploy.errors import UnavailableError
from nndeploy.farm.cluster.certificates import Certificates
from nndeploy.farm.cluster.dask_setup import release, security_of
from nndeploy.farm.cluster.scheduler_address import parted
from nndeploy.farm.cluster.until_signal import until_signal

END = "nndeploy_end"


class FarmScheduler(Scheduler):  # type: ignore[misc]  # dask's, of which we take no types
    """Dask's scheduler with two questions more, and without its web server."""

    def __init__(self, **options: Any) -> None:
        super().__init__(dashboard=False, **options)
        self.handlers |= {"nndeploy_release": self._release, "nndeploy_workers": self._workers}

    def start_http_server(self, *_: Any, **__: Any) -> None:
        """Starts none: what it shows is nobody's business."""

    def remove_client(self, client: str, stimulus_id: str | None = None) -> None:
        """Forgets a coordinator, and ends what it was building."""
        is_known = client in self.clients
        super().remove_client(client, stimulus_id)
        if is_known and not self._ongoing_background_tasks.closed:
            self._ongoing_background_tasks.call_soon(self._end, client)

    async def _end(self, client: str) -> None:
        with contextlib.suppress(OSError):
            await self.broadcast(msg={"op": END, "batch": client}, on_error="ignore")

    async def _release(self) -> str:
        return release()

    async def _workers(self) -> list[str]:
        return [address for address, worker in self.workers.items() if worker.status.name == "running"]


def new_scheduler(address: str, certificates: Certificates | None) -> FarmScheduler:
    """Returns a scheduler that will listen at an address, once it is awaited; port 0 is any that is free."""
    scheme, host, port = parted(address)
    return FarmScheduler(host=host, port=port, protocol=f"{scheme}://", security=security_of(certificates))


def run_scheduler(
    address: str, certificates: Certificates | None, file: Path | None, started: Callable[[str], None]
) -> None:
    """Runs a scheduler until a signal comes; `file` says where it is, for workers and coordinators that share it.

    Raises:
        UnavailableError: it cannot listen there.
    """

    async def serve() -> None:
        scheduler = new_scheduler(address, certificates)
        if file is not None:
            scheduler.scheduler_file = str(file)
        try:
            await scheduler
        except OSError as err:
            raise UnavailableError(f"cannot listen: {err}", where=address) from err
        try:
            started(scheduler.address)
            await until_signal(scheduler.finished())
        finally:
            await scheduler.close()

    asyncio.run(serve())
