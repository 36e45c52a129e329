# SPDX-License-Identifier: Apache-2.0
"""Runs records through a bundle: one by one, in batches, or each part after the one before it.

`prepare` takes the inputs out of a record and looks for NaN; it may be called by the thread that loaded the record.
`run` gives each of its records outputs or an error. A batch is several records joined along the first axis; where it
fails, its records are run one by one, so that one bad record costs nobody else its result.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import TypeAlias

import numpy as np

from nndeploy.errors import InputError, NndeployError, UsageError
from nndeploy.pacing.stream.protocol import Due
from nndeploy.runtime.batching import JoinedCalls, Proof, Runs, form_of
from nndeploy.stream.description import RunnerPlan
from nndeploy.stream.engine.loop_rows import Rows
from nndeploy.stream.engine.non_finite import NanPolicy, non_finite_names
from nndeploy.stream.records import Record, is_of_one_record
from nndeploy.values.types import Value

Values: TypeAlias = dict[str, Value]


class Runner:
    """Runs records through one program, for one thread; at most `most_rows` in one call."""

    def __init__(
        self, program: Runs, plan: RunnerPlan, nan: NanPolicy, stage: str, proof: Proof, due: Due = nullcontext
    ) -> None:
        """Takes a plan that was found to fit the program; all runners of a pipeline share the proof.

        `due` is around each run, which should end in time.
        """
        self._program = program
        self._plan = plan
        self._nan = nan
        self._stage = stage
        self._outputs = tuple(plan.outputs.items())
        self._due = due
        self._proof = proof
        self._calls = JoinedCalls(program, proof=proof)
        self.most_rows = min(plan.batch, self._calls.most_rows)

    def prepare(self, record: Record) -> None:
        """Checks the inputs of a record for what the user does not want; notes what the user wants to know."""
        if record.error is not None or self._nan == "pass":
            return
        odd = non_finite_names(self.inputs(record))
        if odd and self._nan == "reject":
            names = ", ".join(map(repr, odd))
            record.fail(InputError(f"holds NaN or infinity in {names}", hint="allow it with --nan flag"), self._stage)
        else:
            record.non_finite += odd

    def run(self, records: Sequence[Record]) -> None:
        """Gives each record that has no error its outputs, or an error.

        Raises:
            NndeployError: what would hit every record alike.
        """
        sound = [record for record in records if record.error is None]
        if self._plan.batch == 1:
            for record in sound:
                self._run_one(record, self.inputs(record))
            return
        for group in self._groups(sound):
            self._run_joined(group)

    def inputs(self, record: Record) -> Values:
        """Returns what the model takes of a record."""
        if self._plan.inputs is None:
            return record.fields
        fields = record.fields
        return {name: fields[source] for name, source in self._plan.inputs.items() if source in fields}

    def _run_one(self, record: Record, inputs: Values) -> Values | None:
        began = time.perf_counter_ns()
        try:
            with self._due(record):
                outputs = self._program.run(inputs)
        except NndeployError as err:
            record.fail(err, self._stage)
            return None
        self._finish(record, outputs, time.perf_counter_ns() - began)
        return outputs

    def run_carried(self, record: Record, state: Mapping[str, Value]) -> Values:
        """Runs one part with the state of the one before it; returns the state for the next one."""
        outputs = self._run_one(record, {**self.inputs(record), **state})
        return {} if outputs is None else self._carried(outputs, state)

    def run_rows(self, rows: Rows, filled_up: Proof) -> Values | None:
        """Runs records together, each with a state of its own; returns the states for the next call.

        None where they cannot: the call failed, or, which `filled_up` then says, the model does not leave out what was
        filled up. Each is to be run by itself then.

        Raises:
            NndeployError: what would hit every record alike.
        """
        began = time.perf_counter_ns()
        try:
            outputs = self._calls.run_joined(rows.inputs(), len(rows.group))
            run_ns = time.perf_counter_ns() - began
            each = rows.apart(outputs, self._plan.carry)
            if not self._is_right(rows, each, filled_up):
                return None
        except UsageError as err:
            raise err.within(self._stage) from err
        except NndeployError as err:
            if not is_of_one_record(err):
                raise
            return None
        for going, own in zip(rows.group, each, strict=True):
            self._finish(going.record, own, run_ns)
        return self._carried(outputs, rows.states.values)

    def _is_right(self, rows: Rows, outputs: Sequence[Values], filled_up: Proof) -> bool:
        """Returns whether the model leaves out what was filled up, if anything was.

        Raises:
            UsageError: nothing was, and an output of a record depends on the others.
        """
        proof = filled_up if rows.is_filled_up else self._proof
        if not proof.is_done:
            try:
                self._calls.prove(rows.alone(), outputs, proof)
            except UsageError:
                if not rows.is_filled_up:
                    raise
                proof.is_refuted = True
        return not proof.is_refuted

    def _carried(self, outputs: Mapping[str, Value], before: Mapping[str, Value]) -> Values:
        """Returns the next state. An output without rows leaves it as it was, as merged decoders mean by that."""
        carried = ((outputs[name], into) for name, into in self._plan.carry.items())
        return {into: before[into] if _has_no_rows(value, before[into]) else value for value, into in carried}

    def _finish(self, record: Record, outputs: Values, run_ns: int) -> None:
        record.run_ns += run_ns
        record.add({field: outputs[name] for name, field in self._outputs})

    def _groups(self, records: Sequence[Record]) -> Iterator[list[Record]]:
        """Yields records that one call can take; those of the same form need not follow each other."""
        alike: dict[object, list[Record]] = {}
        for record in records:
            form = form_of(self.inputs(record))
            alike.setdefault(id(record) if form is None else form, []).append(record)
        for group in alike.values():
            while group:
                count = self._calls.num_joined([self.inputs(record) for record in group])
                yield group[:count]
                del group[:count]

    def _run_joined(self, group: Sequence[Record]) -> None:
        every = [self.inputs(record) for record in group]
        began = time.perf_counter_ns()
        try:
            outputs = self._calls.run(every)
            run_ns = time.perf_counter_ns() - began
            self._calls.prove(every, outputs)
        except UsageError as err:
            raise err.within(self._stage) from err
        except NndeployError as err:
            if not is_of_one_record(err):
                raise
            self._run_apart(group, err)
            return
        for record, own in zip(group, outputs, strict=True):
            self._finish(record, own, run_ns)

    def _run_apart(self, group: Sequence[Record], error: NndeployError) -> None:
        if len(group) == 1:
            group[0].fail(error, self._stage)
            return
        for record in group:
            self._run_joined([record])


def _has_no_rows(value: Value, before: Value) -> bool:
    """Returns whether the first axis of a value is empty, and that of the value before is not."""
    return bool(np.shape(value)[:1] == (0,) != np.shape(before)[:1])
