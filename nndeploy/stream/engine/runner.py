# SPDX-License-Identifier: Apache-2.0
"""Runs records through a bundle: one by one, in batches, or each part after the one before it.

`prepare` takes the inputs out of a record and looks for NaN; it may be called by the thread that loaded the record.
`run` gives each of its records outputs or an error. A batch is several records joined along the first axis; where it
fails, its records are run one by one, so that one bad record costs nobody else its result.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import TypeAlias

from nndeploy.errors import InputError, NndeployError, UsageError
from nndeploy.pacing.stream.protocol import Due
from nndeploy.runtime.batching import JoinedCalls, Proof, Runs, form_of
from nndeploy.stream.description import RunnerPlan
from nndeploy.stream.engine.non_finite import NanPolicy, non_finite_names
from nndeploy.stream.records import Record, is_of_one_record
from nndeploy.values.types import Value

Values: TypeAlias = dict[str, Value]


class Runner:
    """Runs records through one program, for one thread."""

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
        self._calls = JoinedCalls(program, proof=proof)

    def prepare(self, record: Record) -> None:
        """Checks the inputs of a record for what the user does not want; notes what the user wants to know."""
        if record.error is not None or self._nan == "pass":
            return
        odd = non_finite_names(self._inputs(record))
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
                self._run_one(record, self._inputs(record))
            return
        for group in self._groups(sound):
            self._run_joined(group)

    def _inputs(self, record: Record) -> Values:
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

    def run_carried(self, record: Record, state: Values) -> Values:
        """Runs one part with the state of the one before it; returns the state for the next one."""
        outputs = self._run_one(record, {**self._inputs(record), **state})
        return {} if outputs is None else {into: outputs[name] for name, into in self._plan.carry.items()}

    def _finish(self, record: Record, outputs: Values, run_ns: int) -> None:
        record.run_ns += run_ns
        record.add({field: outputs[name] for name, field in self._outputs})

    def _groups(self, records: Sequence[Record]) -> Iterator[list[Record]]:
        """Yields records that one call can take; those of the same form need not follow each other."""
        alike: dict[object, list[Record]] = {}
        for record in records:
            form = form_of(self._inputs(record))
            alike.setdefault(id(record) if form is None else form, []).append(record)
        for group in alike.values():
            while group:
                count = self._calls.num_joined([self._inputs(record) for record in group])
                yield group[:count]
                del group[:count]

    def _run_joined(self, group: Sequence[Record]) -> None:
        every = [self._inputs(record) for record in group]
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
