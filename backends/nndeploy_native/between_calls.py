# SPDX-License-Identifier: Apache-2.0
"""Trials between the calls of a session, on the inputs of an earlier call: calls themselves are done as ever.

    calls tell their shapes -> inputs of shapes that come again are copied -> trials, one at a time -> the next shapes

Law: a call waits for one trial at most, which is as long as a call; a trial begins where no call is under way.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from nndeploy_native.native_memory import ByteArray, address_of
from nndeploy_native.plan_tuning import PlanTuning, Trial
from nndeploy_native.tuned_tables import Shapes, TunedTable

Given: TypeAlias = list[tuple[ByteArray, int]]
"""Inputs of a call, with their addresses."""
SEEN = 3
"""Shapes are tried once they came so often."""
MOST_COUNTED = 1024
"""Sets of shapes whose calls are counted."""
MOST_BYTES = 256 << 20
"""Larger inputs are not copied, and their shapes not tried."""
WAIT_SECONDS = 0.1
"""How long a trial waits for calls to end."""


class TrialClock:
    """The seconds that trials took so far; what passes between them does not count."""

    def __init__(self) -> None:
        self._before, self._began = 0.0, 0.0

    def __call__(self) -> float:
        return self._before + (time.perf_counter() - self._began if self._began else 0.0)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Lets it run within the block."""
        self._began = time.perf_counter()
        try:
            yield
        finally:
            self._before, self._began = self(), 0.0


class Turns:
    """Who works: any number of calls at once, or one trial."""

    def __init__(self) -> None:
        self._change = threading.Condition()
        self._num_calls = 0
        self._is_trial = self._is_wanted = False

    @contextmanager
    def call(self) -> Iterator[None]:
        """Lets a call work within the block, after the trial that is under way."""
        with self._change:
            while self._is_trial:
                self._change.wait()
            self._num_calls += 1
        try:
            yield
        finally:
            with self._change:
                self._num_calls -= 1
                if not self._num_calls and self._is_wanted:  # calls that wait already would never let it in
                    self._is_wanted, self._is_trial = False, True
                    self._change.notify_all()

    @contextmanager
    def trial(self) -> Iterator[bool]:
        """Lets a trial work within the block, if it yields True; it does not where calls go on and on at once."""
        with self._change:
            self._is_trial = not self._num_calls
            if not self._is_trial:
                self._is_wanted = True
                self._change.wait_for(lambda: self._is_trial, WAIT_SECONDS)
                self._is_wanted = False
            is_ours = self._is_trial
        try:
            yield is_ours
        finally:
            with self._change:
                self._is_trial = False
                self._change.notify_all()


class SeenInputs:
    """Chooses the shapes that are tried next, and keeps a copy of inputs of these."""

    def __init__(self) -> None:
        self.shapes: Shapes | None = None
        self.is_new = False
        """Whether nothing was tried of these yet."""
        self._given: list[ByteArray] = []
        self._counts: dict[Shapes, int] = {}
        self._change = threading.Lock()

    def saw(self, shapes: Shapes, given: Given) -> None:
        """Counts a call that was right, with its inputs."""
        if self.shapes is not None:
            return
        with self._change:
            count = self._counts.get(shapes, 0)
            if self.shapes is not None or count >= SEEN or (not count and len(self._counts) >= MOST_COUNTED):
                return
            self._counts[shapes] = count + 1
            if count + 1 == SEEN and sum(array.nbytes for array, _ in given) <= MOST_BYTES:
                self._given = [array.copy() for array, _ in given]
                self.shapes, self.is_new = shapes, True

    def given(self) -> Given:
        """Returns the inputs of a trial, with their addresses."""
        return [(array, address_of(array)) for array in self._given]

    def end(self) -> None:
        """Ends the trials of these shapes, which do not come back."""
        with self._change:
            self.shapes, self._given = None, []


class BetweenCalls:
    """The trials of one session; one thread alone asks for them."""

    def __init__(
        self,
        clock: TrialClock,
        tuning: PlanTuning,
        prepared: Callable[[Given, Shapes, Trial], Callable[[], object]],
        is_known: Callable[[Shapes], bool],
    ) -> None:
        """`prepared` returns what makes the call of a trial; shapes that are known are not tried."""
        self.turns, self.seen = Turns(), SeenInputs()
        self._clock, self._tuning, self._prepared, self._is_known = clock, tuning, prepared, is_known
        self._at_work, self._is_over = threading.Lock(), False

    def close(self) -> None:
        """Waits for the trial that is under way, and makes no more."""
        with self._at_work:
            self._is_over = True

    def try_once(self) -> list[TunedTable] | None:
        """Makes one trial; returns the table of the shapes once nothing is left to try of them, None: no trial."""
        with self._at_work:
            shapes = None if self._is_over else self.seen.shapes
            if shapes is None:
                return None
            if self.seen.is_new and self._is_known(shapes):
                self.seen.end()
                return []
            self.seen.is_new = False
            return self._tried(shapes)

    def _tried(self, shapes: Shapes) -> list[TunedTable] | None:
        with self._clock.running():
            trial = self._tuning.trial(shapes)
            assert trial is not None, "one thread asks, and the race is not over"
            run = self._prepared(self.seen.given(), shapes, trial)
        with self.turns.trial() as is_ours:
            if not is_ours:
                trial.drop()
                return None
            with self._clock.running():
                run()
        with self._clock.running():
            trial.end()
        table = self._tuning.table(shapes)
        if table is None:
            return []
        self.seen.end()
        return [table]
