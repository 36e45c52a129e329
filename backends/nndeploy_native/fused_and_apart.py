# SPDX-License-Identifier: Apache-2.0
"""Times the fused steps of one plan against the same steps done apart: its calls take turns.

Apart is a step whose window is the whole image: all of its first result is written before any of it is read again. Its
sums may round otherwise.
"""

import threading
from collections.abc import Callable, Sequence

import numpy as np

from nndeploy.plugin.interface import FusedTimes
from nndeploy_native.plan_tuning import Trial
from nndeploy_native.step_choices import MAX_CHOICE_BYTES, StepChoice, StepFacts
from nndeploy_native.tuned_tables import Shapes
from nndeploy_native.tuning import WINDOWED

LEFT_OUT = 2
"""The first calls of each way, which also make pages."""


class FusedAndApart:
    """The turns of one session; calls at the same time as one of them are done as ever."""

    def __init__(
        self,
        facts_of: Callable[[Shapes, Sequence[StepChoice]], Sequence[StepFacts]],
        choices_for: Callable[[Shapes], Sequence[StepChoice]],
        kernels: Sequence[str],
    ) -> None:
        """`choices_for` tells how calls of these shapes are done otherwise, `kernels` are those of the steps."""
        self._facts_of, self._choices_for, self._kernels = facts_of, choices_for, kernels
        self._turns: dict[Shapes, _Turns] = {}
        self._is_taken = threading.Lock()

    def trial(self, shapes: Shapes) -> Trial | None:
        """Returns how a call of these shapes is done; None where another one is under way."""
        if not self._is_taken.acquire(blocking=False):
            return None
        turns = self._turns.pop(shapes, None) or self._begun(shapes)
        self._turns[shapes] = turns  # the last is what was called last
        release = self._is_taken.release
        return Trial(turns, len(self._kernels), release, release)

    def times(self) -> list[FusedTimes | None]:
        """Returns the times of each step at the shapes that were called last."""
        if not self._turns:
            return [None] * len(self._kernels)
        return next(reversed(self._turns.values())).found()

    def _begun(self, shapes: Shapes) -> "_Turns":
        fused = tuple(self._choices_for(shapes))
        apart = tuple(
            one._replace(buffer_bytes=MAX_CHOICE_BYTES, rounding=1) if kernel in WINDOWED else one
            for one, kernel in zip(fused, self._kernels, strict=True)
        )
        facts = zip(self._facts_of(shapes, fused), self._facts_of(shapes, apart), strict=True)
        return _Turns(fused, apart, [before.shown != after.shown for before, after in facts])


class _Turns:
    """Calls of one set of shapes, fused and apart in turn."""

    memory = 0

    def __init__(self, fused: tuple[StepChoice, ...], apart: tuple[StepChoice, ...], differs: Sequence[bool]) -> None:
        self._ways, self._differs = (fused, apart), differs
        self._times: tuple[list[Sequence[int]], list[Sequence[int]]] = ([], [])
        self._now = 0

    def next_choices(self) -> tuple[StepChoice, ...]:
        """Returns how the next call is done."""
        return self._ways[self._now]

    def told(self, step_ns: Sequence[int]) -> None:
        """Takes the times of that call."""
        self._times[self._now].append(list(step_ns))
        self._now = 1 - self._now

    def found(self) -> list[FusedTimes | None]:
        """Returns the times of each step that is done otherwise apart, once each way was called often enough."""
        kept = [times[LEFT_OUT:] for times in self._times]
        if not all(kept):
            return [None] * len(self._differs)
        medians = zip(*(np.median(times, axis=0).tolist() for times in kept), strict=True)
        return [FusedTimes(*both) if differs else None for both, differs in zip(medians, self._differs, strict=True)]
