# SPDX-License-Identifier: Apache-2.0
"""Records that their model takes again and again, as a text that a decoder writes token by token.

Each round is a call of the model, whose carried inputs are outputs of the round before (zeros or empty at first), and
the steps of the loop. Several records go round in the same calls; who comes meanwhile joins them with the next round.
Law: a record ends in the round that gives the field `until` a value, or fails in it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from nndeploy.bundle.manifest import Manifest
from nndeploy.runtime.batching import Proof
from nndeploy.stream.description import LoopPlan, RunnerPlan
from nndeploy.stream.engine.loop_rows import CacheAxes, Going, Group, Rows, States
from nndeploy.stream.engine.returning import is_given
from nndeploy.stream.engine.runner import Runner
from nndeploy.stream.engine.steps import do_steps
from nndeploy.stream.model_fit import first_state, given_sizes
from nndeploy.stream.records import Record
from nndeploy.values.types import Value

TEXT = "text"
"""The field of the text so far, where a loop writes one."""
OnRound: TypeAlias = Callable[[Record, bool], None]
"""Is called after each round with the record, and whether that was its last one."""
More: TypeAlias = Callable[[int], Sequence[Record]]
"""Returns records that have come meanwhile, at most so many."""


def no_more(_: int) -> Sequence[Record]:
    """Returns none."""
    return ()


def no_round(record: Record, is_last: bool) -> None:
    """Takes no notice."""


class Loop:
    """The rounds of the records of one pipeline; all its runners share one."""

    def __init__(self, plan: RunnerPlan, loop: LoopPlan, manifest: Manifest, stage: str, on_round: OnRound) -> None:
        self._plan, self._manifest = plan, manifest
        self._caches, self._filled_up = CacheAxes(self._first({}).values), Proof()
        self._loop, self._stage, self._on_round = loop, stage, on_round

    def run(self, runner: Runner, records: Sequence[Record], more: More) -> Iterator[Record]:
        """Runs records until all are done or fail, with those that come meanwhile; yields each that is done."""
        going: list[Going] = []
        while records or going:
            yield from (record for record in records if record.error is not None)
            going += [
                Going(record, self._first(runner.inputs(record)), 0) for record in records if record.error is None
            ]
            for group in self._groups(runner, going):
                self._round(runner, group)
                ended = [one for one in group if self._is_last(one.record)]
                going = [one for one in going if one not in ended]
                yield from (one.record for one in ended)
            records = more(runner.most_rows - len(going)) if going else ()

    def _first(self, inputs: Mapping[str, Value]) -> States:
        """Returns the state in which a record with these inputs begins."""
        sizes = given_sizes(self._plan, self._manifest, inputs)
        return States(
            {name: first_state(self._plan, self._manifest, name, sizes) for name in self._plan.carry.values()}
        )

    def _groups(self, runner: Runner, going: Sequence[Going]) -> list[list[Going]]:
        """Returns the records that go together, the one with the shortest caches first."""
        if len(going) == 1:
            return [[*going]]
        groups: list[Group] = []
        for one in going:
            one.inputs = runner.inputs(one.record)
        for one in sorted(going, key=lambda one: self._caches.length(one) or 0):
            if not any(group.take(one) for group in groups):
                may_fill_up = not self._filled_up.is_refuted
                groups.append(Group(one, self._caches, runner.most_rows, may_fill_up=may_fill_up))
        return [group.members for group in groups]

    def _round(self, runner: Runner, group: Sequence[Going]) -> None:
        if len(group) > 1:
            states = self._caches.joined(group)
            after = runner.run_rows(Rows(group, states, self._caches), self._filled_up)
            if after is not None:
                joined = States(after, states.padding)
                for row, going in enumerate(group):
                    going.states, going.row = joined, row
                return
        for going in group:
            going.states, going.row = States(runner.run_carried(going.record, self._caches.state(going))), 0

    def _is_last(self, record: Record) -> bool:
        """Does the steps of a round; returns whether it was the record's last one."""
        do_steps(record, self._loop.steps, self._stage)
        is_last = record.error is not None or is_given(record.fields[self._loop.until])
        self._on_round(record, is_last)
        return is_last or record.error is not None  # who sees a round may end the record
