# SPDX-License-Identifier: Apache-2.0
"""A chain whose runs are paced: its library of delays, its points in order, and steps that count and pass them.

Submodels of backends that can stop between operators pass points of their own; any other is one operator.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nndeploy.bundle.manifest import Manifest, Submodel
from nndeploy.bundle.operators_file import CountedOperators, operators_from_json
from nndeploy.bundle.pace_plan_file import AGAIN, PacePlanFile, check_made_for
from nndeploy.bundle.reader import Bundle
from nndeploy.errors import BundleError, DataError, NndeployError, UnavailableError
from nndeploy.pacing.branches import Branches
from nndeploy.pacing.data_flow import DataFlow
from nndeploy.pacing.goal import PaceGoal
from nndeploy.pacing.library import PaceLibrary
from nndeploy.pacing.operators import Amount, Operators
from nndeploy.pacing.paced_shape import LearntShape, Shapes
from nndeploy.pacing.pacer import BASELINE_RUNS, Pacer
from nndeploy.plugin.interface import HasPaceLibrary, PacedSession, PacePoint
from nndeploy.plugin.registry import backends_in_order
from nndeploy.runtime.chain import Runnable, is_line, needs_of
from nndeploy.runtime.gpu_stream import GpuStreams
from nndeploy.runtime.opened_chain import OpenedChain
from nndeploy.target.target import host_target
from nndeploy.values.types import Value

AT_ONCE = "submodels that do not wait for each other run at once; loads over time are of the one that works longest"
HINT = "compile it with --pace"


class ProgramPoint(NamedTuple):
    """A point of a program: its submodel, the operator before it, and what that computes, None where nobody says."""

    submodel: str
    name: str
    amount: Amount | None


@dataclass(frozen=True, slots=True)
class Pacing:
    """The library of delays, what the user grants, and what the operators compute."""

    library: PaceLibrary
    goal: PaceGoal
    operators: Mapping[str, Operators]
    """The operators of each submodel; empty where the bundle does not say."""
    plan: PacePlanFile | None = None

    def wanted(self, submodel: str) -> Callable[[str], bool] | None:
        """Returns behind which operators of a submodel points must be, None: where they are worth what they cost."""
        if self.goal.only_times or (self.goal.pairs and self.plan is None):
            return lambda _: True
        if self.plan is None:
            return None
        return {name for one, name in self.plan.points if one == submodel}.__contains__


def pacing_of(bundle: Bundle, by: PaceGoal | PacePlanFile) -> Pacing:
    """Returns the installed library of delays, and what runs are paced by.

    Raises:
        UnavailableError: the bundle has no points, or the library is not installed or cannot be loaded.
        BundleError: it is damaged.
        DataError: the plan was made for another bundle.
    """
    plan, goal = (by, by.goal) if isinstance(by, PacePlanFile) else (None, by)
    if plan is not None:
        check_made_for(plan, bundle.manifest)
    if not has_points(bundle.manifest):
        raise UnavailableError("the bundle has no pace points", hint=HINT)
    return Pacing(PaceLibrary(_library_path()), goal, counted_operators(bundle).submodels, plan)


def has_points(manifest: Manifest) -> bool:
    """Returns whether a bundle was compiled to be paced; those of before brought a library of delays, too."""
    return bool(manifest.pace_operators or manifest.pace_libraries)


def _library_path() -> Path:
    found = next((one for one in backends_in_order() if isinstance(one, HasPaceLibrary)), None)
    if found is None:
        raise UnavailableError("no installed backend provides the pacing library", hint="install the backend native")
    return found.pace_library()


def counted_operators(bundle: Bundle) -> CountedOperators:
    """Returns what the operators of a bundle compute, none where it does not say.

    Raises:
        BundleError: it is damaged.
    """
    member = bundle.manifest.pace_operators
    if not member:
        return CountedOperators()
    try:
        return operators_from_json(bundle.member(member))
    except BundleError as err:
        err.within(member)
        raise


def paced(
    steps: Sequence[Runnable],
    submodels: Sequence[Submodel],
    opened: OpenedChain,
    pacing: Pacing,
    sample: Mapping[str, Value] | None,
) -> tuple[Pacer, list[Runnable], list[ProgramPoint]]:
    """Returns the pacer of a chain, its steps, one for each of its `submodels`, with their points, and these points.

    `sample` are inputs of the chain to try points with, None where there are none.
    """
    pacer = Pacer(pacing.library, pacing.goal, host_target().num_cores)
    points, flow, firsts = list[ProgramPoint](), DataFlow(), list[int]()
    with_points = list[Runnable]()
    values = None if sample is None else dict(sample)
    for step, submodel, session, choice in zip(steps, submodels, opened.sessions, opened.choices, strict=True):
        label = f"submodel {choice.submodel} ({choice.backend})"
        own: Sequence[PacePoint] = ()
        if isinstance(session, PacedSession):
            given = None if values is None else _on_host(submodel.inputs, values, opened.gpu_streams)
            own = session.pace(pacer.address, given, pacing.wanted(choice.submodel))
            if session.pace_note:
                pacer.notes.append(f"{label}: {session.pace_note}")
        pacer.points.has_own |= bool(own)
        added = own or [PacePoint(label, is_cut=False)]
        first = pacer.points.add([(point.name, point.is_cut) for point in added])
        values_at = [point.values for point in added]
        flow.add(values_at, pacing.operators.get(choice.submodel), submodel.inputs, submodel.outputs)
        amounts = _amounts(pacing.operators.get(choice.submodel), own)
        points += [ProgramPoint(choice.submodel, one.name, amount) for one, amount in zip(added, amounts, strict=True)]
        firsts.append(first)
        gpu_streams = opened.gpu_streams if choice.device != "cpu" else None
        at = _PlaceOfStep(pacer, len(with_points), first, passes=not own)
        with_points.append(_PacedStep(step, pacing.library, at, gpu_streams=gpu_streams))
        values = _continued(values, step)
    needs = needs_of(steps)
    if not is_line(needs) and not (pacing.goal.only_times or pacing.goal.is_of_item):
        edges = tuple((before, number) for number, some in enumerate(needs) for before in sorted(some))
        pacer.points.branches = Branches(tuple(firsts), edges, len(points))
        pacer.notes.append(AT_ONCE)
    pacer.points.done = flow.done
    if pacing.plan is None or not pacing.plan.learnt.pairs:  # else the plan says them
        pacer.choose(flow.pairs())
    return pacer, with_points, points


def _amounts(operators: Operators | None, own: Sequence[PacePoint]) -> list[Amount | None]:
    """Returns what is computed before each point of a submodel, before its end where it has none of its own."""
    if operators is None:
        return [None] * max(1, len(own))
    return list(operators.between([point.values for point in own])) if own else [operators.whole()]


def _continued(values: dict[str, Value] | None, step: Runnable) -> dict[str, Value] | None:
    """Returns the values with those that a step makes; none where it fails on them, as it may on made-up ones."""
    if values is None:
        return None
    try:
        return {**values, **step(values)}
    except NndeployError:
        return None


def _on_host(names: Sequence[str], values: Mapping[str, Value], gpu_streams: GpuStreams | None) -> Mapping[str, Value]:
    given = {name: values[name] for name in names}
    return given if gpu_streams is None else gpu_streams.on_host(given)


def sample_of(bundle: Bundle) -> Mapping[str, Value]:
    """Returns inputs to try things with: a sample that the bundle carries, or made-up ones."""
    if goldens := bundle.manifest.goldens:
        return bundle.values(goldens[0].inputs)
    from nndeploy.runtime.sample_inputs import sample_inputs  # which loads numpy's dice, and few need it

    return sample_inputs(bundle.manifest)


def learns_durations(
    run: Callable[[Mapping[str, Value]], object],
    pacer: Pacer | None,
    points: Sequence[ProgramPoint],
    bundle: Bundle,
    pacing: Pacing,
) -> None:
    """Takes how long each operator is from a plan, or runs a sample that the bundle carries as often as it takes.

    A bundle without samples learns it from the first runs.

    Raises:
        UsageError: the time that was granted is less than a baseline run takes.
        DataError: the plan is not for the operators that there are here.
    """
    if pacer is None or pacing.goal.only_times:
        return
    if pacing.plan is not None:
        here = [(point.submodel, point.name) for point in points]
        pacer.start(_learnt_here(here, pacing.plan))
        return
    if not bundle.manifest.goldens:
        return
    inputs = bundle.values(bundle.manifest.goldens[0].inputs)
    for _ in range(1 + BASELINE_RUNS):  # the first of all also makes pages and caches
        run(inputs)
    pacer.goal.check(pacer.known()[0], pacer.points.presets_ns)


def _learnt_here(here: Sequence[tuple[str, str]], plan: PacePlanFile) -> LearntShape:
    """Returns what a plan says of the points here, which a library may number in another order each time.

    Raises:
        DataError: they are not those of the plan: a library optimises for the CPU that it finds.
    """
    planned, has_point = plan.points, set(here)
    for point in planned:
        if point not in has_point:
            raise DataError(f"the plan has the operator {point[1]!r:.80}, which has no pace point here", hint=AGAIN)
    if sorted(here) != sorted(planned):
        raise DataError(f"the plan has {len(planned)} points, but this machine has {len(here)}", hint=AGAIN)
    numbers = np.empty(len(here), np.int64)
    numbers[sorted(range(len(here)), key=here.__getitem__)] = sorted(range(len(here)), key=planned.__getitem__)
    return plan.learnt.renumbered(numbers)


class _PlaceOfStep(NamedTuple):
    """Where a step stands: its number, that of its first point, whether it is a single one that is passed for it."""

    pacer: Pacer
    number: int
    first: int
    passes: bool


class _PacedStep:
    """A step that counts its points from where they are in the program.

    One whose session passes none is a single operator; on a GPU (`gpu_streams`) that ends when its work is done there,
    not when it was queued.
    """

    def __init__(
        self, step: Runnable, library: PaceLibrary, at: _PlaceOfStep, *, gpu_streams: GpuStreams | None = None
    ) -> None:
        self.inputs, self.outputs = step.inputs, step.outputs
        self._step, self._library, self._at = step, library, at
        self._gpu_streams = gpu_streams

    def __call__(self, values: Mapping[str, Value]) -> Mapping[str, Value]:
        with self._at.pacer.submodel(self._at.number):
            self._library.count_from(self._at.first)
            results = self._step(values)
            if self._gpu_streams is not None:
                self._gpu_streams.wait()
            if self._at.passes:
                self._library.passes(0)
        return results


def shapes_of(values: Mapping[str, Value]) -> Shapes:
    """Returns the shapes of a run's inputs: what its operators take depends on them."""
    return tuple(value.shape if isinstance(value, np.ndarray) else () for value in values.values())
