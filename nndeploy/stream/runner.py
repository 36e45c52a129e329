# SPDX-License-Identifier: Apache-2.0
"""Runs records through a bundle: one by one, in batches, or each part after the one before it.

`prepare` takes the inputs out of a record and looks for NaN; it may be called by the thread that loaded the record.
`run` gives each of its records outputs or an error. A batch is several records joined along the first axis; where it
fails, its records are run one by one, so that one bad record costs nobody else its result.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Protocol, TypeAlias

import numpy as np

from nndeploy.bundle.manifest import Manifest, NamedType
from nndeploy.errors import InputError, NndeployError, UsageError, did_you_mean
from nndeploy.stream.description import RunnerPlan
from nndeploy.stream.non_finite import NanPolicy, non_finite_names
from nndeploy.stream.records import Record, is_of_one_record
from nndeploy.value_types import OptionalType, TensorType, Value, ValueType, numpy_dtype

_Array: TypeAlias = np.ndarray[Any, Any]
Values: TypeAlias = dict[str, Value]


class RunsValues(Protocol):
    """What a runner needs of a program."""

    @property
    def manifest(self) -> Manifest:
        """What the bundle says of itself."""

    def run(self, inputs: Mapping[str, Value]) -> Values:
        """Returns the outputs by name."""


class Runner:
    """Runs records through one program, for one thread."""

    def __init__(self, program: RunsValues, plan: RunnerPlan, nan: NanPolicy, stage: str) -> None:
        """Checks that the plan fits the program.

        Raises:
            UsageError: the plan names an input or output that there is none of, or a batch that the model cannot take.
        """
        self._program = program
        self._plan = plan
        self._nan = nan
        self._stage = stage
        self._outputs = tuple(plan.outputs.items())
        check_names(plan, program.manifest, stage)
        self._fixed_rows = fixed_rows(plan, program.manifest, stage)

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
        for group in self._groups(sound):
            if len(group) == 1 and not self._fixed_rows:
                self._run_one(group[0])
            else:
                self._run_joined(group)

    def _inputs(self, record: Record) -> Values:
        if self._plan.inputs is None:
            return record.fields
        fields = record.fields
        return {name: fields[source] for name, source in self._plan.inputs.items() if source in fields}

    def _run_one(self, record: Record, inputs: Values | None = None) -> Values | None:
        began = time.perf_counter_ns()
        try:
            outputs = self._program.run(self._inputs(record) if inputs is None else inputs)
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
        """Yields records that can be joined, in order."""
        if self._plan.batch == 1 and not self._fixed_rows:
            for record in records:
                yield [record]
            return
        groups: dict[object, list[Record]] = {}
        for record in records:
            form = _form(self._inputs(record))
            same = groups.setdefault(form if form is not None else id(record), [])
            if same and self._fixed_rows and sum(map(self._num_rows, (*same, record))) > self._fixed_rows:
                yield groups.pop(form)
                same = groups.setdefault(form, [])
            same.append(record)
        yield from groups.values()

    def _num_rows(self, record: Record) -> int:
        first: _Array = next(iter(self._inputs(record).values()))
        return len(first)

    def _run_joined(self, group: Sequence[Record]) -> None:
        every = [self._inputs(record) for record in group]
        if any(_form(inputs) is None for inputs in every):
            self._run_one(group[0])  # it is alone: it will say what is wrong with it
            return
        rows = [len(next(iter(inputs.values()))) for inputs in every]
        inputs = {name: _stacked([values[name] for values in every], self._fixed_rows) for name in every[0]}
        began = time.perf_counter_ns()
        try:
            outputs = self._program.run(inputs)
        except NndeployError as err:
            if not is_of_one_record(err):
                raise
            self._run_apart(group, err)
            return
        run_ns = time.perf_counter_ns() - began
        self._check_rows(outputs, max(sum(rows), self._fixed_rows))
        begin = 0
        for record, count in zip(group, rows, strict=True):
            self._finish(record, {name: value[begin : begin + count] for name, value in outputs.items()}, run_ns)
            begin += count

    def _run_apart(self, group: Sequence[Record], error: NndeployError) -> None:
        if len(group) == 1:
            group[0].fail(error, self._stage)
            return
        for record in group:
            self.run([record])

    def _check_rows(self, outputs: Values, rows: int) -> None:
        for name, value in outputs.items():
            if not isinstance(value, np.ndarray) or value.ndim == 0 or len(value) != rows:
                got = getattr(value, "shape", type(value).__name__)
                raise UsageError(
                    f"the output {name!r} of a batch of {rows} is {got}: this model takes no batches",
                    where=self._stage, hint="leave out batch",
                )  # fmt: skip


def _form(inputs: Values) -> object | None:
    """Returns what must agree between records that are joined, or None where a record cannot be."""
    rows: set[int] = set()
    form = []
    for name, value in inputs.items():
        if not isinstance(value, np.ndarray) or value.ndim == 0 or not len(value):
            return None
        rows.add(len(value))
        form.append((name, value.dtype, value.shape[1:]))
    return tuple(form) if len(rows) == 1 else None


def _stacked(arrays: Sequence[_Array], fixed_rows: int) -> _Array:
    """Returns the arrays joined along the first axis; where the model's batch is fixed the last row fills it."""
    missing = fixed_rows - sum(map(len, arrays))
    if missing > 0:
        arrays = [*arrays, np.repeat(arrays[-1][-1:], missing, axis=0)]
    return np.concatenate(arrays) if len(arrays) > 1 else arrays[0]


def check_names(plan: RunnerPlan, manifest: Manifest, where: str) -> None:
    """Checks the names of inputs and outputs in a plan.

    Raises:
        UsageError: a name is unknown, or an input that the model needs gets nothing.
    """
    inputs = {item.name: item.type for item in manifest.inputs}
    outputs = {item.name: item.type for item in manifest.outputs}
    _check_known(plan.outputs, outputs, "output", where)
    _check_known(plan.carry, outputs, "output", where)
    _check_known(plan.carry.values(), inputs, "input", where)
    if plan.inputs is None:
        return
    _check_known(plan.inputs, inputs, "input", where)
    for name, value_type in inputs.items():
        if name not in plan.inputs and name not in plan.carry.values() and not isinstance(value_type, OptionalType):
            raise UsageError(f"the model's input {name!r} gets nothing", where=where, hint='inputs = { it = "field" }')


def _check_known(names: object, known: Mapping[str, object], what: str, where: str) -> None:
    assert isinstance(names, Mapping) or hasattr(names, "__iter__")
    for name in names:
        if name not in known:
            raise UsageError(f"the model has no {what} {name!r}", where=where, hint=did_you_mean(name, known))


def fixed_rows(plan: RunnerPlan, manifest: Manifest, where: str) -> int:
    """Returns how many rows the model always wants, 0 where it takes any number or there are no batches.

    An output may call its first axis otherwise than the inputs do, as exporters do; each call's rows are counted.

    Raises:
        UsageError: the model takes no batch of this size.
    """
    if plan.batch == 1:
        return 0
    if plan.carry:
        raise UsageError("batch and carry exclude each other: each part waits for the one before it", where=where)
    first_sizes = {_first_size(item, where) for item in manifest.inputs}
    if len(first_sizes) != 1:
        raise UsageError("the inputs differ in their first size: this model takes no batches", where=where)
    size = first_sizes.pop()
    for item in manifest.outputs:
        out = _first_size(item, where)
        if out not in (None, size) and (isinstance(out, int) or isinstance(size, int)):
            raise UsageError(
                f"the output {item.name!r} ({item.type}) has no batch axis: this model takes no batches", where=where
            )
    if isinstance(size, int):
        if size != plan.batch:
            raise UsageError(f"batch is {plan.batch}, the model's batch is always {size}", where=where)
        return size
    limits = manifest.ranges.get(size) if size is not None else None
    if limits is not None and plan.batch > limits.max:
        raise UsageError(f"batch is {plan.batch}, the model's batch ({size}) is {limits}", where=where)
    return 0


def _first_size(item: NamedType, where: str) -> int | str | None:
    if not isinstance(item.type, TensorType) or item.type.shape == ():
        raise UsageError(f"{item.name!r} ({item.type}) has no batch axis: this model takes no batches", where=where)
    return item.type.shape[0] if item.type.shape else None


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
        types = {item.name: item.type for item in manifest.inputs}
        self._zeros = {name: zeros(types[name]) for name in plan.carry.values()}
        self._lock = Lock()
        self._turns: dict[int, _Turn] = {}

    def run(self, runner: Runner, part: Record) -> Iterator[Record]:
        """Runs `part` and those that waited for it, if its turn has come; yields each that is done."""
        key = id(part.parent)
        with self._lock:
            turn = self._turns.get(key)
            if turn is None:
                turn = self._turns[key] = _Turn(state=dict(self._zeros))
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


def zeros(value_type: ValueType) -> _Array:
    """Returns zeros of a tensor's type; a size that is not fixed counts as 1.

    Raises:
        UsageError: it is no tensor of a known rank.
    """
    if not isinstance(value_type, TensorType) or value_type.shape is None or value_type.dtype == "string":
        raise UsageError(f"a value of type {value_type} cannot be carried from part to part")
    return np.zeros([size if isinstance(size, int) else 1 for size in value_type.shape], numpy_dtype(value_type.dtype))
