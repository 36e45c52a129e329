# SPDX-License-Identifier: Apache-2.0
"""What happens in a batch, as JSON lines for other programs, while it happens.

{"schema": "nndeploy.batch-event.1", "event": "finished", "outcome": {...}}
"""

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

from nndeploy.errors import CannotCreateError, InputOutputError
from nndeploy.farm.job import Job
from nndeploy.farm.outcome import Outcome, outcome_to_json
from nndeploy.farm.planned import Planned
from nndeploy.farm.run_batch import Events

SCHEMA = "nndeploy.batch-event.1"


class EventFile(Events):
    """A file that takes an event a line, as soon as it happens; None is none."""

    def __init__(self, path: str | None) -> None:
        """Opens the file.

        Raises:
            CannotCreateError: it cannot be made.
        """
        self._path, self._lock = path, threading.Lock()
        self._file: TextIO | None = None
        if path is None:
            return
        try:
            self._file = Path(path).open("w", encoding="utf-8")  # noqa: SIM115 - closed at the end of the block
        except OSError as err:
            raise CannotCreateError(f"cannot be created: {err.strerror}", where=path) from err

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def planned(self, jobs: Sequence[Planned]) -> None:
        self._tell("planned", jobs=[{"job": one.job.id, "key": one.key, "state": one.state} for one in jobs])

    def started(self, job: Job, number: int) -> None:
        self._tell("started", job=job.id, number=number)

    def stage(self, job: str, stage: str, detail: str) -> None:
        if not detail:
            self._tell("stage", job=job, stage=stage)

    def finished(self, outcome: Outcome) -> None:
        if self._file is not None:
            self._tell("finished", outcome=outcome_to_json(outcome))

    def _tell(self, event: str, **fields: Any) -> None:
        if self._file is None:
            return
        try:
            with self._lock:
                self._file.write(json.dumps({"schema": SCHEMA, "event": event, **fields}) + "\n")
                self._file.flush()
        except OSError as err:
            raise InputOutputError(f"the events cannot be written: {err.strerror}", where=self._path or "") from err


class _All(Events):
    def __init__(self, hearers: Sequence[Events]) -> None:
        self._hearers = hearers

    def planned(self, jobs: Sequence[Planned]) -> None:
        for one in self._hearers:
            one.planned(jobs)

    def started(self, job: Job, number: int) -> None:
        for one in self._hearers:
            one.started(job, number)

    def stage(self, job: str, stage: str, detail: str) -> None:
        for one in self._hearers:
            one.stage(job, stage, detail)

    def finished(self, outcome: Outcome) -> None:
        for one in self._hearers:
            one.finished(outcome)


def heard_by(*hearers: Events) -> Events:
    """Returns events that all of `hearers` hear, in their order."""
    return _All(hearers)
