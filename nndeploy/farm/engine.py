# SPDX-License-Identifier: Apache-2.0
"""Who builds jobs: this machine (`local_engine.py`) or workers elsewhere (`cluster/engine.py`)."""

from typing import Protocol

from nndeploy.farm.job import Job
from nndeploy.farm.outcome import Outcome


class Engine(Protocol):
    """Builds jobs, several at once. Law: every job that was started has one outcome."""

    def why_never(self, job: Job) -> str:
        """Returns why no worker will ever build a job, "" where one will."""

    def has_room(self, job: Job) -> bool:
        """Returns whether a job would begin at once: nothing is given to a worker that is busy.

        Jobs with the same needs and the same limit of memory have room alike.
        """

    def start(self, job: Job, number: int) -> None:
        """Begins the `number`-th try of a job."""

    def wait(self, seconds: float) -> list[tuple[Job, Outcome]]:
        """Returns what came of jobs since the last time; waits so long for the first."""

    def cancel(self) -> None:
        """Ends what is running, with all its processes; outcomes still come."""

    def close(self) -> None:
        """Lets go of the workers."""
