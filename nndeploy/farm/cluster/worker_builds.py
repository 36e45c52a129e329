# SPDX-License-Identifier: Apache-2.0
"""What a worker of a cluster does with a job that came: lays out its files, builds, and keeps what was built.

    <folder>/blobs   files of jobs as they came, and what was built     builds   its cache of builds     jobs   trees

Comes in: a packed job. Goes out: a row of plain data, whatever happened. Law: the process of a build is this one's
child, so it ends with this one; what it writes is its own folder, and this process alone takes it from there.
"""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nndeploy.build_cache.entry import Blob
from nndeploy.compiler.cached_compile import CacheOptions, Surroundings
from nndeploy.compiler.compile_server import compile_server
from nndeploy.compiler.outputs import outputs_of
from nndeploy.errors import CannotCreateError, NndeployError, error_to_json
from nndeploy.farm.build_job import Build
from nndeploy.farm.cluster.blob_folder import BlobFolder
from nndeploy.farm.cluster.packed_job import TREE, packed_from_json, unpacked
from nndeploy.farm.job import Job
from nndeploy.farm.machine import Machine
from nndeploy.farm.outcome import outcome_to_json
from nndeploy.files.whole_files import make_folders
from nndeploy.jobs.temporary import temporary_folder

Told = Callable[[str, str, str], None]
"""Hears (batch, id of a job, stage)."""
WITH_ROW_BYTES = 1 << 16
"""What was built and is no larger goes with the row, which saves a question through the scheduler."""


class WorkerBuilds:
    """The builds of one worker, several at once from threads of its own."""

    def __init__(self, folder: Path, machine: Machine, most_bytes: int) -> None:
        """Makes the folders where they are not there.

        Raises:
            CannotCreateError: they cannot be made.
        """
        self.machine = machine
        self.blobs = BlobFolder(folder / "blobs", most_bytes)
        self._jobs = folder / "jobs"
        self._caching = CacheOptions(cache_dir=str(folder / "builds"), cache_size=most_bytes)
        self._server = compile_server()
        self._around = Surroundings(start=self._server.start_child)
        self._lock = threading.Lock()
        self._running: dict[Build, str] = {}
        self._ended: set[str] = set()
        try:
            make_folders(self._jobs, 0o700)
        except OSError as err:
            raise CannotCreateError(f"cannot be created: {err.strerror}", where=str(self._jobs)) from err

    def build(self, request: Mapping[str, Any], told: Told) -> dict[str, Any]:
        """Returns what came of a job: {"outcome", "outputs", "tree"}, or, before it began, {"lacking"} or {"error"}."""
        try:
            if lacking := self.missing(list(request["files"].values())):
                return {"lacking": lacking}
            with temporary_folder("job", str(self._jobs)) as folder:
                job = unpacked(packed_from_json(request), self.blobs.copy, folder)
                outputs = outputs_of(job.output, job.given)
                outcome = self._run(job, request["batch"], told)
                made = {}
                for name, path in outputs.items():
                    if outcome.is_good and path.exists():
                        blob = self.blobs.add(path)
                        content = self.blobs.read(blob, 0) if blob.size <= WITH_ROW_BYTES else b""
                        made[name] = [blob.sha256, blob.size, content]
                return {"outcome": outcome_to_json(outcome), "outputs": made, "tree": str(folder / TREE)}
        except NndeployError as err:
            return {"error": error_to_json(err)}

    def missing(self, blobs: list[list[Any]]) -> list[list[Any]]:
        """Returns those of some files that are not here."""
        return [[sha256, size] for sha256, size in blobs if not self.blobs.has(Blob(sha256, size))]

    def end(self, batch: str) -> None:
        """Ends the builds of a batch, and those of it that still come."""
        with self._lock:
            self._ended.add(batch)
            builds = [build for build, of in self._running.items() if of == batch]
        for build in builds:
            build.cancel()

    def end_all(self) -> None:
        """Ends all builds, and what starts them."""
        for batch in {*self._running.values()}:
            self.end(batch)
        self._server.close()

    def _run(self, job: Job, batch: str, told: Told) -> Any:
        def tell(job_id: str, stage: str, detail: str) -> None:
            if not detail:  # what else happens is for who sits beside it
                told(batch, job_id, stage)

        build = self.machine.build_of(job, tell)
        with self._lock:
            self._running[build] = batch
            is_ended = batch in self._ended
        try:
            if is_ended:
                build.cancel()
            return build.run(self._caching, self._around)
        finally:
            with self._lock:
                del self._running[build]
