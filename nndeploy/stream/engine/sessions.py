# SPDX-License-Identifier: Apache-2.0
"""State from record to record of one session: the outputs of one are inputs of the next, zeros or empty at first.

A session is named by a field of its records. Laws: records come here in the order of the stream; a record that fails
leaves its session as it was; of more sessions than the limit, the one that had a record longest ago is forgotten.
"""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from nndeploy.bundle.manifest import Manifest
from nndeploy.errors import InputError
from nndeploy.runtime.plain_data import only_element
from nndeploy.stream.description import RunnerPlan
from nndeploy.stream.engine.runner import Runner, Values
from nndeploy.stream.model_fit import first_state
from nndeploy.stream.records import Record


class Sessions:
    """The states of the sessions of one runner; `num_forgotten` are those that went to keep to the limit."""

    def __init__(self, plan: RunnerPlan, manifest: Manifest, stage: str) -> None:
        self.num_forgotten = 0
        self._field, self._most, self._stage = plan.session, plan.sessions, stage
        self._first = {name: first_state(plan, manifest, name) for name in plan.carry.values()}
        self._states: OrderedDict[str | int, Values] = OrderedDict()

    def run(self, runner: Runner, record: Record) -> Iterator[Record]:
        """Runs a record with the state of its session, and yields it."""
        if record.error is None:
            try:
                session = _name_of(record.fields[self._field])
            except InputError as err:
                record.fail(err.within(f"session {self._field!r}"), self._stage)
            else:
                self._step(runner, record, session)
        yield record

    def _step(self, runner: Runner, record: Record, session: str | int) -> None:
        before = self._states.pop(session, self._first)
        after = runner.run_carried(record, before)
        self._states[session] = after if record.error is None else before
        while len(self._states) > self._most:
            self._states.popitem(last=False)
            self.num_forgotten += 1


def _name_of(value: Any) -> str | int:
    """Returns the name of a session: a text or a whole number, by itself or as the one element of an array.

    Raises:
        InputError: it is something else.
    """
    one = only_element(value)
    if isinstance(one, bytes):
        one = one.decode("utf-8", "surrogateescape")
    if isinstance(one, bool) or not isinstance(one, str | int):
        raise InputError("is neither a text nor a whole number")
    return one
