# SPDX-License-Identifier: Apache-2.0
"""A batch on one page: plan -> what is known -> build, the longest first -> journal -> again what the machine broke.

Comes in: planned jobs, an engine, a journal. Goes out: one outcome for each job. Laws: an outcome is in the journal
before anybody hears of it; only what a machine is to blame for is tried again, and that not for ever.
"""

import contextlib
import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from nndeploy.errors import InputOutputError, UnavailableError, told_error
from nndeploy.farm.engine import Engine
from nndeploy.farm.job import Job, command_of
from nndeploy.farm.journal import Journal
from nndeploy.farm.outcome import Outcome, fields_of
from nndeploy.farm.planned import BUILT, FAILED, Planned
from nndeploy.farm.waiting_jobs import WaitingJobs

MAX_TRIES = 3
BACK_OFF_SECONDS = (1.0, 10.0)
"""How long a job waits for its second and its third try."""
SAME_FOR_EQUAL_KEYS = ("failed", "unsupported", "crash")
"""What came of one build comes of every other of its key; limits of time may differ."""
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
    """Jobs that wait, and those that run; `followers` wait for one that builds the same, `resting` for a time."""

    waiting: WaitingJobs = field(default_factory=WaitingJobs)
    followers: dict[str, list[Job]] = field(default_factory=dict)
    resting: list[tuple[float, Job]] = field(default_factory=list)
    planned: dict[str, Planned] = field(default_factory=dict)
    tries: dict[str, int] = field(default_factory=dict)
    running: set[str] = field(default_factory=set)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    num_failures: int = 0


class BatchRun:
    """Runs planned jobs; `outcomes` are there at every moment, so that who interrupts it has them."""

    def __init__(
        self, engine: Engine, journal: Journal, events: Events, fleet_file: str, max_failures: int | None = None
    ) -> None:
        """Begins with nothing; after `max_failures` what is left is cancelled, None for never.

        A job that no worker can build is no such failure.
        """
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

    def run(self, jobs: Sequence[Planned], look: Callable[[], None] = lambda: None) -> None:
        """Runs all jobs to their ends; `look` is called again and again, and may raise to end it.

        One that no worker will ever build is told first, and costs no other.

        Raises:
            InputOutputError: the journal cannot be written.
        """
        self._events.planned(jobs)
        state = self._state = _State(planned={one.job.id: one for one in jobs})
        first_of: dict[str, str] = {}
        for one in jobs:
            if one.state in (BUILT, FAILED):
                self._tell(one.job, one.outcome)
            elif reason := self._engine.why_never(one.job):
                self._tell(one.job, without_worker(one.job, reason), is_counted=False)
            elif one.key and one.key in first_of:  # the same build: it is in the cache when that is done
                state.followers.setdefault(first_of[one.key], []).append(one.job)
            else:
                state.waiting.add(one.job)
                if one.key:
                    first_of[one.key] = one.job.id
        while state.waiting or state.resting or state.running:
            look()
            if self._is_enough():
                self.interrupt()
                return
            self._feed()
            for job, outcome in self._engine.wait(self._seconds_to_wait()):
                self._ended(job, outcome)

    def interrupt(self) -> None:
        """Ends what is running; what had not ended is "cancelled"."""
        state = self._state
        self._engine.cancel()
        deadline = time.monotonic() + CANCEL_SECONDS
        while state.running and time.monotonic() < deadline:
            for job, outcome in self._engine.wait(0.05):
                state.running.discard(job.id)
                with contextlib.suppress(InputOutputError):  # a journal that cannot be written may be why all ends
                    self._tell(job, replace(self._noted(job, outcome, is_final=outcome.is_good), final=True))
        for name, one in state.planned.items():
            if name not in state.outcomes:
                self._tell(one.job, _not_run(one.job))

    def _feed(self) -> None:
        state, now = self._state, time.monotonic()
        for rested in [one for one in state.resting if one[0] <= now]:
            state.resting.remove(rested)
            state.waiting.add_first(rested[1])
        while (job := state.waiting.take(self._engine.has_room)) is not None:
            number = state.tries[job.id] = state.tries.get(job.id, 0) + 1
            self._journal.write("started", job=job.id, number=number)
            self._events.started(job, number)
            self._engine.start(job, number)
            state.running.add(job.id)

    def _seconds_to_wait(self) -> float:
        due = [at - time.monotonic() for at, _ in self._state.resting]
        return max(0.01, min([WAIT_SECONDS, *due]))

    def _ended(self, job: Job, outcome: Outcome) -> None:
        state = self._state
        state.running.discard(job.id)
        number = state.tries[job.id]
        is_again = outcome.status == "infra" and number < MAX_TRIES
        outcome = self._noted(job, outcome, is_final=not is_again)
        if is_again:
            state.resting.append((time.monotonic() + BACK_OFF_SECONDS[number - 1], job))
            self._events.finished(outcome)
            return
        self._tell(job, outcome)
        self._follow(job, outcome)

    def _follow(self, job: Job, outcome: Outcome) -> None:
        """Gives those that build the same what came of it, lets them take it from the cache, or has the next build."""
        state = self._state
        followers = state.followers.pop(job.id, [])
        if outcome.status in SAME_FOR_EQUAL_KEYS:
            for one in followers:
                same = replace(outcome, **fields_of(one), seconds=0.0)
                self._tell(one, self._noted(one, same, is_final=True))
            return
        if followers and not outcome.is_good:
            state.followers[followers[0].id] = followers[1:]
            followers = followers[:1]
        for one in reversed(followers):
            state.waiting.add_first(one)

    def _noted(self, job: Job, outcome: Outcome, *, is_final: bool) -> Outcome:
        """Returns an outcome with what the batch knows of its job; it is in the journal then."""
        planned, number = self._state.planned[job.id], self._state.tries.get(job.id, 1)
        key, miss = outcome.key or planned.key, outcome.miss or planned.differs or ()
        told = replace(outcome, key=key, miss=miss, tries=number, final=is_final)
        told = replace(told, repeat=self._repeat(job, told))
        self._journal.finished(told, job.output)
        return told

    def _tell(self, job: Job, outcome: Outcome, *, is_counted: bool = True) -> None:
        self._state.outcomes[job.id] = outcome
        self._state.num_failures += outcome.is_failure and is_counted
        self._events.finished(outcome)

    def _repeat(self, job: Job, outcome: Outcome) -> str:
        if not outcome.is_failure:
            return ""
        return repeating(self._fleet_file, job)

    def _is_enough(self) -> bool:
        return self._max_failures is not None and self._state.num_failures >= self._max_failures


def repeating(fleet_file: str, job: Job) -> str:
    """Returns the command that does a job of a fleet file again."""
    return shlex.join(command_of(fleet_file, job.id, "--retry-failed"))


def _not_run(job: Job) -> Outcome:
    return Outcome(**fields_of(job), status="cancelled")


def without_worker(job: Job, reason: str) -> Outcome:
    """Returns the outcome of a job that no worker will ever build; the journal has none, for there may be one later."""
    error = UnavailableError(f"no worker can build it: {reason}")
    return Outcome(**fields_of(job), status="infra", exit_code=error.exit_code, error=told_error(error))


def left_out(jobs: Sequence[Job]) -> list[Outcome]:
    """Returns the outcomes of jobs that a filter left out, with the sizes of those bundles that are there."""
    return [replace(_not_run(job), status="skipped", size=_size_of(Path(job.output))) for job in jobs]


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
