# SPDX-License-Identifier: Apache-2.0
"""A batch on one page: plan -> what is known -> build, the longest first -> journal -> again what the machine broke.

Comes in: planned jobs, an engine, a journal. Goes out: one outcome for each job. Laws: an outcome is in the journal
before anybody hears of it; only what a machine is to blame for is tried again, and that not for ever.
"""

import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from nndeploy.errors import UnavailableError
from nndeploy.farm.engine import Engine
from nndeploy.farm.job import Job
from nndeploy.farm.journal import Journal
from nndeploy.farm.outcome import Outcome
from nndeploy.farm.planned import BUILT, FAILED, Planned

MAX_TRIES = 3
BACK_OFF_SECONDS = (1.0, 10.0)
"""How long a job waits for its second and its third try."""
WAIT_SECONDS = 0.5
CANCEL_SECONDS = 5.0


class Events:
    """What a batch tells while it runs; whoever wants to hear of it overrides what it is about."""

    def planned(self, jobs: Sequence[Planned]) -> None:
        """Hears of all jobs before anything is done."""

    def started(self, job: Job, number: int) -> None:
        """Hears that the `number`-th try of a job begins."""

    def stage(self, job: str, stage: str, detail: str) -> None:
        """Hears what a job is at; from another thread."""

    def finished(self, outcome: Outcome) -> None:
        """Hears what came of a job; it is tried again where that is not final."""


@dataclass
class _State:
    """Jobs that wait, the first one first, and those that run; `followers` wait for one that builds the same."""

    waiting: list[Job] = field(default_factory=list)
    followers: dict[str, list[Job]] = field(default_factory=dict)
    planned: dict[str, Planned] = field(default_factory=dict)
    tries: dict[str, int] = field(default_factory=dict)
    not_before: dict[str, float] = field(default_factory=dict)
    running: set[str] = field(default_factory=set)
    outcomes: dict[str, Outcome] = field(default_factory=dict)


class BatchRun:
    """Runs planned jobs; `outcomes` are there at every moment, so that who interrupts it has them."""

    def __init__(
        self, engine: Engine, journal: Journal, events: Events, fleet_file: str, max_failures: int | None = None
    ) -> None:
        """Begins with nothing; after `max_failures` what is left is cancelled, None for never."""
        self._engine = engine
        self._journal = journal
        self._events = events
        self._fleet_file = fleet_file
        self._max_failures = max_failures
        self._state = _State()

    @property
    def outcomes(self) -> list[Outcome]:
        """What came of the jobs so far."""
        return list(self._state.outcomes.values())

    def run(self, jobs: Sequence[Planned]) -> None:
        """Runs all jobs to their ends.

        Raises:
            UnavailableError: no worker will ever build one of them; nothing was begun.
            InputOutputError: the journal cannot be written.
        """
        for one in jobs:
            if one.state not in (BUILT, FAILED) and (reason := self._engine.why_never(one.job)):
                raise UnavailableError(f"no worker can build it: {reason}", where=one.job.id)
        self._events.planned(jobs)
        state = self._state = _State(planned={one.job.id: one for one in jobs})
        first_of: dict[str, str] = {}
        for one in jobs:
            if one.state in (BUILT, FAILED):
                self._tell(one.job, one.outcome)
            elif one.key and one.key in first_of:  # the same build: it is in the cache when that is done
                state.followers.setdefault(first_of[one.key], []).append(one.job)
            else:
                state.waiting.append(one.job)
                if one.key:
                    first_of[one.key] = one.job.id
        while state.waiting or state.running:
            if self._is_enough():
                self._cancel_all()
                return
            self._feed()
            for job, outcome in self._engine.wait(self._seconds_to_wait()):
                self._ended(job, outcome)

    def interrupt(self) -> None:
        """Ends what is running; what had not ended is "cancelled"."""
        self._cancel_all()

    def _feed(self) -> None:
        state, now = self._state, time.monotonic()
        for job in list(state.waiting):
            if state.not_before.get(job.id, 0.0) > now or not self._engine.has_room(job):
                continue
            state.waiting.remove(job)
            state.running.add(job.id)
            number = state.tries[job.id] = state.tries.get(job.id, 0) + 1
            self._journal.write("started", job=job.id, number=number)
            self._events.started(job, number)
            self._engine.start(job, number)

    def _seconds_to_wait(self) -> float:
        state = self._state
        due = [
            at - time.monotonic() for job, at in state.not_before.items() if any(one.id == job for one in state.waiting)
        ]
        return max(0.01, min([WAIT_SECONDS, *due]))

    def _ended(self, job: Job, outcome: Outcome) -> None:
        state = self._state
        state.running.discard(job.id)
        number = state.tries.get(job.id, 1)
        is_again = outcome.status == "infra" and number < MAX_TRIES
        planned = state.planned[job.id]
        key, miss = outcome.key or planned.key, outcome.miss or planned.differs or ()
        told = replace(outcome, key=key, miss=miss, tries=number, final=not is_again)
        outcome = replace(told, repeat=self._repeat(job, outcome))
        self._journal.finished(outcome, Path(job.output))
        if is_again:
            state.not_before[job.id] = time.monotonic() + BACK_OFF_SECONDS[number - 1]
            state.waiting.insert(0, job)
            self._events.finished(outcome)
            return
        self._tell(job, outcome)
        state.waiting[:0] = state.followers.pop(job.id, [])

    def _tell(self, job: Job, outcome: Outcome) -> None:
        self._state.outcomes[job.id] = outcome
        self._events.finished(outcome)

    def _repeat(self, job: Job, outcome: Outcome) -> str:
        if not outcome.is_failure:
            return ""
        return shlex.join(["nndeploy", "batch", self._fleet_file, f"--only={job.id}", "--retry-failed"])

    def _is_enough(self) -> bool:
        most = self._max_failures
        return most is not None and sum(one.is_failure for one in self._state.outcomes.values()) >= most

    def _cancel_all(self) -> None:
        state = self._state
        waiting, state.waiting = [*state.waiting, *(one for some in state.followers.values() for one in some)], []
        state.followers = {}
        self._engine.cancel()
        deadline = time.monotonic() + CANCEL_SECONDS
        while state.running and time.monotonic() < deadline:
            for job, outcome in self._engine.wait(0.05):
                state.running.discard(job.id)
                self._journal.finished(replace(outcome, final=outcome.is_good), Path(job.output))
                self._tell(job, outcome)
        for job in waiting:
            self._tell(job, _not_run(job))


def _not_run(job: Job) -> Outcome:
    return Outcome(
        job=job.id, model=job.model, target=job.target, variant=job.variant, status="cancelled", output=job.output
    )


def left_out(jobs: Sequence[Job]) -> list[Outcome]:
    """Returns the outcomes of jobs that a filter left out."""
    return [replace(_not_run(job), status="skipped") for job in jobs]
