# SPDX-License-Identifier: Apache-2.0
"""Operations -> steps: each step one cuDNN plan with the memory that its tensors stand for.

    relabelled values   another view of the same memory
    groups              the largest that cuDNN has a recommended engine for, or a fallback that is precompiled and fused
    joined values       their parts are there already, or are copied to their slots

Law: every value is written before it is read, and no place is written twice during one life.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from nndeploy_cudnn.buffers import places_of, readers_of
from nndeploy_cudnn.frames import MisfitError
from nndeploy_cudnn.graph_writer import Work
from nndeploy_cudnn.groups import Group, groups_from, is_classic
from nndeploy_cudnn.memory import Memory
from nndeploy_cudnn.operands import copy_work
from nndeploy_cudnn.operations import Join, Operation, Relabel, Reshaped, Sliced, Transposed, Value
from nndeploy_cudnn.patterns.translation import NotTakenError
from nndeploy_cudnn.planner import Planned, Plans
from nndeploy_cudnn.views import View, reshaped, sliced, transposed
from nndeploy_cudnn.works import Draft, drafts_of


@dataclass(frozen=True, slots=True)
class EmittedStep:
    """One plan to run; `makes` names the value for people."""

    makes: str
    work: Work
    planned: Planned


@dataclass(frozen=True, slots=True)
class Emission:
    """All steps in order, and the memory that they use."""

    steps: tuple[EmittedStep, ...]
    memory: Memory

    @property
    def num_copies(self) -> int:
        """How many steps only copy."""
        return sum(step.work.is_copy for step in self.steps)


def emit(
    operations: Sequence[Operation], inputs: Sequence[Value], outputs: Sequence[Value], planner: Plans
) -> Emission:
    """Returns the steps that compute `outputs` from `inputs`.

    Raises:
        NotTakenError: cuDNN takes some operation in no form; the text says which value, and cuDNN's reason.
    """
    return _Emitter(operations, inputs, outputs, planner).run()


class _Emitter:
    def __init__(
        self, operations: Sequence[Operation], inputs: Sequence[Value], outputs: Sequence[Value], planner: Plans
    ) -> None:
        places = places_of(operations, outputs)
        self._operations, self._outputs, self._planner = operations, outputs, planner
        self._readers = readers_of(operations)
        self._wanted = {*outputs, *places.homes, *places.slots}
        self._memory = Memory(inputs, outputs, places)
        self._done: set[Operation] = set()
        self._steps: list[EmittedStep] = []

    def run(self) -> Emission:
        for operation in self._operations:
            if operation in self._done:
                continue
            match operation:
                case Reshaped() | Transposed() | Sliced():
                    self._relabel(operation)
                case Join():
                    self._join(operation)
                case _:
                    self._compute(operation)
        for index, output in enumerate(self._outputs):
            self._copy(self._memory.view_of(output), self._memory.output(index), output.name)
        return Emission(tuple(self._steps), self._memory)

    def _compute(self, head: Operation) -> None:
        groups = groups_from(head, self._readers, self._memory.ready, self._done, self._wanted)
        attempts = [(group, fallback) for group in groups for fallback in (False, *((True,) * is_classic(group)))]
        attempts += [(group, True) for group in groups]
        reason = ""
        for group, with_fallback in attempts:
            if (reason := self._try(group, with_fallback)) == "":
                return
        raise NotTakenError(f"{_named(head.y)}{reason}")

    def _try(self, group: Group, with_fallback: bool) -> str:
        """Emits a group; returns why it did not, or ""."""
        reason = "there is no form of it for cuDNN"
        try:
            for draft in drafts_of(group, self._memory):
                planned = [self._planner.plan(work.graph, with_fallback) for work in draft]
                refused = [plan.reason for plan in planned if plan.reason]
                if not refused:
                    self._take(group, draft, planned)
                    return ""
                reason = refused[0]
        except MisfitError as err:
            reason = f"cuDNN's layouts do not fit: {err}"
        return reason

    def _take(self, group: Group, draft: Draft, planned: Sequence[Planned]) -> None:
        made = group[-1].y
        for work, plan in zip(draft, planned, strict=True):
            self._steps.append(EmittedStep(made.name, work, plan))
        self._done.update(group)
        self._memory.know(made, draft[-1].writes)

    def _relabel(self, operation: Relabel) -> None:
        view = self._memory.view_of(operation.x)
        found = _relabelled(operation, view)
        if found is None:
            dense = self._memory.temporary(view.dims, view.dtype, range(len(view.dims)))
            self._copy(view, dense, operation.x.name)
            found = _relabelled(operation, dense)
            assert found is not None
        self._memory.know(operation.y, found)

    def _join(self, join: Join) -> None:
        joined, start = self._memory.joined(join), 0
        for part in join.inputs:
            slot = sliced(joined, join.axis, start, part.dims[join.axis])
            self._copy(self._memory.view_of(part), slot, join.y.name)
            start += part.dims[join.axis]
        self._memory.know(join.y, joined)

    def _copy(self, source: View, target: View, name: str) -> None:
        """Emits a copy, unless the value is where it should be."""
        if (source.buffer, source.offset) == (target.buffer, target.offset) and _is_same(source, target):
            return
        try:
            work = copy_work(source, target, self._memory)
        except MisfitError as err:
            raise NotTakenError(f"{name!r}: {err}") from err
        planned = self._planner.plan(work.graph, with_fallback=True)
        if planned.reason:
            raise NotTakenError(f"{name!r} cannot be copied: {planned.reason}")
        self._steps.append(EmittedStep(name, work, planned))


def _relabelled(operation: Relabel, view: View) -> View | None:
    match operation:
        case Reshaped(y=y):
            return reshaped(view, y.dims)
        case Transposed(permutation=permutation):
            return transposed(view, permutation)
        case Sliced(y=y, axis=axis, start=start, step=step):
            return sliced(view, axis, start, y.dims[axis], step)


def _is_same(one: View, other: View) -> bool:
    """Returns whether two views of the same start and dims hold their elements at the same places."""
    dims = zip(one.dims, one.strides, other.strides, strict=True)
    return all(size == 1 or a == b for size, a, b in dims)


def _named(value: Value) -> str:
    return "" if value.name.startswith("#") else f"{value.name!r}: "
