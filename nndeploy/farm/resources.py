# SPDX-License-Identifier: Apache-2.0
"""How many jobs of a batch run at once on one machine, and how much of it each gets.

Memory: all that run may take together what one compile may take where nobody says, three quarters of the machine. A job
that states its memory counts with it; one that states none gets an even share, and counts with that. Cores: more jobs
than cores only wait for each other, and what a compile measures would be wrong.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nndeploy.farm.job import Job
from nndeploy.sandbox.memory import MEMORY_SHARE

USUAL_MEMORY_BYTES = 2 << 30
"""What a job is taken to need that states nothing."""


@dataclass(frozen=True, slots=True)
class Slots:
    """What a machine gives to a batch.

    `num_jobs` is the most that run at once, `builds_each` how many builds each of them runs at once, `memory_bytes`
    what all together may take, `memory_each` the limit of a job that states none; `reason` says why, in one line.
    """

    num_jobs: int
    builds_each: int
    memory_bytes: int
    memory_each: int
    reason: str

    def admits(self, job: Job, running: Sequence[Job]) -> bool:
        """Returns whether a job may start beside those that run; one that is alone always may."""
        if not running:
            return True
        taken = sum(self.memory_of(one) for one in running)
        return len(running) < self.num_jobs and taken + self.memory_of(job) <= self.memory_bytes

    def memory_of(self, job: Job) -> int:
        """Returns the memory that a job counts with: the limit that it is to run under."""
        return int(job.limits.get("memory_limit") or self.memory_each)


def slots_of(jobs: Iterable[Job], asked: int | None, num_cores: int, machine_bytes: int) -> Slots:
    """Returns what a machine of so many cores and bytes gives to jobs; `asked` is how many at once, None for "auto".

    On "auto" it is min(cores, memory / memory of the smallest job): larger ones are held back by `Slots.admits`, so
    that one large model among many small ones does not leave the cores idle.
    """
    budget = int(machine_bytes * MEMORY_SHARE)
    stated = {job.limits.get("memory_limit") or 0 for job in jobs}
    smallest = min((size or USUAL_MEMORY_BYTES for size in stated), default=USUAL_MEMORY_BYTES)
    by_memory = max(1, budget // smallest)
    number = asked or min(num_cores, by_memory)
    if asked:
        reason = f"{asked} at once, as asked"
    elif num_cores <= by_memory:
        reason = f"{number} at once: as many as cores"
    else:
        reason = f"{number} at once: {_gib(budget)} of memory for jobs of {_gib(smallest)}, on {num_cores} cores"
    return Slots(number, max(1, num_cores // number), budget, budget // number, reason)


def _gib(num_bytes: int) -> str:
    return f"{num_bytes / (1 << 30):.3g} GiB"
