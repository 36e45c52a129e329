# SPDX-License-Identifier: Apache-2.0
"""One job, from the cache or built in a child process of its own, and what came of it.

Comes in: a job. Goes out: an outcome, whatever happened: nothing is raised. Law: what the model or the options are to
blame for is never tried again; what the machine is to blame for says so ("infra").
"""

import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from nndeploy.bundle.report import Report
from nndeploy.compiler.cached_compile import ALONE, CacheOptions, Surroundings, compile_cached
from nndeploy.compiler.job import Onlooker
from nndeploy.errors import (
    BusyError,
    CheckError,
    CrashedError,
    DeadlineError,
    InputOutputError,
    MemoryLimitError,
    NndeployError,
    lacks_space,
    told_error,
)
from nndeploy.farm.job import Job, limits_of
from nndeploy.farm.job_options import given_here
from nndeploy.farm.outcome import MAX_LOG_LINES, Outcome, fields_of, outcome_of
from nndeploy.files.pieces import sha256_of
from nndeploy.files.whole_files import make_folder_of
from nndeploy.sandbox.child_process import ChildProcess, kill_group
from nndeploy.target.cpu_name import cpu_name

Tell = Callable[[str, str, str], None]
"""Hears (id of a job, stage, detail)."""
_SENT_BY_THE_SYSTEM = (signal.SIGKILL, signal.SIGTERM)
"""Nobody of ours sends these to a compile that goes on: the machine was out of memory, or is being shut down."""


class Build(Onlooker):
    """One try of a job; `cancel` ends it from another thread."""

    def __init__(self, job: Job, tell: Tell = lambda *_: None, memory_share: int | None = None) -> None:
        """Begins with nothing; `memory_share` is the limit of memory of a job that states none."""
        self.job = job
        self._memory_share = memory_share
        self._tell = tell
        self._lock = threading.Lock()
        self._process: ChildProcess | None = None
        self._is_cancelled = False
        self._log = b""
        self._most_bytes = 0
        self._warnings: list[str] = []

    def run(self, caching: CacheOptions, around: Surroundings = ALONE) -> Outcome:
        """Returns what came of the job."""
        began = time.monotonic()
        try:
            found = outcome_of(*self._compiled(caching, replace(around, memory_share=self._memory_share)))
        except NndeployError as err:
            found = self.failed(err)
        except Exception as err:  # a bug of ours costs this job, not the batch
            found = self.failed(NndeployError(f"{type(err).__name__}: {err}"))
        return replace(
            found, seconds=time.monotonic() - began, peak_mb=self._most_bytes / 1e6,
            warnings=(*found.warnings, *self._warnings),
        )  # fmt: skip

    def failed(self, err: NndeployError) -> Outcome:
        """Returns the outcome of a try that ended with an error."""
        found = replace(failed_with(self.job, err), cpu=cpu_name(), log_tail=self._tail())
        return replace(found, status="cancelled") if self._is_cancelled else found

    def cancel(self) -> bool:
        """Ends the try at once, with all processes that it started; returns whether there were any."""
        with self._lock:
            self._is_cancelled = True
            if self._process is not None:
                kill_group(self._process)
            return self._process is not None

    def started(self, process: ChildProcess) -> None:
        with self._lock:
            self._process = process
            if self._is_cancelled:
                kill_group(process)

    def event(self, stage: str, detail: str) -> None:
        self._tell(self.job.id, stage, detail)

    def ended(self, log: bytes, most_bytes: int) -> None:
        self._log, self._most_bytes = log, most_bytes

    @property
    def log(self) -> str:
        """What the libraries wrote, the last of it."""
        return self._log.decode("utf-8", "replace")

    def _compiled(self, caching: CacheOptions, around: Surroundings) -> tuple[dict[str, Any], Report]:
        job = self.job
        make_folder_of(Path(job.output))
        compiled = compile_cached(
            job.source, job.output, given_here(job.given), limits_of(job), caching, self, self._warnings.append,
            around,
        )  # fmt: skip
        cache = compiled.cache
        status = "hit" if cache.status == "hit" else "ok"
        sha256 = compiled.sha256 or sha256_of(Path(job.output))
        fields = {"status": status, "key": cache.key, "miss": cache.differs or (), "sha256": sha256}
        return {**fields_of(job), **fields, "cpu": cpu_name()}, compiled.report

    def _tail(self) -> tuple[str, ...]:
        return tuple(line[:500] for line in self.log.strip().splitlines()[-MAX_LOG_LINES:])


def failed_with(job: Job, err: NndeployError) -> Outcome:
    """Returns the outcome of a job that ended with an error."""
    exit_code = -err.signal if isinstance(err, CrashedError) and err.signal else err.exit_code
    return Outcome(**fields_of(job), status=status_of(err), exit_code=exit_code, error=told_error(err))


def status_of(err: NndeployError) -> str:
    """Returns the status of a job that ended with an error."""
    if isinstance(err, CrashedError):
        return "infra" if err.signal in _SENT_BY_THE_SYSTEM else "crash"
    if isinstance(err, MemoryLimitError):
        return "memory"
    if isinstance(err, DeadlineError):
        return "timeout"
    if isinstance(err, BusyError | InputOutputError) or lacks_space(err):
        return "infra"
    if isinstance(err, CheckError):
        return "unsupported"
    return "crash" if err.exit_code == NndeployError.exit_code else "failed"
