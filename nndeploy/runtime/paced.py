# SPDX-License-Identifier: Apache-2.0
"""A chain whose runs are paced: its library of delays, its points in order, and steps that count and pass them.

Submodels of backends that can stop between operators pass points of their own; any other is one operator.
"""

import platform
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nndeploy.bundle.reader import Bundle
from nndeploy.errors import UnavailableError
from nndeploy.pacing.library import PaceLibrary
from nndeploy.pacing.pacer import CALM_RUNS, PaceGoal, Pacer
from nndeploy.plugin.interface import PacedSession, PacePoint, Session
from nndeploy.runtime.chain import Runnable
from nndeploy.runtime.select import Choice
from nndeploy.target import host_target
from nndeploy.value_types import Value

if TYPE_CHECKING:
    from nndeploy.runtime.program import Program

HINT = "compile it with --pace, and --target for this machine"


@dataclass(frozen=True, slots=True)
class Pacing:
    """The library of delays of a bundle, and what the user grants."""

    library: PaceLibrary
    goal: PaceGoal


def pacing_of(bundle: Bundle, goal: PaceGoal) -> Pacing:
    """Returns the library of delays for this machine.

    Raises:
        UnavailableError: the bundle has none, or it cannot be loaded.
        BundleError: it is damaged.
    """
    libraries, arch = bundle.manifest.pace_libraries, platform.machine()
    if arch not in libraries:
        has = f"for {', '.join(libraries)} only" if libraries else "no pace points"
        raise UnavailableError(f"the bundle has {has}: it cannot be paced on {arch}", hint=HINT)
    return Pacing(PaceLibrary(bytes(bundle.member(libraries[arch]))), goal)


def paced(
    steps: Sequence[Runnable], sessions: Sequence[Session], choices: Sequence[Choice], pacing: Pacing
) -> tuple[Pacer, list[Runnable]]:
    """Returns the pacer of a chain, and its steps with their points."""
    pacer = Pacer(pacing.library, pacing.goal, host_target().num_cores)
    with_points = list[Runnable]()
    for step, session, choice in zip(steps, sessions, choices, strict=True):
        own = session.pace(pacer.address) if isinstance(session, PacedSession) else ()
        whole = PacePoint(f"submodel {choice.submodel} ({choice.backend})", is_cut=False)
        first = pacer.add_points(own or [whole])
        with_points.append(_PacedStep(step, pacing.library, first, passes=not own))
    return pacer, with_points


def times_calm_runs(program: "Program", bundle: Bundle) -> None:
    """Runs a sample that the bundle carries as often as it takes to know how long each operator is.

    A bundle without samples learns it from the first runs.

    Raises:
        UsageError: the time that was granted is less than a calm run takes.
    """
    if program.pacer is None or not bundle.manifest.goldens:
        return
    inputs = bundle.values(bundle.manifest.goldens[0].inputs)
    for _ in range(1 + CALM_RUNS):  # the first of all also makes pages and caches
        program.run(inputs)
    program.pacer.goal.check(program.pacer.known()[0])


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


def shapes_of(values: Mapping[str, Value]) -> Hashable:
    """Returns the shapes of a run's inputs: what its operators take depends on them."""
    return tuple(value.shape if isinstance(value, np.ndarray) else () for value in values.values())
