# SPDX-License-Identifier: Apache-2.0
"""A record that its model takes again and again, as a text that a decoder writes token by token.

Each round is a call of the model, whose carried inputs are outputs of the round before (zeros or empty at first), and
the steps of the loop. Law: a record ends in the round that gives the field `until` a value, or fails in it.
"""

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from nndeploy.bundle.manifest import Manifest
from nndeploy.stream.description import LoopPlan, RunnerPlan
from nndeploy.stream.engine.runner import Runner
from nndeploy.stream.engine.steps import do_steps
from nndeploy.stream.model_fit import first_state
from nndeploy.stream.records import Record
from nndeploy.values.types import Value

TEXT = "text"
"""The field of the text so far, where a loop writes one."""
OnRound: TypeAlias = Callable[[Record, bool], None]
"""Is called after each round with the record, and whether that was its last one."""


def no_round(record: Record, is_last: bool) -> None:
    """Takes no notice."""


class Loop:
    """The rounds of the records of one pipeline; all its runners share one."""

    def __init__(self, plan: RunnerPlan, loop: LoopPlan, manifest: Manifest, stage: str, on_round: OnRound) -> None:
        self._first = {name: first_state(plan, manifest, name) for name in plan.carry.values()}
        self._loop, self._stage, self._on_round = loop, stage, on_round

    def run(self, runner: Runner, record: Record) -> Iterator[Record]:
        """Runs a record until it is done or fails, and yields it."""
        state, is_last = dict(self._first), record.error is not None
        while not is_last:
            state = runner.run_carried(record, state)
            do_steps(record, self._loop.steps, self._stage)
            is_last = record.error is not None or _is_given(record.fields[self._loop.until])
            self._on_round(record, is_last)
            is_last = is_last or record.error is not None  # who sees a round may end the record
        yield record


def _is_given(value: Value) -> bool:
    return bool(np.any(value)) if isinstance(value, np.ndarray) else bool(value)
