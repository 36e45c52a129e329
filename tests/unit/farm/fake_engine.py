# SPDX-License-Identifier: Apache-2.0
"""An engine that builds nothing, on a clock of its own, and jobs for it."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nndeploy.farm.job import Job
from nndeploy.farm.outcome import Outcome
from nndeploy.farm.planned import BUILD, Planned
from nndeploy.farm.run_batch import Events


def job(name: str, **fields: Any) -> Job:
    given: dict[str, Any] = {"given": {}, "limits": {}, "output": f"/nowhere/{name}.nnd"}
    return Job(id=f"{name}/host", model=name, target="host", variant="", source=f"/{name}.onnx", **{**given, **fields})


def planned(name: str, key: str = "", state: str = BUILD, **fields: Any) -> Planned:
    known = fields.pop("known", None)
    return Planned(job(name, **fields), key or hashlib.sha256(name.encode()).hexdigest(), state, known=known)


def outcome_of(one: Job, status: str = "ok", **fields: Any) -> Outcome:
    return Outcome(
        job=one.id, model=one.model, target=one.target, variant=one.variant, status=status, output=one.output, **fields
    )


@dataclass
class FakeEngine:
    """Ends what runs, the first one first, at each `wait`, with the next status that `statuses` has for it.

    `now` is its time, which passes while it is waited for and nothing runs; `begun` are the tries, in their order;
    `build` makes the outcome instead of `statuses`.
    """

    statuses: Mapping[str, Sequence[str]] = field(default_factory=dict)
    room: int = 1
    never: Mapping[str, str] = field(default_factory=dict)
    now: float = 0.0
    begun: list[tuple[str, int, float]] = field(default_factory=list)
    running: dict[str, tuple[Job, int]] = field(default_factory=dict)
    is_cancelled: bool = False
    build: Callable[[Job, int], Outcome] | None = None
    meanwhile: Callable[[str], object] = lambda _name: None

    def monotonic(self) -> float:
        return self.now

    def why_never(self, one: Job) -> str:
        return self.never.get(one.model, "")

    def has_room(self, one: Job) -> bool:
        return len(self.running) < self.room

    def start(self, one: Job, number: int) -> None:
        self.begun.append((one.model, number, self.now))
        self.running[one.id] = (one, number)

    def wait(self, seconds: float) -> list[tuple[Job, Outcome]]:
        assert seconds > 0
        if not self.running:
            self.now += seconds
            return []
        one, number = self.running.pop(next(iter(self.running)))
        if self.is_cancelled:
            return [(one, outcome_of(one, "cancelled"))]
        self.meanwhile(one.model)
        if self.build is not None:
            return [(one, self.build(one, number))]
        statuses = self.statuses.get(one.model, ["ok"])
        return [(one, outcome_of(one, statuses[min(number, len(statuses)) - 1]))]

    def cancel(self) -> None:
        self.is_cancelled = True

    def close(self) -> None:
        pass

    @property
    def order(self) -> list[str]:
        return [name for name, _, _ in self.begun]


class Heard(Events):
    """Remembers what a batch tells."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str]] = []

    def planned(self, jobs: Sequence[Planned]) -> None:
        self.said.append(("planned", ""))

    def started(self, one: Job, number: int) -> None:
        self.said.append(("started", one.model))

    def finished(self, outcome: Outcome) -> None:
        self.said.append((outcome.status, outcome.model))
