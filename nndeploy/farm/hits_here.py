# SPDX-License-Identifier: Apache-2.0
"""Jobs whose bundle this machine's own cache holds are taken from it; all others go to who builds.

Law: what is known here is built nowhere, and a cluster hears nothing of it.
"""

from collections.abc import Set
from dataclasses import replace

from nndeploy.farm.engine import Engine
from nndeploy.farm.job import Job
from nndeploy.farm.outcome import Outcome

_TURN_SECONDS = 0.02


class HitsHere:
    """Two engines as one: `here` for the jobs of which the ids are `hits`, `elsewhere` for others."""

    def __init__(self, hits: Set[str], here: Engine, elsewhere: Engine) -> None:
        self._hits = set(hits)
        self._here = here
        self._elsewhere = elsewhere
        self._running: dict[str, Job] = {}

    def why_never(self, job: Job) -> str:
        return "" if job.id in self._hits else self._elsewhere.why_never(job)

    def has_room(self, job: Job) -> bool:
        return self._here.has_room(_plain(job)) if job.id in self._hits else self._elsewhere.has_room(job)

    def start(self, job: Job, number: int) -> None:
        if job.id in self._hits:
            self._running[job.id] = job
            self._here.start(_plain(job), number)
        else:
            self._elsewhere.start(job, number)

    def wait(self, seconds: float) -> list[tuple[Job, Outcome]]:
        taken = self._here.wait(_TURN_SECONDS) if self._running else []
        found = [(self._running.pop(job.id), outcome) for job, outcome in taken]
        self._hits -= {job.id for job, outcome in found if not outcome.is_good}  # the cache lost it
        is_soon = bool(found or self._running)
        return found + self._elsewhere.wait(0.0 if is_soon else seconds)

    def cancel(self) -> None:
        self._here.cancel()
        self._elsewhere.cancel()

    def close(self) -> None:
        self._here.close()
        self._elsewhere.close()


def _plain(job: Job) -> Job:
    """Returns a job as it is taken from a cache: it needs no device."""
    return replace(job, needs={})
