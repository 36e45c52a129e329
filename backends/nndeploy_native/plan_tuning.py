# SPDX-License-Identifier: Apache-2.0
"""The tuning of one plan while it is called: a race for each set of shapes that comes."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from nndeploy_native.step_choices import StepChoice, StepFacts
from nndeploy_native.tuned_tables import Box, Shapes, TunedTable
from nndeploy_native.tuning import Race, RaceOptions

USUAL_L2 = 1 << 20
"""What the library counts with where the second cache is not known."""


class Trials(Protocol):
    """Who says how calls of one set of shapes are done, and is told what they took: a race, or who else takes turns."""

    memory: int

    def next_choices(self) -> tuple[StepChoice, ...]:
        """Returns how the steps of the next call are done."""

    def told(self, step_ns: Sequence[int]) -> None:
        """Takes the nanoseconds of each step of that call."""


class Trial:
    """One call that is tried: how its steps are done, and where their nanoseconds go.

    Calls of one `memory` may use the same, calls of others may not.
    """

    def __init__(self, trials: Trials, num_steps: int, end: Callable[[], None], drop: Callable[[], None]) -> None:
        """`end` is called once what the call took was told, `drop` where it is not made."""
        self.choices, self.memory = trials.next_choices(), trials.memory
        self.step_ns = np.zeros(num_steps, np.int64)
        self._trials, self._end, self.drop = trials, end, drop

    def end(self) -> None:
        """Tells what the call took."""
        self._trials.told(self.step_ns.tolist())
        self._end()


class PlanTuning:
    """The races of one session. One call at a time is part of one; others are done as ever."""

    def __init__(
        self,
        facts_of: Callable[[Shapes, Sequence[StepChoice]], Sequence[StepFacts]],
        num_steps: int,
        box: Box,
        seconds: float,
        take: Callable[[Shapes, Sequence[StepChoice]], None],
        clock: Callable[[], float] = time.perf_counter,
        *,
        is_fast: bool = False,
    ) -> None:
        """`facts_of` tells what the steps are like for shapes and choices; `box` is this machine.

        `take` gets what won for some shapes, once it is known. `clock` tells the seconds that count; `is_fast` as in
        `RaceOptions`.
        """
        self._facts_of, self._num_steps, self._box, self._take = facts_of, num_steps, box, take
        l2_bytes = box["caches"].get("l2", USUAL_L2)
        self._how = RaceOptions(seconds, box["threads"], l2_bytes, box["buffer_bytes"], clock, is_fast)
        self._races: dict[Shapes, Race] = {}
        self._is_taken = threading.Lock()

    @property
    def is_done(self) -> bool:
        """Whether there is nothing more to try for any shapes that came."""
        return bool(self._races) and all(race.is_done for race in self._races.values())

    def trial(self, shapes: Shapes) -> Trial | None:
        """Returns how a call of these shapes is tried; None where it is not."""
        if not self._is_taken.acquire(blocking=False):
            return None
        race = self._races.get(shapes)
        if race is None:
            race = Race(lambda choices: self._facts_of(shapes, choices), self._num_steps, self._how)
            self._races[shapes] = race
        if race.is_done:
            self._is_taken.release()
            return None
        return Trial(race, self._num_steps, lambda: self._end(shapes, race), self._is_taken.release)

    def _end(self, shapes: Shapes, race: Race) -> None:
        if race.is_done:
            self._take(shapes, race.found().choices)
        self._is_taken.release()

    def table(self, shapes: Shapes) -> TunedTable | None:
        """Returns what was found for these shapes once their race came to its end."""
        race = self._races[shapes]
        return TunedTable(self._box, shapes, *race.found()) if race.is_done else None

    def tables(self) -> list[TunedTable]:
        """Returns what was found for each set of shapes whose race came to its end."""
        return [table for table in map(self.table, self._races) if table is not None]
