# SPDX-License-Identifier: Apache-2.0
"""Runs a chain of submodels: each as soon as its inputs are there, each value freed after its last use.

In: the submodels in an order in which every input is produced before it is used, and their sessions. A chain in
which each submodel needs the one before runs as a plain loop on the caller's thread. Where submodels do not depend
on each other they run on several threads, by counting what each still waits for; nothing then waits for anything
else than its own inputs. Values pass between sessions as they are, without a copy, also on a GPU; from there to a
session elsewhere they are copied (`nndeploy.runtime.crossing`).

Law: the outputs do not depend on which of the two ways was taken.
"""

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import copy_context
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from nndeploy.bundle.manifest import Submodel
from nndeploy.cuda.array import DeviceArray
from nndeploy.errors import BundleError, DataError, NndeployError, OtherVariantError, one_line
from nndeploy.plugin.interface import Session
from nndeploy.runtime.crossing import NOTHING_CROSSES, Crossing
from nndeploy.values.types import TensorType, Value, ValueType, numpy_dtype

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from nndeploy.runtime.other_sizes import NextVariant

MAX_THREADS = 8

Run: TypeAlias = Callable[[dict[str, Value]], dict[str, Value]]


class Runnable(Protocol):
    """What a chain runs: something that makes the values `outputs` from the values `inputs`."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def __call__(self, values: Mapping[str, Value]) -> Mapping[str, Value]:
        """Returns the outputs; `values` holds at least the inputs."""


class ChainStep:
    """One submodel of the chain; `label` names submodel and backend in messages.

    `crossing` says how its inputs come to the device that runs it; copies that others there read are outputs too.
    `next_variant` runs the calls that the session does not take; None: these are refused.
    """

    def __init__(
        self,
        submodel: Submodel,
        session: Session,
        backend: str,
        types: Mapping[str, ValueType],
        crossing: Crossing = NOTHING_CROSSES,
        next_variant: "NextVariant | None" = None,
    ) -> None:
        self.inputs = tuple(crossing.taken.get(name, name) for name in submodel.inputs)
        self.outputs = (*submodel.outputs, *crossing.kept.values())
        self._submodel = submodel
        self.label = _label(submodel, backend)
        self._run = session.run
        self._crossing = crossing
        self._is_local = not (crossing.moved or crossing.taken)
        self._num_inputs = len(self.inputs)
        self._keeps_copies = bool(crossing.kept)
        self._next_variant = next_variant
        self._types = types
        self._is_checked = False

    def __call__(self, values: Mapping[str, Value]) -> Mapping[str, Value]:
        """Returns the outputs of the submodel; `values` holds at least its inputs.

        Raises:
            DataError: the library failed on these values.
            BundleError: the submodel is not what the manifest says.
        """
        label = self.label
        try:
            is_all = self._is_local and len(values) == self._num_inputs  # values hold the inputs at least
            given = values if is_all else self._crossing.inputs(values, self._submodel.inputs)
            try:
                results = self._run(given)
            except OtherVariantError:
                if self._next_variant is None:
                    raise
                label = _label(self._submodel, self._next_variant.open())
                results = self._next_variant.run(given)
        except NndeployError as err:
            err.within(label)
            raise
        except Exception as err:  # a library fails in its own ways; the item is then lost, not the program
            raise DataError(one_line(f"failed: {type(err).__name__}: {err}"), where=label) from err
        if not self._is_checked:
            self._check(results)
        if self._keeps_copies:
            return {**results, **{copy: given[name] for name, copy in self._crossing.kept.items()}}
        return results

    def _check(self, results: Mapping[str, Value]) -> None:
        for name in self._submodel.outputs:
            if name not in results:
                raise BundleError(f"does not give the output {name!r} of the manifest", where=self.label)
            if problem := _misfit(results[name], self._types.get(name)):
                raise BundleError(f"output {name!r} is {problem}", where=self.label)
        self._is_checked = True


def _label(submodel: Submodel, backend: str) -> str:
    return f"submodel {submodel.id} ({backend})"


def on_host(values: Mapping[str, Value], names: Iterable[str]) -> dict[str, Value]:
    """Returns the values called `names`, those on a GPU as copies on the host."""
    found = {name: values[name] for name in names}
    return {name: value.numpy() if isinstance(value, DeviceArray) else value for name, value in found.items()}


def copied(value: Value) -> Value:
    """Returns a value in memory of its own, which may be written to."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, list):
        return [copied(item) for item in value]
    return {key: copied(item) for key, item in value.items()} if isinstance(value, dict) else value


def _misfit(value: Value, value_type: ValueType | None) -> str:
    """Returns how a tensor breaks its declared dtype or rank, or ""."""
    if not isinstance(value_type, TensorType):
        return ""
    if not isinstance(value, np.ndarray | DeviceArray):
        return f"a {type(value).__name__}, the manifest says {value_type}"
    want = numpy_dtype(value_type.dtype)
    is_text = want.kind == "O" and value.dtype.kind in "OSUT"
    has_rank = value_type.shape is None or len(value_type.shape) == value.ndim
    if (value.dtype == want or is_text) and has_rank:
        return ""
    return f"{value.dtype.name} of rank {value.ndim}, the manifest says {value_type}"


class Chain:
    """The steps of a program, ready to run; several threads may call `run` at once."""

    def __init__(self, steps: Sequence[Runnable], kept: Iterable[str], *, one_by_one: bool = False) -> None:
        """Makes a chain that returns the values named `kept`; with `one_by_one` it never runs two steps at once."""
        self._steps = tuple(steps)
        self._kept = tuple(kept)
        self._plan = _Plan(self._steps, self._kept)
        self._pool = None if self._plan.is_line or one_by_one else _pool(len(self._steps))

    @property
    def is_line(self) -> bool:
        """Whether each submodel needs the one before it."""
        return self._pool is None

    @property
    def run(self) -> Run:
        """The call that returns the kept values; what it is given holds the inputs of the chain and is used up."""
        if len(self._steps) == 1 and self._plan.makes_all_kept:
            return _run_of_one(self._steps[0], self._kept)
        return self._run

    def _run(self, values: dict[str, Value]) -> dict[str, Value]:
        if self._pool is None:
            self._run_line(values)
        else:
            _WideRun(self._steps, self._plan, values, self._pool).run()
        return {name: values[name] for name in self._kept}

    def _run_line(self, values: dict[str, Value]) -> None:
        for step, dead in zip(self._steps, self._plan.dead_after, strict=True):
            values.update(step(values))
            for name in dead:
                del values[name]

    def close(self) -> None:
        """Ends the threads, if there are any."""
        if self._pool is not None:
            self._pool.shutdown()


def _run_of_one(step: Runnable, kept: Sequence[str]) -> Run:
    """Returns the call of a chain of one submodel, which may be a few microseconds in all."""
    call, in_order = step.__call__, list(kept)

    def run(values: dict[str, Value]) -> dict[str, Value]:
        results = call(values)
        if type(results) is dict and [*results] == in_order:
            return results
        return {name: results[name] for name in in_order}

    return run


def _pool(num_steps: int) -> "ThreadPoolExecutor":
    from concurrent.futures import ThreadPoolExecutor  # a line, which most programs are, starts without it

    count = max(2, min(num_steps, os.cpu_count() or 1, MAX_THREADS))
    return ThreadPoolExecutor(count - 1, "nndeploy-chain")  # the caller's thread works too


def needs_of(steps: Sequence[Runnable]) -> list[set[int]]:
    """Returns of each step, by their numbers, the ones that make what it reads."""
    producer = {name: i for i, step in enumerate(steps) for name in step.outputs}
    return [{producer[name] for name in step.inputs if name in producer} for step in steps]


def edges_of(steps: Sequence[Runnable]) -> tuple[tuple[int, int], ...]:
    """Returns (a, b) where step b reads what step a makes."""
    return tuple((a, b) for b, some in enumerate(needs_of(steps)) for a in sorted(some))


def branch_edges(steps: Sequence[Runnable]) -> tuple[tuple[int, int], ...] | None:
    """Returns the same, None where each step needs the one before it."""
    return None if is_line(needs_of(steps)) else edges_of(steps)


def is_line(needs: Sequence[set[int]]) -> bool:
    """Returns whether each step needs the one before it, where all stand after what they need."""
    return all(i - 1 in needs[i] for i in range(1, len(needs)))


class _Plan:
    """What depends on what: for each step the steps that wait for it, and the values that nobody needs after it."""

    def __init__(self, steps: Sequence[Runnable], kept: Sequence[str]) -> None:
        producer = {name: i for i, step in enumerate(steps) for name in step.outputs}
        needs = needs_of(steps)
        self.num_needs = [len(need) for need in needs]
        self.waiting: list[list[int]] = [[] for _ in steps]
        for i, need in enumerate(needs):
            for j in need:
                self.waiting[j].append(i)
        self.roots = [i for i, need in enumerate(needs) if not need]
        self.is_line = is_line(needs)  # two neighbours without an edge are independent
        self.num_uses = {name: len({i for i, s in enumerate(steps) if name in s.inputs}) for name in producer}
        self.kept = frozenset(kept)
        self.dead_after = _dead_after(steps, self.kept)
        self.makes_all_kept = self.kept <= producer.keys()


def _dead_after(steps: Sequence[Runnable], kept: frozenset[str]) -> list[tuple[str, ...]]:
    last: dict[str, int] = {}
    for i, step in enumerate(steps):
        for name in (*step.inputs, *step.outputs):
            last[name] = i
    return [tuple(name for name, at in last.items() if at == i and name not in kept) for i in range(len(steps))]


class _WideRun:
    """One run of a chain whose submodels are not all in one line."""

    def __init__(
        self, steps: Sequence[Runnable], plan: _Plan, values: dict[str, Value], pool: "ThreadPoolExecutor"
    ) -> None:
        self._steps = steps
        self._plan = plan
        self._values = values
        self._pool = pool
        self._lock = threading.Lock()
        self._num_needs = list(plan.num_needs)
        self._num_uses = dict(plan.num_uses)
        self._num_active = len(plan.roots)
        self._error: BaseException | None = None
        self._is_over = threading.Event()

    def run(self) -> None:
        """Runs all steps, on the caller's thread and the pool's; adds their outputs to the values."""
        first, *others = self._plan.roots
        for root in others:
            self._pool.submit(copy_context().run, self._work, root)  # steps may ask whose run they are of
        self._work(first)
        try:
            self._is_over.wait()
        except BaseException as err:  # an interrupt: what runs will end, nothing new starts
            self._error = err
            raise
        if self._error is not None:
            raise self._error

    def _work(self, start: int) -> None:
        """Runs a step and then one that it made ready, until there is none."""
        at: int | None = start
        while at is not None:
            results: Mapping[str, Value] = {}
            try:
                if self._error is None:
                    step = self._steps[at]  # other threads add values to the dict while it runs: it gets its own
                    results = step({name: self._values[name] for name in step.inputs})
            except BaseException as err:
                self._error = self._error or err
            at = self._finish(at, results)

    def _finish(self, at: int, results: Mapping[str, Value]) -> int | None:
        with self._lock:
            ready = [] if self._error is not None else self._take_over(at, results)
            self._num_active += len(ready) - 1
            if self._num_active == 0:
                self._is_over.set()
        for other in ready[1:]:
            self._pool.submit(copy_context().run, self._work, other)
        return ready[0] if ready else None

    def _take_over(self, at: int, results: Mapping[str, Value]) -> list[int]:
        """Adds the results, frees what was used for the last time, returns the steps that need nothing more."""
        self._values.update(results)
        step = self._steps[at]
        for name in set(step.inputs):
            if name in self._num_uses:
                self._num_uses[name] -= 1
                self._free(name)
        for name in step.outputs:
            self._free(name)
        for other in self._plan.waiting[at]:
            self._num_needs[other] -= 1
        return [other for other in self._plan.waiting[at] if self._num_needs[other] == 0]

    def _free(self, name: str) -> None:
        if self._num_uses[name] == 0 and name not in self._plan.kept:
            self._values.pop(name, None)
