# SPDX-License-Identifier: Apache-2.0
"""State from part to part of a record: the outputs of one are inputs of the next, zeros or empty at first."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Lock

from nndeploy.bundle.manifest import Manifest
from nndeploy.stream.description import RunnerPlan
from nndeploy.stream.engine.runner import Runner, Values
from nndeploy.stream.model_fit import first_state
from nndeploy.stream.records import Record


@dataclass(slots=True)
class _Turn:
    """Where the parts of one record stand."""

    next_place: int = 0
    waiting: dict[int, Record] = field(default_factory=dict)
    state: Values = field(default_factory=dict)
    failed: Record | None = None


class Carry:
    """Runs the parts of each record in their order, the outputs of one being inputs of the next.

    All runners of a pipeline share one. A part whose turn has not come waits here, and goes on with the one before it.
    """

    def __init__(self, plan: RunnerPlan, manifest: Manifest) -> None:
        self._first = {name: first_state(plan, manifest, name) for name in plan.carry.values()}
        self._lock = Lock()
        self._turns: dict[int, _Turn] = {}

    def run(self, runner: Runner, part: Record) -> Iterator[Record]:
        """Runs `part` and those that waited for it, if its turn has come; yields each that is done."""
        key = id(part.parent)
        with self._lock:
            turn = self._turns.get(key)
            if turn is None:
                turn = self._turns[key] = _Turn(state=dict(self._first))
            if part.place != turn.next_place:
                turn.waiting[part.place] = part
                return
        now: Record | None = part
        while now is not None:
            self._step(runner, turn, now)
            with self._lock:
                turn.next_place += 1
                if turn.next_place == now.num_places:
                    del self._turns[key]
                after = turn.waiting.pop(turn.next_place, None)
            yield now
            now = after

    def _step(self, runner: Runner, turn: _Turn, part: Record) -> None:
        if turn.failed is not None:
            part.error, part.stage = turn.failed.error, turn.failed.stage
            return
        if part.error is None:
            turn.state = runner.run_carried(part, turn.state)
        if part.error is not None:
            turn.failed = part
