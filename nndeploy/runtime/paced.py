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
from nndeploy.errors import NndeployError, UnavailableError
from nndeploy.pacing.library import PaceLibrary
from nndeploy.pacing.pacer import CALM_RUNS, PaceGoal, Pacer
from nndeploy.plugin.interface import PacedSession, PacePoint
from nndeploy.runtime.chain import Runnable
from nndeploy.runtime.lane import Lane
from nndeploy.target import host_target
from nndeploy.value_types import Value

if TYPE_CHECKING:
    from nndeploy.runtime.program import OpenedChain, Program

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
    steps: Sequence[Runnable], opened: "OpenedChain", pacing: Pacing, sample: Mapping[str, Value] | None
) -> tuple[Pacer, list[Runnable]]:
    """Returns the pacer of a chain, and its steps with their points.

    `sample` are inputs of the chain to try points with, None where there are none.
    """
    pacer = Pacer(pacing.library, pacing.goal, host_target().num_cores)
    with_points = list[Runnable]()
    values = None if sample is None else dict(sample)
    for step, session, choice in zip(steps, opened.sessions, opened.choices, strict=True):
        label = f"submodel {choice.submodel} ({choice.backend})"
        own: Sequence[PacePoint] = ()
        if isinstance(session, PacedSession):
            own = session.pace(pacer.address, None if values is None else _on_host(step.inputs, values, opened.lane))
            if session.pace_note:
                pacer.notes.append(f"{label}: {session.pace_note}")
        first = pacer.add_points(own or [PacePoint(label, is_cut=False)])
        lane = opened.lane if choice.device != "cpu" else None
        with_points.append(_PacedStep(step, pacing.library, first, passes=not own, lane=lane))
        values = _continued(values, step)
    return pacer, with_points


def _continued(values: dict[str, Value] | None, step: Runnable) -> dict[str, Value] | None:
    """Returns the values with those that a step makes; none where it fails on them, as it may on made-up ones."""
    if values is None:
        return None
    try:
        return {**values, **step(values)}
    except NndeployError:
        return None


def _on_host(names: Sequence[str], values: Mapping[str, Value], lane: Lane | None) -> Mapping[str, Value]:
    given = {name: values[name] for name in names}
    return given if lane is None else lane.on_host(given)


def sample_of(bundle: Bundle) -> Mapping[str, Value]:
    """Returns inputs to try things with: a sample that the bundle carries, or made-up ones."""
    if goldens := bundle.manifest.goldens:
        return bundle.values(goldens[0].inputs)
    from nndeploy.runtime.sample_inputs import sample_inputs  # which loads numpy's dice, and few need it

    return sample_inputs(bundle.manifest)


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
    """A step that counts its points from where they are in the program.

    One whose session passes none (`passes`) is a single operator; on a GPU (`lane`) that ends when its work is done
    there, not when it was queued.
    """

    def __init__(
        self, step: Runnable, library: PaceLibrary, first: int, *, passes: bool, lane: Lane | None = None
    ) -> None:
        self.inputs, self.outputs = step.inputs, step.outputs
        self._step, self._library, self._first, self._passes = step, library, first, passes
        self._lane = lane

    def __call__(self, values: Mapping[str, Value]) -> Mapping[str, Value]:
        self._library.count_from(self._first)
        results = self._step(values)
        if self._lane is not None:
            self._lane.wait()
        if self._passes:
            self._library.passes(0)
        return results


def shapes_of(values: Mapping[str, Value]) -> Hashable:
    """Returns the shapes of a run's inputs: what its operators take depends on them."""
    return tuple(value.shape if isinstance(value, np.ndarray) else () for value in values.values())
