# SPDX-License-Identifier: Apache-2.0
"""A plan -> a running session of the kernel library: numpy, ctypes and the library of this machine's level.

Several threads may call `run` at once: each takes a slot, with an arena of its own; sessions of the same files share
one model. Inputs are read where they are, outputs are written into arrays that nobody else holds.
"""

import ctypes
import math
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from nndeploy.errors import BundleError, DataError, InputError, OtherSizesError, UnavailableError, UsageError
from nndeploy.plugin.interface import FusedTimes
from nndeploy.plugin.pacing import PACE_VERSION, PacePoint, Pacer, Wanted
from nndeploy.values.plan_steps import step_name
from nndeploy.values.types import Value
from nndeploy_native.native_memory import ALIGNMENT, ByteArray, OutputMemory, address_of, aligned_zeros
from nndeploy_native.opened_model import MESSAGE_BYTES, OpenedModel
from nndeploy_native.plan import (
    DOCUMENT_FILE,
    DTYPES,
    ELEMENTS,
    MOVED,
    PLAN_FILE,
    PlanBorder,
    PlanDocument,
)
from nndeploy_native.step_choices import BY_RULE, WAY_BOTH, StepChoice, StepFacts, choices_in_memory, ways_packed
from nndeploy_native.tuned_tables import TunedFile, TunedTable, tables_to_data
from nndeploy_native.worker_pool import WorkerPool

if TYPE_CHECKING:  # few models have caches that grow, and few runs are tuned
    from nndeploy_native.between_calls import BetweenCalls
    from nndeploy_native.cache_memory import CacheMemories, CachesOfCall
    from nndeploy_native.fused_and_apart import FusedAndApart
    from nndeploy_native.plan_tuning import PlanTuning, Trial

MAX_TABLES = 1024
"""Tables of a session that are kept; each is some kilobytes."""
MAX_BYTES = 2**40
COUNTING_FROM_THE_END = ("gather", "gather_elements", "gather_nd", "scatter_elements", "scatter_nd")
"""Kernels whose negative indices are those of the axis from its end on."""
CLAMP_HINT = "compile with --out-of-range clamp to take the nearest index"

_Shapes = tuple[tuple[int, ...], ...]


class _Fault(ctypes.Structure):
    """struct nnd_fault."""

    _fields_ = tuple((name, ctypes.c_int64) for name in ("step", "at", "index", "size"))


class _Call(ctypes.Structure):
    """struct nnd_call."""

    _fields_ = (
        ("inputs", ctypes.c_void_p),
        ("outputs", ctypes.c_void_p),
        ("arena", ctypes.c_void_p),
        ("scratch", ctypes.c_void_p),
        ("scratch_bytes", ctypes.c_int64),
        ("pace", ctypes.c_void_p),
        ("fault", _Fault),
        ("step_ns", ctypes.c_void_p),
    )


class _Table:
    """What one set of input shapes comes to; freed with the last who holds it."""

    __slots__ = ("_model", "address", "arena_bytes", "outputs", "scratch_bytes")

    def __init__(self, model: OpenedModel, address: int, outputs: _Shapes) -> None:
        self._model, self.address, self.outputs = model, address, outputs
        self.arena_bytes = int(model.library.nnd_table_arena_bytes(address))
        self.scratch_bytes = int(model.library.nnd_table_scratch_bytes(address))

    def __del__(self) -> None:
        self._model.library.nnd_table_free(self.address)


class _Tables:
    """The tables of one session. Threads may ask at once: two may make the same table, one of which is kept."""

    def __init__(
        self, model: OpenedModel, document: PlanDocument, chosen: Mapping[_Shapes, tuple[StepChoice, ...]]
    ) -> None:
        self._model, self._document = model, document
        self._chosen = dict(chosen)
        self._names = [one.name for one in document.plan_inputs]
        self._kept: dict[_Shapes, _Table] = {}
        self._lock = threading.Lock()

    def move(self, model: OpenedModel) -> None:
        """Makes tables of another model of the same plan from now on."""
        self._model = model
        self._kept.clear()

    @property
    def chosen(self) -> Mapping[_Shapes, tuple[StepChoice, ...]]:
        """How steps are done where somebody chose it, by shapes."""
        return self._chosen

    def choose(self, shapes: _Shapes, choices: Sequence[StepChoice]) -> None:
        """Lets later calls of these shapes do their steps so."""
        self._chosen[shapes] = tuple(choices)
        self._kept.pop(shapes, None)

    def is_chosen(self, shapes: _Shapes) -> bool:
        """Whether somebody chose how calls of these shapes do their steps."""
        return shapes in self._chosen

    def choices_for(self, shapes: _Shapes) -> tuple[StepChoice, ...]:
        """Returns how calls of these shapes do their steps."""
        return self._chosen.get(shapes) or (BY_RULE,) * len(self._document.steps)

    def table_for(self, shapes: _Shapes) -> _Table:
        """Returns the table of the shapes of the inputs.

        Raises:
            OtherSizesError: the plan does not hold for these shapes.
        """
        found = self._kept.get(shapes)
        if found is None:
            found = self.made(shapes, self._chosen.get(shapes))
            with self._lock:
                while len(self._kept) >= MAX_TABLES:
                    self._kept.pop(next(iter(self._kept)))
                self._kept[shapes] = found
        return found

    def symbol(self, number: int, shapes: Sequence[tuple[int, ...]]) -> int:
        """Returns a symbol of the document for the shapes of the inputs.

        Raises:
            OtherSizesError: it is out of range.
        """
        try:
            return self._document.symbols[number].value(self._names, shapes)
        except InputError as err:
            raise OtherSizesError(err.what, where=err.where, hint=err.hint) from err

    def facts(self, table: _Table, step: int, kernel: str) -> StepFacts:
        """Returns what a step is like, but for what its buffer was said to hold."""
        told = self.told(table, step)
        sizes = [int(size) for size in str(told.pop("shape")).split("x") if size]
        told.pop("buffer_bytes", None)
        return StepFacts(kernel, repr(told), 4 * math.prod(sizes))

    def told(self, table: _Table, step: int) -> dict[str, int | str]:
        """Returns the sizes of what a step writes, and how it is done, in the words of the library."""
        library, text, numbers = self._model.library, ctypes.create_string_buffer(MESSAGE_BYTES), _numbers([0] * 10)
        library.nnd_table_describe(table.address, step, text, len(text))
        count = library.nnd_table_step_shape(table.address, step, numbers)
        scratch, kept = ctypes.c_int64(), ctypes.c_int64()
        library.nnd_table_step_bytes(table.address, step, ctypes.byref(scratch), ctypes.byref(kept))
        told = {"shape": "x".join(map(str, numbers[2:count])), **_choices_of(text.value.decode(errors="replace"))}
        return told | {name: one.value for name, one in (("scratch_bytes", scratch), ("kept_bytes", kept)) if one.value}

    def made(self, shapes: _Shapes, choices: Sequence[StepChoice] | None) -> _Table:
        """Returns a table that is not kept, whose steps are done as choices say; None: as the rules do.

        Raises:
            OtherSizesError: the plan does not hold for these shapes.
        """
        values = [self.symbol(number, shapes) for number in range(len(self._document.symbols))]
        flat = [
            number
            for one, shape in zip(self._document.plan_inputs, shapes, strict=True)
            for number in (ELEMENTS[one.element], len(shape), *shape)
        ]
        symbols, sizes, chosen = _numbers(values), _numbers(flat), choices_in_memory(choices)
        message = ctypes.create_string_buffer(MESSAGE_BYTES)
        library = self._model.library
        address = library.nnd_table_make(
            self._model.address, symbols, len(values), sizes, len(flat), chosen, message, len(message)
        )
        if not address:
            raise self._refusal(message.value.decode(errors="replace"), shapes)
        try:
            outputs = tuple(
                self._output(address, number, one) for number, one in enumerate(self._document.plan_outputs)
            )
        except BundleError:
            library.nnd_table_free(address)
            raise
        return _Table(self._model, address, outputs)

    def _refusal(self, message: str, shapes: _Shapes) -> OtherSizesError:
        """Returns the error that a message of the library is: of one input, or of what its sizes lead to."""
        head, _, expected = message.partition(": expected ")
        kind, _, number = head.partition(" ")
        if kind == "input" and expected and number.isdigit():
            name, shape = self._names[int(number)], shapes[int(number)]
            return OtherSizesError(f"input {name!r}: expected {expected}, got {shape}")
        inputs = ", ".join(f"{name!r} of {shape}" for name, shape in zip(self._names, shapes, strict=True))
        return OtherSizesError(f"our own kernels do not take {inputs}: {message}")

    def _output(self, table: int, number: int, border: PlanBorder) -> tuple[int, ...]:
        numbers = (ctypes.c_int64 * 10)()
        count = self._model.library.nnd_table_output(table, number, numbers)
        element, rank, *sizes = numbers[: max(2, count)]
        said = len(sizes) == len(border.shape) and all(
            wanted in (None, size) for size, wanted in zip(sizes, border.shape, strict=True)
        )
        if element != ELEMENTS[border.element] or rank != len(border.shape) or not said:
            raise BundleError(f"{DOCUMENT_FILE} says another output {border.name!r:.60} than {PLAN_FILE}")
        return tuple(sizes)


def ways_for(document: PlanDocument, chosen: Mapping[_Shapes, tuple[StepChoice, ...]]) -> bytes:
    """Returns for which ways the steps of a plan are packed, so that what was chosen by shapes can be taken."""
    return ways_packed(chosen.values(), len(document.steps), is_alone=not document.symbols)


class PlanSession:
    """One plan with its packed weights and a pool of threads; slots are made as callers need them."""

    def __init__(
        self,
        model: OpenedModel,
        document: PlanDocument,
        pool: WorkerPool,
        tuned: TunedFile,
        opened: Callable[[bytes], OpenedModel],
    ) -> None:
        """`pool` is for as many steps as the model has, at least; sessions that take turns may share it.

        `tuned` is where choices for the steps are kept. `opened` returns the model packed for other ways.
        """
        self.pace_note = ""
        self.tuning_note = tuned.note
        self._tuned_file = tuned
        self._opened, self._ways = opened, ways_for(document, tuned.choices)
        self._tuning: PlanTuning | None = None
        self._apart: FusedAndApart | None = None
        self._between: BetweenCalls | None = None
        self._trial_slots: list[_Slot] = []
        self._trial_memory = 0
        self._model, self._document = model, document
        grown = {one.input for one in document.grown}
        self._inputs = [_Input(one, "K" if i in grown else "C") for i, one in enumerate(document.inputs)]
        self._tables = _Tables(model, document, tuned.choices)
        self._caches = _cache_memories(document, self._tables) if document.grown else None
        self.takes_strided = frozenset(document.inputs[one.input].name for one in document.grown)
        self._slots: list[_Slot] = []
        self._pool = pool
        self._run = model.library.nnd_run
        self._pace: Callable[[], int] | None = None
        self._is_open = True
        self._is_moved = False

    @property
    def outputs(self) -> tuple[PlanBorder, ...]:
        """What a run returns."""
        return self._document.outputs

    def pace(
        self,
        pacer: Pacer,
        sample: Mapping[str, Value] | None,  # noqa: ARG002
        wanted: Wanted | None = None,  # noqa: ARG002
    ) -> list[PacePoint]:
        """Lets later runs pass their points, which kernels do; returns them: one for each step."""
        from nndeploy.files.shared_object import exported_version

        if exported_version(self._model.library, "nnd_points_version") != PACE_VERSION:
            return []
        self._pace = pacer.item
        return [
            PacePoint(step_name(step), is_cut=True, values=(str(step.get("value", "")),))
            for step in self._document.steps
        ]

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the value of every output by name.

        Raises:
            InputError: an input has another shape than the submodel, or an index is out of range.
            UsageError: the session is closed.
        """
        if not self._is_open:
            raise UsageError("the session is closed")
        given = [one.given(inputs[one.name]) for one in self._inputs]  # which must live until the end
        if self._caches is None:
            between = self._between
            if between is None:
                return self._called(given, None)[0]
            with between.turns.call():
                outputs, _ = self._called(given, None)
            between.seen.saw(tuple([array.shape for array, _ in given]), given)
            return outputs
        taken, caches = self._caches.taken(given, anew=self._is_moved)
        outputs, is_moved = self._called(taken, caches)
        if is_moved and caches.go_on:  # what earlier callers hold would change
            outputs, is_moved = self._called(*self._caches.taken(given, anew=True))
        self._is_moved = is_moved  # the next call's will be too
        return outputs

    def _called(
        self, given: list[tuple[ByteArray, int]], caches: "CachesOfCall | None"
    ) -> tuple[dict[str, Value], bool]:
        """Returns the outputs of a call, and whether what is new was put elsewhere than behind caches."""
        shapes = tuple([array.shape for array, _ in given])
        if caches is not None:
            shapes += ((caches.room,),)
        tried_by = self._apart or self._tuning
        trial = None if tried_by is None else tried_by.trial(shapes)
        if trial is None:
            return self._done(given, caches, self._tables.table_for(shapes), self._slots)
        run = self._prepared(given, caches, shapes, trial)
        try:
            found = run()
        except InputError:
            trial.drop()
            raise
        trial.end()
        return found

    def _prepared(
        self, given: list[tuple[ByteArray, int]], caches: "CachesOfCall | None", shapes: _Shapes, trial: "Trial"
    ) -> Callable[[], tuple[dict[str, Value], bool]]:
        """Returns what does a call in other ways, in memory of trials."""
        if trial.memory != self._trial_memory:
            self._trial_slots, self._trial_memory = [], trial.memory
        table = self._tables.made(shapes, trial.choices)
        return partial(self._done, given, caches, table, self._trial_slots, trial.step_ns)

    def _done(
        self,
        given: list[tuple[ByteArray, int]],
        caches: "CachesOfCall | None",
        table: _Table,
        slots: "list[_Slot]",
        step_ns: "ByteArray | None" = None,
    ) -> tuple[dict[str, Value], bool]:
        slot = self._taken_slot(slots)
        outputs = slot.prepared(given, table, caches)
        if step_ns is not None:
            slot.time(step_ns)
        if self._pace is not None:
            slot.pace(self._pace())
        pool = self._pool.taken()
        try:
            has_fault = self._run(table.address, slot.address, pool)
        finally:
            self._pool.give_back(pool)
        if has_fault:
            raise slot.fault()
        if step_ns is not None:
            slot.time(None)
        is_moved = slot.moved is not None and bool(slot.moved.any())
        slots.append(slot)
        return outputs, is_moved

    def close(self) -> None:
        """Ends the threads and frees the memory; a second call does nothing."""
        self.end_trials()
        self._is_open = False
        self._slots = self._trial_slots = []
        self._pool.close()

    def steps_here(self, given: Mapping[str, tuple[int, ...]]) -> list[dict[str, int | str]]:
        """Returns the steps with their sizes and windows for shapes of inputs by name, else the least of the ranges.

        Raises:
            OtherSizesError: the plan does not hold for shapes that were all given.
        """
        shapes = [[1 if size is None else size for size in one.shape] for one in self._document.plan_inputs]
        for one in self._document.symbols:
            shapes[one.number][one.axis] = one.offset + one.factor * one.low
        if self._document.grown:
            from nndeploy_native.cache_memory import LEAST_ROOM

            shapes[-1] = [LEAST_ROOM]
        for number, border in enumerate(self._document.inputs):
            shapes[number] = list(given.get(border.name, shapes[number]))
        try:
            table = self._tables.table_for(tuple(map(tuple, shapes)))
        except OtherSizesError:
            if self._document.inputs and all(border.name in given for border in self._document.inputs):
                raise
            return [dict(step) for step in self._document.steps]  # a size that follows from several symbols
        return [{**step, **self._tables.told(table, number)} for number, step in enumerate(self._document.steps)]

    def take_choices(self, shapes: _Shapes, choices: Sequence[StepChoice]) -> None:
        """Lets later calls of these shapes do their steps so, which changes no bit of a result."""
        self._tables.choose(shapes, choices)

    def begin_tuning(self, seconds: float) -> None:
        """Lets calls, for so many seconds, do their steps in other ways and be timed; then they go on in the best.

        Raises:
            InputOutputError: what is measured cannot be kept.
        """
        self._tuned_file.check_writable()
        self._pack(b"")  # what is tried is compared with the rule, whatever was chosen before
        self._tuning = self._new_tuning(seconds)

    def begin_fast_tuning(self, seconds: float) -> None:
        """Does the same, and tries ways of convolutions too that change last bits; both are packed meanwhile.

        Raises:
            InputOutputError: what is measured cannot be kept.
        """
        self._tuned_file.check_writable()
        self._pack(bytes([WAY_BOTH]) * len(self._document.steps))
        self._tuning = self._new_tuning(seconds, is_fast=True)

    def _pack(self, ways: bytes) -> None:
        """Goes on with a model that is packed for these ways."""
        if ways != self._ways:
            self._model, self._ways = self._opened(ways), ways
            self._tables.move(self._model)

    @property
    def is_tuned(self) -> bool:
        """Whether there is nothing more to try, for the shapes that came."""
        return self._tuning is None or self._tuning.is_done

    def end_tuning(self) -> list[dict[str, Any]]:
        """Takes and keeps what was found; returns it as plain data.

        Raises:
            InputOutputError: it cannot be kept.
        """
        tables = [] if self._tuning is None else self._tuning.tables()
        self._tuning = None
        return self._taken_tables(tables)

    def replay_tuning(self, data: Sequence[Any]) -> list[dict[str, Any]]:
        """Takes and keeps what `end_tuning` returned of this plan on this machine; returns that.

        Raises:
            DataError: it is malformed, or of another plan or machine.
            InputOutputError: it cannot be kept.
        """
        own = [one for one in data if isinstance(one, dict) and one.get("plan_sha256") == self._tuned_file.plan_sha256]
        if not own:
            raise DataError("the decisions are for another bundle")
        return self._taken_tables([table for one in own for table in self._tuned_file.replayed(one)])

    def begin_trials(self, seconds: float) -> None:
        """Lets `try_once` try other ways between the calls, for so many seconds of trials at each set of shapes.

        Raises:
            InputOutputError: what is measured cannot be kept.
            UnavailableError: the plan keeps values from call to call, or its runs are paced.
        """
        from nndeploy_native.between_calls import BetweenCalls, TrialClock

        if self._caches is not None or self._pace is not None:
            what = "runs that are paced" if self._caches is None else "a plan that keeps values from call to call"
            raise UnavailableError(f"{what} cannot be tuned between calls", hint="nndeploy tune measures by itself")
        self._tuned_file.check_writable()
        clock = TrialClock()
        self._between = BetweenCalls(
            clock,
            self._new_tuning(seconds, clock),
            lambda given, shapes, trial: self._prepared(given, None, shapes, trial),
            self._is_known,
        )

    def try_once(self) -> list[dict[str, Any]] | None:
        """Makes one trial; returns what was found, and is taken and kept, once nothing is left to try of some shapes.

        None: nothing was tried, since no shapes come again and again, or calls leave no time between them.

        Raises:
            InputOutputError: what was found cannot be kept.
        """
        tables = None if self._between is None else self._between.try_once()
        return self._taken_tables(tables) if tables else None if tables is None else []

    def end_trials(self) -> None:
        """Tries nothing more, once the trial that is under way has ended."""
        between, self._between = self._between, None
        if between is not None:
            between.close()
        self._trial_slots = []

    def _new_tuning(
        self, seconds: float, clock: Callable[[], float] = time.perf_counter, *, is_fast: bool = False
    ) -> "PlanTuning":
        from nndeploy_native.plan_tuning import PlanTuning

        box, num_steps = self._tuned_file.box, len(self._document.steps)
        return PlanTuning(self._facts_of, num_steps, box, seconds, self.take_choices, clock, is_fast=is_fast)

    def _is_known(self, shapes: _Shapes) -> bool:
        """Whether it was found before how calls of these shapes are done, maybe by another process just now."""
        if not self._tables.is_chosen(shapes) and (found := self._tuned_file.read()[0].get(shapes)):
            self.take_choices(shapes, found)
        return self._tables.is_chosen(shapes)

    @property
    def has_fused_steps(self) -> bool:
        """Whether steps have windows, so that they can be done apart too."""
        from nndeploy_native.tuning import WINDOWED

        return not {*WINDOWED}.isdisjoint(self._kernels)

    def begin_apart(self) -> None:
        """Lets every second call do its fused steps apart, and times the steps of all calls."""
        from nndeploy_native.fused_and_apart import FusedAndApart

        self._apart = FusedAndApart(self._facts_of, self._tables.choices_for, self._kernels)

    def end_apart(self) -> list[FusedTimes | None]:
        """Ends that; returns the times of each step at the shapes that were called last."""
        apart, self._apart = self._apart, None
        return [] if apart is None else apart.times()

    @property
    def _kernels(self) -> list[str]:
        return [str(step.get("kernel")) for step in self._document.steps]

    def _taken_tables(self, tables: Sequence[TunedTable]) -> list[dict[str, Any]]:
        for one in tables:
            self.take_choices(one.shapes, one.choices)
        self._pack(ways_for(self._document, self._tables.chosen))
        if tables:
            self._tuned_file.add(tables)
        return [tables_to_data(self._tuned_file.plan_sha256, tables)]

    def _facts_of(self, shapes: _Shapes, choices: Sequence[StepChoice]) -> list[StepFacts]:
        """Returns what the steps are like with choices."""
        table = self._tables.made(shapes, choices)
        return [self._tables.facts(table, number, kernel) for number, kernel in enumerate(self._kernels)]

    def _taken_slot(self, slots: "list[_Slot]") -> "_Slot":
        try:
            return slots.pop()
        except IndexError:
            return _Slot(self._document, self._pool.num_threads)


class _Input:
    """How one input must be. What its type says is looked up once: a call may be a few microseconds in all."""

    __slots__ = ("_dtype", "_order", "_rank", "name")

    def __init__(self, border: PlanBorder, order: Literal["C", "K"]) -> None:
        """Takes an input in the order of ONNX, or "K", with whatever strides it has."""
        self.name = border.name
        self._order = order
        self._dtype = np.dtype(DTYPES[border.element])
        self._rank = len(border.shape)

    def given(self, value: Value) -> tuple[ByteArray, int]:
        """Returns an input as the kernels read it, and its address."""
        array: ByteArray = np.asarray(value, self._dtype, self._order)
        if array.ndim != self._rank:
            raise InputError(f"input {self.name!r}: expected {self._rank} axes, got {array.shape}")
        return array, address_of(array)


class _Slot:
    """What one caller at a time works with: an arena, the struct of the call, and memory of earlier outputs."""

    def __init__(self, document: PlanDocument, num_threads: int) -> None:
        self._num_threads, self._steps = num_threads, document.steps
        self._memory = aligned_zeros(0)
        self._table: _Table | None = None
        self._inputs = (ctypes.c_void_p * max(1, len(document.plan_inputs)))()
        self._outputs = (ctypes.c_void_p * len(document.plan_outputs))()
        self._memories = [OutputMemory(one.name, DTYPES[one.element]) for one in document.outputs]
        self._of_moved = OutputMemory(MOVED.name, DTYPES[MOVED.element]) if document.tells_moved else None
        self.moved: ByteArray | None = None
        self._call = _Call(ctypes.addressof(self._inputs), ctypes.addressof(self._outputs))
        self.address = ctypes.addressof(self._call)

    def prepared(
        self, inputs: Sequence[tuple[ByteArray, int]], table: _Table, caches: "CachesOfCall | None"
    ) -> dict[str, Value]:
        """Returns the arrays that the call will write; `inputs`, with their addresses, must live until it is made."""
        if table is not self._table:
            self._take(table)
        for number, (_, address) in enumerate(inputs):
            self._inputs[number] = address
        outputs: dict[str, Value] = {}
        for number, memory in enumerate(self._memories):
            shape = table.outputs[number]
            if caches is not None and number in caches.begun:
                outputs[memory.name], self._outputs[number] = caches.output(number, shape)
            else:
                outputs[memory.name], self._outputs[number] = memory.taken(shape)
        if self._of_moved is not None:
            self.moved, self._outputs[len(self._memories)] = self._of_moved.taken(table.outputs[-1])
        return outputs

    def fault(self) -> InputError:
        """Returns the error of a call in which an index was out of range."""
        fault = self._call.fault
        step = self._steps[fault.step]
        low = -fault.size if step.get("kernel") in COUNTING_FROM_THE_END else 0
        what = f"element {fault.at} of {step.get('indices', '')!r:.60} is {fault.index}"
        return InputError(f"{what}, outside of {low}..{fault.size - 1}", where=step_name(step), hint=CLAMP_HINT)

    def time(self, step_ns: "ByteArray | None") -> None:
        """Lets the call add the nanoseconds of its steps to numbers."""
        self._call.step_ns = None if step_ns is None else address_of(step_ns)

    def pace(self, address: int) -> None:
        """Lets the call pass points of the item at `address`, none where it is 0."""
        self._call.pace = address

    def _take(self, table: _Table) -> None:
        """Makes the memory as large as a table asks; it never becomes smaller."""
        needed = table.arena_bytes + self._num_threads * table.scratch_bytes
        if needed > MAX_BYTES:
            raise BundleError(f"{PLAN_FILE} asks for {needed} bytes")
        if needed > self._memory.size:
            self._memory = aligned_zeros(needed)
        start = address_of(self._memory)
        arena = -(-table.arena_bytes // ALIGNMENT) * ALIGNMENT
        self._call.arena, self._call.scratch = start, start + arena
        self._call.scratch_bytes = table.scratch_bytes
        self._table = table


def _choices_of(description: str) -> dict[str, int | str]:
    """Returns the window and the bytes of its buffer, or the pixels of a window, and what else a description says."""
    if found := re.fullmatch(r"window (\d+x\d+x\d+), buffer (\d+) bytes(?:, (.+))?", description):
        choices: dict[str, int | str] = {"window": found[1], "buffer_bytes": int(found[2])}
        return choices | ({"how": found[3]} if found[3] else {})
    if found := re.fullmatch(r"pointwise, window (\d+)(?:, (.+))?", description):
        return {"window_pixels": int(found[1])} | ({"how": found[2]} if found[2] else {})
    return {"how": description} if description else {}


def _cache_memories(document: PlanDocument, tables: _Tables) -> "CacheMemories":
    from nndeploy_native.cache_memory import CacheMemories

    return CacheMemories(document, tables.symbol)


def _numbers(values: Sequence[int]) -> Any:
    return (ctypes.c_int64 * max(1, len(values)))(*values)
