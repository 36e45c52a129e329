# SPDX-License-Identifier: Apache-2.0
"""Jobs that wait for a worker, the first one first.

They stand in one queue for each thing that jobs may need, so that ten thousand that find no room are asked for once.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeAlias

from nndeploy.farm.job import Job

_Need: TypeAlias = tuple[object, tuple[tuple[str, str], ...]]


class WaitingJobs:
    """Jobs in their order; those that need the same find room together or not at all."""

    def __init__(self, jobs: Iterable[Job] = ()) -> None:
        self._queues: dict[_Need, deque[tuple[int, Job]]] = {}
        self._first = self._last = 0
        for job in jobs:
            self.add(job)

    def __bool__(self) -> bool:
        return any(self._queues.values())

    def add(self, job: Job) -> None:
        """Adds a job behind all others."""
        self._last += 1
        self._queue(job).append((self._last, job))

    def add_first(self, job: Job) -> None:
        """Adds a job before all others."""
        self._first -= 1
        self._queue(job).appendleft((self._first, job))

    def take(self, has_room: Callable[[Job], bool]) -> Job | None:
        """Removes and returns the first job that has room, None where none has."""
        heads = sorted(((queue[0][0], queue) for queue in self._queues.values() if queue), key=lambda head: head[0])
        return next((queue.popleft()[1] for _, queue in heads if has_room(queue[0][1])), None)

    def _queue(self, job: Job) -> deque[tuple[int, Job]]:
        need = (job.limits.get("memory_limit"), tuple(sorted(job.needs.items())))
        return self._queues.setdefault(need, deque())
