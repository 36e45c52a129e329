# SPDX-License-Identifier: Apache-2.0
"""Jobs built by workers of a cluster: this process chooses who builds what, and when.

    choose a worker with a free slot -> send the files that it lacks -> build -> fetch what was built -> sign -> place

Comes in: jobs. Goes out: one outcome for each, whatever happens to workers. Laws: nothing is given to a worker that is
busy; a worker that is lost loses its jobs to others, as "infra"; what came from a worker has its place only when its
digest was compared and the whole bundle was checked.

An event loop in a thread of its own speaks to the scheduler; the batch calls from another.
"""

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from distributed import Client, Future, KilledWorker
from distributed.client import FutureCancelledError

from nndeploy.build_cache.file_digests import FileDigests
from nndeploy.errors import BusyError, NndeployError, UnavailableError, error_from_json
from nndeploy.farm.build_job import Tell, failed_with
from nndeploy.farm.cluster.dask_setup import security_of, why_another
from nndeploy.farm.cluster.files import delivered, send_pieces
from nndeploy.farm.cluster.local_cluster import LocalCluster
from nndeploy.farm.cluster.packed_job import PackedJob, packed
from nndeploy.farm.cluster.place import Place
from nndeploy.farm.cluster.scheduler import END
from nndeploy.farm.cluster.worker import SLOT, build, resource_of, topic_of
from nndeploy.farm.job import Job
from nndeploy.farm.machine import Machine, machine_from_json
from nndeploy.farm.outcome import Outcome, outcome_from_json
from nndeploy.farm.resources import Slots

LOOK_SECONDS = 1.0
CONNECT_SECONDS = 30.0
ANSWER_SECONDS = 120.0
CLOSE_SECONDS = 10.0
TURNS = 2
"""A worker may have forgotten the files of a job that it had."""
_LOST = "its worker was lost"


@dataclass
class _Worker:
    """A worker that can be used: what runs there by id, and the files of jobs that it has."""

    address: str
    name: str
    machine: Machine
    running: dict[str, Job] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)


class ClusterEngine:
    """Builds jobs on the workers of a scheduler; `patience` is how long it waits, in seconds, where there are none."""

    def __init__(
        self,
        place: Place,
        tell: Tell,
        warn: Callable[[str], None],
        digests: FileDigests,
        patience: float,
        closing: Callable[[], None] = lambda: None,
    ) -> None:
        """Connects, and waits for a worker.

        Raises:
            UnavailableError: no scheduler is there that takes the certificates, or all are of another release.
            BusyError: no worker came.
        """
        self._place = place
        self._tell = tell
        self._warn = warn
        self._digests = digests
        self._patience = patience
        self._closing = closing
        self._lock = threading.RLock()
        self._workers: dict[str, _Worker] = {}
        self._free: dict[str, _Worker] = {}
        self._refused: dict[str, str] = {}
        self._where: dict[str, _Worker] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._failed_on: dict[str, set[str]] = {}
        self._done: queue.SimpleQueue[tuple[Job, Outcome]] = queue.SimpleQueue()
        self._lost: BusyError | None = None
        self._is_left = False
        self._none_since = time.monotonic()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="nndeploy-cluster", daemon=True)
        self._thread.start()
        try:
            self._on_loop(self._connected())
            self._wait_for_worker()
        except BaseException:
            self.close()
            raise

    def why_never(self, job: Job) -> str:
        with self._lock:
            reasons = [_why_not(one.machine, job) for one in self._workers.values()]
        return "" if "" in reasons else " or ".join(sorted(set(reasons))[:3]) or "no worker is connected"

    def has_room(self, job: Job) -> bool:
        with self._lock:
            return self._chosen(job) is not None

    def start(self, job: Job, number: int) -> None:
        with self._lock:
            worker = self._chosen(job)
            if worker is None:  # it left just now
                self._done.put((job, failed_with(job, BusyError(_LOST))))
                return
            worker.running[job.id] = job
            self._where[job.id] = worker
            self._note_free(worker)
        asyncio.run_coroutine_threadsafe(self._begun(job, number, worker), self._loop)

    def wait(self, seconds: float) -> list[tuple[Job, Outcome]]:
        """As `Engine` says.

        Raises:
            BusyError: the scheduler is gone, or no worker has been connected for too long.
        """
        found = []
        with contextlib.suppress(queue.Empty):
            found.append(self._done.get(timeout=seconds))
            while True:
                found.append(self._done.get_nowait())
        with self._lock:
            for job, outcome in found:
                worker = self._where.pop(job.id, None)
                if worker is not None:
                    worker.running.pop(job.id, None)
                    self._note_free(worker)
                    if outcome.status == "infra":
                        self._failed_on.setdefault(job.id, set()).add(worker.name)
        if not found and not self._is_left:
            self._raise_if_lost()
        return found

    def cancel(self) -> None:
        self._is_left = True
        if self._lost is None and self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._cancelled(), self._loop)

    def close(self) -> None:
        """Leaves the cluster, and ends what still runs for this batch."""
        if not self._thread.is_alive():
            return
        with contextlib.suppress(Exception):  # whatever state it is in
            self._on_loop(self._left(), CLOSE_SECONDS)
        self._loop.set_exception_handler(lambda *_: None)  # dask leaves timers, of whose ends nobody wants to hear
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLOSE_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()
        self._closing()

    def _on_loop(self, work: Coroutine[Any, Any, Any], seconds: float | None = None) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds)

    def _chosen(self, job: Job) -> _Worker | None:
        """Returns the worker that is to build a job: one on which it did not fail, that has most of it, and is idle."""
        avoided = self._failed_on.get(job.id, set())
        fits = [
            one
            for one in self._free.values()
            if not _why_not(one.machine, job) and one.machine.admits(job, list(one.running.values()))
        ]

        def order(one: _Worker) -> tuple[bool, bool, float, str]:
            share = len(one.running) / one.machine.slots.num_jobs
            return one.name in avoided, job.source not in one.known, share, one.name

        return min(fits, key=order, default=None)

    def _note_free(self, worker: _Worker) -> None:
        """Keeps who has a free slot, so that to ask for one where there is none costs nothing."""
        is_here = self._workers.get(worker.address) is worker
        if is_here and len(worker.running) < worker.machine.slots.num_jobs:
            self._free[worker.address] = worker
        elif self._free.get(worker.address) is worker:
            del self._free[worker.address]

    def _raise_if_lost(self) -> None:
        if self._lost is not None:
            raise self._lost
        if not self._workers and time.monotonic() - self._none_since > self._patience:
            refused = next(iter(self._refused.values()), "")
            reason = f"no worker has been connected for {self._patience:.0f} s"
            raise BusyError(f"{reason}; one is not used: {refused}" if refused else reason, hint="run it again")

    def _wait_for_worker(self) -> None:
        while not self._workers:
            if self._refused:
                raise UnavailableError(f"no worker can be used: {next(iter(self._refused.values()))}")
            self._raise_if_lost()
            time.sleep(min(0.05, self._patience))

    # What follows runs in the event loop.

    async def _connected(self) -> None:
        security = security_of(self._place.certificates)
        address = self._place.address
        try:
            self._client = Client(
                address, security=security, asynchronous=True, timeout=CONNECT_SECONDS, set_as_default=False,
                heartbeat_interval=5_000,
            )  # fmt: skip
            await self._client
            theirs = await asyncio.wait_for(self._client.scheduler.nndeploy_release(), ANSWER_SECONDS)
        except (OSError, TimeoutError) as err:
            raise UnavailableError(f"no scheduler can be reached: {err}", where=address) from err
        except (AttributeError, TypeError, KeyError, ValueError) as err:
            raise UnavailableError("the server is not an nndeploy scheduler", where=address) from err
        if why := why_another(theirs):
            raise UnavailableError(f"the scheduler runs another release: {why}", where=address)
        self._client.subscribe_topic(topic_of(self._client.id), self._heard)
        await self._look()
        self._looking = asyncio.ensure_future(self._look_again())

    def _heard(self, event: tuple[float, Any]) -> None:
        job, stage = event[1]
        self._tell(job, stage, "")

    async def _look_again(self) -> None:
        try:
            while True:
                await asyncio.sleep(LOOK_SECONDS)
                await asyncio.wait_for(self._look(), ANSWER_SECONDS)
        except (OSError, TimeoutError, ValueError) as err:
            self._lost = BusyError(
                f"the scheduler is gone: {err}", where=self._place.address,
                hint="run it again: what was built is kept",
            )  # fmt: skip
            for job in list(self._tasks):
                self._give_up(job)

    async def _look(self) -> None:
        """Takes in workers that came, and takes out those that left, with their jobs."""
        if self._client.status != "running":
            raise OSError("the connection broke")
        there = set(await self._client.scheduler.nndeploy_workers())
        for address in sorted(there - self._workers.keys() - self._refused.keys()):
            await self._met(address)
        for address in [*self._workers.keys() - there]:
            self._gone(self._workers[address])

    def _gone(self, worker: _Worker) -> None:
        """Takes out a worker that left, before it is given more, and gives up its jobs; it may come again."""
        with self._lock:
            if self._workers.get(worker.address) is not worker:
                return
            del self._workers[worker.address]
            self._note_free(worker)
            self._none_since = time.monotonic()
        self._warn(f"the worker {worker.name} left")
        for job in list(worker.running):
            self._give_up(job)

    async def _met(self, address: str) -> None:
        try:
            about = await self._asked(address, "nndeploy_about")
        except OSError:
            return  # it left already
        except Exception as err:  # a worker of dask, which knows no such question
            about = {"release": type(err).__name__, "name": address}
        if why := why_another(about["release"]):
            self._refused[address] = f"the worker {about['name']} runs another release: {why}"
            self._warn(self._refused[address])
            return
        with self._lock:
            new = self._workers[address] = _Worker(address, about["name"], machine_from_json(about["machine"]))
            self._note_free(new)

    def _give_up(self, job: str) -> None:
        if job in self._tasks:
            self._tasks[job].cancel()

    async def _asked(self, address: str, op: str, **fields: Any) -> Any:
        """Returns the answer of a worker.

        Raises:
            OSError: it is not there.
        """
        answers = await self._client.scheduler.broadcast(msg={"op": op, **fields}, workers=[address])
        return answers[address]

    async def _begun(self, job: Job, number: int, worker: _Worker) -> None:
        task = self._tasks[job.id] = asyncio.ensure_future(self._ended(job, number, worker))
        if self._workers.get(worker.address) is not worker:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    async def _ended(self, job: Job, number: int, worker: _Worker) -> None:
        began = time.monotonic()
        try:
            outcome = await self._built(job, number, worker)
        except (asyncio.CancelledError, FutureCancelledError, KilledWorker):
            outcome = failed_with(job, BusyError(_LOST, where=worker.name))
            outcome = replace(outcome, status="cancelled") if self._is_left else outcome
            self._gone(worker)
        except NndeployError as err:
            outcome = failed_with(job, err)
        except (OSError, RuntimeError) as err:  # of dask: what a lost worker or scheduler looks like
            outcome = failed_with(job, BusyError(f"{_LOST}: {err}", where=worker.name))
            self._gone(worker)
        except Exception as err:  # a bug of ours costs this job, not the batch
            outcome = failed_with(job, NndeployError(f"{type(err).__name__}: {err}"))
        finally:
            self._tasks.pop(job.id, None)
        seconds = outcome.seconds or time.monotonic() - began
        self._done.put((job, replace(outcome, seconds=seconds, tries=number, worker=worker.name)))

    async def _built(self, job: Job, number: int, worker: _Worker) -> Outcome:
        one = await asyncio.to_thread(packed, job, self._digests)
        unknown = [blob for blob in one.files.values() if blob.sha256 not in worker.known]
        wanted = [[blob.sha256, blob.size] for blob in unknown]
        lacking = await self._asked(worker.address, "nndeploy_missing", blobs=wanted) if wanted else []
        for turn in range(TURNS):
            await self._send(one, {sha256 for sha256, _ in lacking}, worker)
            row = await self._row(job, one, (number, turn), worker)
            lacking = row.get("lacking")
            if lacking is None:
                worker.known |= {job.source, *(blob.sha256 for blob in one.files.values())}
                return await self._taken(job, one, row, worker)
        raise BusyError("the worker does not keep the files of the job", where=worker.name)

    async def _row(self, job: Job, one: PackedJob, turn: tuple[int, int], worker: _Worker) -> Mapping[str, Any]:
        """Returns what a worker says of a job."""
        needs = {resource_of(need, value): 1 for need, value in job.needs.items()}
        future: Future = self._client.submit(
            build, {**one.to_json(), "batch": self._client.id}, key=("nndeploy", self._client.id, job.id, *turn),
            pure=False, retries=0, workers=[worker.address], allow_other_workers=False,
            resources={SLOT: 1, **needs},
        )  # fmt: skip
        try:
            row: Mapping[str, Any] = await future
        finally:
            future.release()
        return row

    async def _send(self, one: PackedJob, lacking: set[str], worker: _Worker) -> None:
        """Sends the files that a worker lacks."""
        for name, blob in one.files.items():
            if blob.sha256 in lacking:
                lacking.remove(blob.sha256)

                async def ask(offset: int, piece: bytes, of: Any = blob) -> str:
                    fields = {"sha256": of.sha256, "size": of.size, "sender": self._client.id}
                    answer = await self._asked(worker.address, "nndeploy_store", **fields, offset=offset, piece=piece)
                    return str(answer)

                await send_pieces(Path(one.base + name), blob, ask)

    async def _taken(self, job: Job, one: PackedJob, row: Mapping[str, Any], worker: _Worker) -> Outcome:
        """Returns the outcome that a worker's row says, with what it built in its place here."""
        if "error" in row:
            raise error_from_json(row["error"])
        outcome = outcome_from_json(_with_own_paths(row["outcome"], row["tree"], one.base), worker.name)
        outcome = replace(outcome, output=job.output)

        async def ask(sha256: str, size: int, offset: int) -> bytes:
            piece: bytes = await self._asked(worker.address, "nndeploy_read", sha256=sha256, size=size, offset=offset)
            return piece

        return await delivered(outcome, job, row["outputs"], ask)

    async def _cancelled(self) -> None:
        with contextlib.suppress(OSError):
            await self._client.scheduler.broadcast(msg={"op": END, "batch": self._client.id}, on_error="ignore")

    async def _left(self) -> None:
        self._is_left = True
        if hasattr(self, "_looking"):
            self._looking.cancel()
        for task in list(self._tasks.values()):
            task.cancel()
        if hasattr(self, "_client"):
            is_gone = self._client.status != "running"
            try:
                await self._client._close(fast=is_gone)  # who is gone does not answer to a goodbye
            finally:
                self._client.status = "closed"  # whatever it was at: one that is collected open would wait for its loop


def cluster_engine(
    place: Place, slots: Slots, tell: Tell, warn: Callable[[str], None], digests: FileDigests, patience: float
) -> ClusterEngine:
    """Returns an engine for a place; where that is this machine, it has a scheduler and a worker of its own.

    `slots` is what such a worker gives; raises as `ClusterEngine` does.
    """
    if place.address:
        return ClusterEngine(place, tell, warn, digests, patience)
    cluster = LocalCluster(slots.num_jobs)
    with contextlib.ExitStack() as held:
        held.callback(cluster.close)
        try:
            engine = ClusterEngine(cluster.place, tell, warn, digests, patience, cluster.close)
        except UnavailableError:
            cluster.raise_if_killed()
            raise
        held.pop_all()
        return engine


def _why_not(machine: Machine, job: Job) -> str:
    """Returns why a machine will never build a job; unlike this one, which has no choice, it must have its memory."""
    wanted = int(job.limits.get("memory_limit") or 0)
    if wanted > machine.slots.memory_bytes:
        return f"needs {wanted:,} bytes of memory; a worker gives {machine.slots.memory_bytes:,}"
    return machine.why_never(job)


def _with_own_paths(value: Any, theirs: str, ours: str) -> Any:
    """Returns plain data with the paths of a worker's tree as the user knows them."""
    if isinstance(value, str):
        return value.replace(theirs, ours)
    if isinstance(value, list | tuple):
        return [_with_own_paths(item, theirs, ours) for item in value]
    if isinstance(value, Mapping):
        return {key: _with_own_paths(item, theirs, ours) for key, item in value.items()}
    return value
