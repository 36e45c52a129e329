# SPDX-License-Identifier: Apache-2.0
"""The pacing of a program: its points in order, steps that count and pass them, runs that begin and end.

Submodels of backends that can stop between operators pass points of their own; any other is one operator.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nndeploy.bundle.reader import Bundle
from nndeploy.errors import DataError, NndeployError, UnavailableError, UsageError
from nndeploy.pacing.plan.data_flow import DataFlow
from nndeploy.pacing.plan.goal import PaceGoal, check_policy_of_row
from nndeploy.pacing.plan.learnt_shape import LearntShape, Shapes
from nndeploy.pacing.plan.node_names import node_names
from nndeploy.pacing.plan.operators import Amount, Operators
from nndeploy.pacing.plan.operators_file import HINT, counted_operators, has_points
from nndeploy.pacing.plan.plan_file import AGAIN, PacePlanFile, check_made_for, identity_of
from nndeploy.pacing.run.branches import Branches
from nndeploy.pacing.run.library import PaceLibrary
from nndeploy.pacing.run.own_time import SURE
from nndeploy.pacing.run.pacer import BASELINE_RUNS, Pacer
from nndeploy.pacing.run.protocol import Edges, GpuWork, Part, ProgramPacing, Run, Sample, Step
from nndeploy.plugin.pacing import HasPaceLibrary, PacedSession, PacePoint, Wanted
from nndeploy.plugin.registry import backends_in_order
from nndeploy.target.target import host_target
from nndeploy.values.types import Value

OF_LONGEST = "loads over time are of the submodel that works longest"
AT_ONCE = f"submodels that do not wait for each other run at once; {OF_LONGEST}"


class ProgramPoint(NamedTuple):
    """A point of a program: its submodel, the operator before it, and what that computes, None where nobody says.

    `is_quantised`: with integers of few bits.
    """

    submodel: str
    name: str
    amount: Amount | None
    is_quantised: bool


def paced_program(bundle: Bundle, by: PaceGoal | PacePlanFile) -> "PacedProgram":
    """Returns the pacing of a bundle's program, by the library of delays that is installed.

    Raises:
        UnavailableError: the bundle has no points, or the library is not installed or cannot be loaded.
        BundleError: it is damaged.
        DataError: the plan was made for another bundle.
        UsageError: there is a group, in which this process cannot take part.
    """
    plan, goal = (by, by.goal) if isinstance(by, PacePlanFile) else (None, by)
    if plan is not None:
        check_made_for(plan, bundle.manifest)
    if not has_points(bundle.manifest):
        raise UnavailableError("the bundle has no pace points", hint=HINT)
    program = PacedProgram(PaceLibrary(_library_path()), goal, counted_operators(bundle).submodels, plan)
    if goal.pairs:
        program.pacer.points.nodes = node_names(bundle)
    return program


def _library_path() -> Path:
    found = next((one for one in backends_in_order() if isinstance(one, HasPaceLibrary)), None)
    if found is None:
        raise UnavailableError("no installed backend provides the pacing library", hint="install the backend native")
    return found.pace_library()


class PacedProgram(ProgramPacing):
    """A program whose runs sleep between operators, as far as a goal or a plan allows."""

    is_paced = True

    def __init__(
        self, library: PaceLibrary, goal: PaceGoal, operators: Mapping[str, Operators], plan: PacePlanFile | None
    ) -> None:
        """`operators` are those of each submodel, none where the bundle does not say.

        Raises:
            UnavailableError, UsageError: there is a group, in which this process cannot take part.
        """
        self.pacer = Pacer(library, goal, host_target().num_cores)
        self.points: Sequence[ProgramPoint] = ()
        """The points of the program, in order; known once they were placed."""
        self._library, self._operators, self._plan = library, operators, plan
        self._backends: Sequence[str] = ()

    @property
    def goal(self) -> PaceGoal:
        """What the user grants."""
        return self.pacer.goal

    @property
    def notes(self) -> Sequence[str]:
        """How points were placed, a line for each submodel that tells."""
        return self.pacer.notes

    @property
    def warnings(self) -> Sequence[str]:
        """What a user should know of how runs were learnt, in lines."""
        return [self.pacer.busy_note] if self.pacer.busy_note and not self.goal.is_of_item else []

    @property
    def runs_one_by_one(self) -> bool:
        """Whether submodels must not run at once; known once points were placed."""
        return self.pacer.points.branches is None

    @property
    def needs_one_thread(self) -> bool:
        """Whether the thread that calls must do all of the work: an item of a stream is of one thread."""
        return self.goal.only_times or self.goal.is_of_item

    def place(self, parts: Sequence[Part], edges: Edges, gpu_work: GpuWork | None, sample: Sample) -> Sequence[Step]:
        """Returns the steps of the program that pass their points."""
        points, flow, firsts = list[ProgramPoint](), DataFlow(), list[int]()
        with_points, found = list[Step](), sample()
        values = None if found is None else dict(found)
        for part in parts:
            submodel, label = part.submodel, f"submodel {part.submodel.id} ({part.backend})"
            own: Sequence[PacePoint] = ()
            if isinstance(part.session, PacedSession):
                given = None if values is None else _on_host(submodel.inputs, values, gpu_work)
                own = part.session.pace(self._library, given, self._wanted(submodel.id))
                if part.session.pace_note:
                    self.pacer.notes.append(f"{label}: {part.session.pace_note}")
            self.pacer.points.has_own |= bool(own)
            added = own or [PacePoint(label, is_cut=False)]
            first = self.pacer.points.add([(point.name, point.is_cut) for point in added])
            operators = self._operators.get(submodel.id)
            flow.add([point.values for point in added], operators, submodel.inputs, submodel.outputs)
            points += [
                ProgramPoint(submodel.id, one.name, amount, is_quantised)
                for one, (amount, is_quantised) in zip(added, _amounts(operators, own), strict=True)
            ]
            firsts.append(first)
            at = _PlaceOfStep(self.pacer, len(with_points), first, passes=not own)
            waits_for = gpu_work if part.is_on_gpu else None
            with_points.append(_PacedStep(part.step, self._library, at, gpu_work=waits_for))
            values = _continued(values, part.step)
        if not self.needs_one_thread and (found_edges := edges()) is not None:
            branches = self.pacer.points.branches = Branches(tuple(firsts), found_edges, len(points))
            self.pacer.notes.append(OF_LONGEST if branches.is_row else AT_ONCE)
        self.pacer.points.done = flow.done
        if self._plan is None or not self._plan.learnt.pairs:  # else the plan says them
            self.pacer.choose(flow.pairs())
        self.points, self._backends = points, [part.backend for part in parts]
        return with_points

    def paced(self, run: Run) -> Run:
        """Returns the call of a run that sleeps between its operators."""

        def paced_run(values: dict[str, Value]) -> dict[str, Value]:
            with self.pacer.run(shapes_of(values)):
                return run(values)

        return paced_run

    def learn(self, run: Callable[[Mapping[str, Value]], object], bundle: Bundle) -> None:
        """Takes how long each operator is from the plan, or runs a sample that the bundle carries as often as it takes.

        A bundle without samples learns it from the first runs.

        Raises:
            UsageError: the time that was granted is less than a baseline run takes.
            DataError: the plan is not for the operators that there are here.
        """
        if self.goal.only_times:
            return
        if self._plan is not None:
            self.pacer.start(_learnt_here([(point.submodel, point.name) for point in self.points], self._plan))
            return
        if not bundle.manifest.goldens:
            return
        inputs = bundle.values(bundle.manifest.goldens[0].inputs)
        for _ in range(1 + BASELINE_RUNS):  # the first of all also makes pages and caches
            run(inputs)
        self.goal.check(self.pacer.known()[0], self.pacer.points.presets_ns, SURE if self.pacer.busy_note else 1.0)

    def plan_file(self, bundle: Bundle) -> PacePlanFile:
        """Returns the plan of the shape that ran last, for the file of a bundle's plan.

        Raises:
            UsageError: there is no plan yet.
        """
        learnt = self.pacer.learnt()
        if learnt is None:
            raise UsageError("too few runs to make a plan of")
        names = tuple((point.submodel, point.name) for point in self.points)
        return PacePlanFile(identity_of(bundle.manifest), bundle.manifest.model_name, self.goal, names, learnt)

    def check(self, path: Path) -> None:
        """Checks that runs of the program, of the bundle at `path`, can sleep inside, and by the policy.

        Raises:
            UnavailableError: they cannot.
            UsageError: the policy has no meaning for the bundle.
        """
        branches = self.pacer.points.branches
        if branches is None or branches.is_row:
            check_policy_of_row(self.goal)
        if self.pacer.points.can_sleep:
            return
        backends = ", ".join(dict.fromkeys(self._backends))
        raise UnavailableError(
            f"cannot be paced here: it runs as one piece ({backends}) without points to sleep at",
            where=str(path),
            hint="compile it with --pace and without --backends: own kernels and ONNX Runtime have points",
        )

    def close(self) -> None:
        """Leaves the group, if there is one; no run may come later."""
        self.pacer.close()

    def _wanted(self, submodel: str) -> Wanted | None:
        """Returns behind which operators of a submodel points must be, None: where they are worth what they cost."""
        if self.goal.only_times or (self.goal.pairs and self._plan is None):
            return lambda _: True
        if self._plan is None:
            return None
        return {name for one, name in self._plan.points if one == submodel}.__contains__


def _amounts(operators: Operators | None, own: Sequence[PacePoint]) -> list[tuple[Amount | None, bool]]:
    """Returns what is computed before each point of a submodel, before its end where it has none of its own.

    And whether that is done with integers of few bits.
    """
    if operators is None:
        return [(None, False)] * max(1, len(own))
    if not own:
        return [(operators.whole(), operators.is_quantised(range(len(operators.operators))))]
    values = [point.values for point in own]
    return list(zip(operators.between(values), operators.quantised(values), strict=True))


def _continued(values: dict[str, Value] | None, step: Step) -> dict[str, Value] | None:
    """Returns the values with those that a step makes; none where it fails on them, as it may on made-up ones."""
    if values is None:
        return None
    try:
        return {**values, **step(values)}
    except NndeployError:
        return None


def _on_host(names: Sequence[str], values: Mapping[str, Value], gpu_work: GpuWork | None) -> Mapping[str, Value]:
    given = {name: values[name] for name in names}
    return given if gpu_work is None else gpu_work.on_host(given)


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

    One whose session passes none is a single operator; on a GPU (`gpu_work`) that ends when its work is done there,
    not when it was queued.
    """

    def __init__(self, step: Step, library: PaceLibrary, at: _PlaceOfStep, *, gpu_work: GpuWork | None = None) -> None:
        self.inputs, self.outputs = step.inputs, step.outputs
        self._step, self._library, self._at = step, library, at
        self._gpu_work = gpu_work

    def __call__(self, values: Mapping[str, Value]) -> Mapping[str, Value]:
        with self._at.pacer.submodel(self._at.number):
            self._library.count_from(self._at.first)
            results = self._step(values)
            if self._gpu_work is not None:
                self._gpu_work.wait()
            if self._at.passes:
                self._library.point(0)
        return results


def shapes_of(values: Mapping[str, Value]) -> Shapes:
    """Returns the shapes of a run's inputs: what its operators take depends on them."""
    return tuple(value.shape if isinstance(value, np.ndarray) else () for value in values.values())
