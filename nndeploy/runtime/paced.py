# SPDX-License-Identifier: Apache-2.0
"""A chain whose runs are paced: its library of delays, its points in order, and steps that count and pass them.

Submodels of backends that can stop between operators pass points of their own; any other is one operator.
"""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nndeploy.bundle.operators_file import CountedOperators, operators_from_json
from nndeploy.bundle.pace_plan_file import AGAIN, PacePlanFile, check_made_for
from nndeploy.bundle.reader import Bundle
from nndeploy.errors import BundleError, DataError, UnavailableError
from nndeploy.pacing.library import PaceLibrary
from nndeploy.pacing.operators import Amount, Operators
from nndeploy.pacing.pacer import CALM_RUNS, PaceGoal, Pacer, Shapes
from nndeploy.plugin.interface import PacedSession, PacePoint, Session
from nndeploy.runtime.chain import Runnable
from nndeploy.runtime.select import Choice
from nndeploy.target import host_target
from nndeploy.value_types import Value

if TYPE_CHECKING:
    from nndeploy.runtime.program import Program

HINT = "compile it with --pace, and --target for this machine"


class ProgramPoint(NamedTuple):
    """A point of a program: its submodel, the operator before it, and what that computes, None where nobody says."""

    submodel: str
    name: str
    amount: Amount | None


@dataclass(frozen=True, slots=True)
class Pacing:
    """The library of delays of a bundle, what the user grants, and what the operators compute."""

    library: PaceLibrary
    goal: PaceGoal
    operators: Mapping[str, Operators]
    """By submodel; empty where the bundle does not say."""
    plan: PacePlanFile | None = None


def pacing_of(bundle: Bundle, by: PaceGoal | PacePlanFile) -> Pacing:
    """Returns the library of delays for this machine, and what runs are paced by.

    Raises:
        UnavailableError: the bundle has none, or it cannot be loaded.
        BundleError: it is damaged.
        DataError: the plan was made for another bundle.
    """
    plan = by if isinstance(by, PacePlanFile) else None
    if plan is not None:
        check_made_for(plan, bundle.manifest)
    libraries, arch = bundle.manifest.pace_libraries, platform.machine()
    if arch not in libraries:
        has = f"for {', '.join(libraries)} only" if libraries else "no pace points"
        raise UnavailableError(f"the bundle has {has}: it cannot be paced on {arch}", hint=HINT)
    goal = by.goal if isinstance(by, PacePlanFile) else by
    return Pacing(PaceLibrary(bytes(bundle.member(libraries[arch]))), goal, counted_operators(bundle).submodels, plan)


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
    steps: Sequence[Runnable], sessions: Sequence[Session], choices: Sequence[Choice], pacing: Pacing
) -> tuple[Pacer, list[Runnable], list[ProgramPoint]]:
    """Returns the pacer of a chain, its steps with their points, and these points."""
    pacer = Pacer(pacing.library, pacing.goal, host_target().num_cores)
    points = list[ProgramPoint]()
    with_points = list[Runnable]()
    for step, session, choice in zip(steps, sessions, choices, strict=True):
        own = session.pace(pacer.address) if isinstance(session, PacedSession) else ()
        whole = PacePoint(f"submodel {choice.submodel} ({choice.backend})", is_cut=False)
        added = own or [whole]
        first = pacer.add_points([(point.name, point.is_cut) for point in added])
        amounts = _amounts(pacing.operators.get(choice.submodel), own)
        points += [ProgramPoint(choice.submodel, one.name, amount) for one, amount in zip(added, amounts, strict=True)]
        with_points.append(_PacedStep(step, pacing.library, first, passes=not own))
    return pacer, with_points, points


def _amounts(operators: Operators | None, own: Sequence[PacePoint]) -> list[Amount | None]:
    """Returns what is computed before each point of a submodel, before its end where it has none of its own."""
    if operators is None:
        return [None] * max(1, len(own))
    return list(operators.between([point.value for point in own])) if own else [operators.whole()]


def learns_amounts(program: "Program", bundle: Bundle, pacing: Pacing) -> None:
    """Takes how long each operator is from a plan, or runs a sample that the bundle carries as often as it takes.

    A bundle without samples learns it from the first runs.

    Raises:
        UsageError: the time that was granted is less than a calm run takes.
        DataError: the plan is not for the operators that there are here.
    """
    if program.pacer is None or pacing.goal.only_times:
        return
    if pacing.plan is not None:
        names = tuple(point.name for point in program.points)
        if names != pacing.plan.points:
            raise DataError(_other_points(names, pacing.plan.points), hint=AGAIN)
        program.pacer.start(pacing.plan.learnt)
        return
    if not bundle.manifest.goldens:
        return
    inputs = bundle.values(bundle.manifest.goldens[0].inputs)
    for _ in range(1 + CALM_RUNS):  # the first of all also makes pages and caches
        program.run(inputs)
    program.pacer.goal.check(program.pacer.known()[0])


def _other_points(here: Sequence[str], planned: Sequence[str]) -> str:
    """Says how the operators here differ from those of a plan: a library optimises for the CPU that it finds."""
    if len(here) != len(planned):
        return f"the plan has {len(planned)} operators, on this machine there are {len(here)}"
    one, other = next((a, b) for a, b in zip(here, planned, strict=True) if a != b)
    return f"the plan has the operator {other!r:.80} where this machine has {one!r:.80}"


class _PacedStep:
    """A step that counts its points from where they are in the program."""

    def __init__(self, step: Runnable, library: PaceLibrary, first: int, *, passes: bool) -> None:
        self.inputs, self.outputs = step.inputs, step.outputs
        self._step, self._library, self._first, self._passes = step, library, first, passes

    def __call__(self, values: Mapping[str, Value]) -> Mapping[str, Value]:
        self._library.count_from(self._first)
        results = self._step(values)
        if self._passes:
            self._library.passes(0)
        return results


def shapes_of(values: Mapping[str, Value]) -> Shapes:
    """Returns the shapes of a run's inputs: what its operators take depends on them."""
    return tuple(value.shape if isinstance(value, np.ndarray) else () for value in values.values())
