# SPDX-License-Identifier: Apache-2.0
"""A course -> a running session: the plans and steps that a call goes through, on one pool of threads.

A choice reads one truth and goes on in the course that it names; plans of the other are not touched. Each plan is a
session of its own, with its tables, memory and caches, so what one branch is used for does not hold for the other.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from nndeploy.errors import InputError, OtherSizesError, UsageError
from nndeploy.plugin.interface import FusedTimes, Json
from nndeploy.plugin.pacing import PacePoint, Pacer, Wanted
from nndeploy.values.types import Value
from nndeploy_native.course import (
    Choice,
    Course,
    CourseDocument,
    Empty,
    Part,
    Refused,
    has_choices,
    kind_of,
    told_python_steps,
)
from nndeploy_native.plan import DTYPES
from nndeploy_native.plan_session import PlanSession
from nndeploy_native.python_step import Kind, PythonStep
from nndeploy_native.python_steps import made_step

_Values: TypeAlias = dict[str, Value]
_Run: TypeAlias = Callable[[_Values], None]
"""Adds what a part makes to the values of a call."""


class CourseSession:
    """Runs of one course; several threads may call at once."""

    def __init__(self, sessions: Sequence[PlanSession], document: CourseDocument) -> None:
        """`sessions` are those of the plans, in order."""
        self._sessions, self._course = sessions, document.course
        self._is_one_plan = len(sessions) == 1 and not has_choices(document.course)
        self.pace_note = "" if self._is_one_plan else "which steps run is known only when they do"
        self._fixed_sizes = [
            (one.name, axis, size)
            for one in document.outputs
            for axis, size in enumerate(one.shape)
            if size is not None
        ]
        self.takes_strided = frozenset[str]().union(*(one.takes_strided for one in sessions)) & {
            one.name for one in document.inputs
        }
        self._runs = self._runs_of(document.course, {one.name: kind_of(one) for one in document.inputs})
        self._is_open = True

    def pace(self, pacer: Pacer, sample: Mapping[str, Value] | None, wanted: Wanted | None = None) -> list[PacePoint]:
        """Returns the points of the only plan; none where there are several: a run passes those of some alone."""
        return self._sessions[0].pace(pacer, sample, wanted) if self._is_one_plan else []

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the value of every output by name.

        Raises:
            InputError: an input has another shape than the submodel, a text is no category, or a condition is not one
                truth.
            OtherSizesError: these sizes lead to a branch that was not built.
            UsageError: the session is closed.
        """
        if not self._is_open:
            raise UsageError("the session is closed")
        values = {**inputs}
        for run in self._runs:
            run(values)
        for name, axis, size in self._fixed_sizes:
            if values[name].shape[axis] != size:
                raise OtherSizesError(f"output {name!r} comes to {values[name].shape}, axis {axis} should be {size}")
        return {name: values[name] for name in self._course.results}

    def _runs_of(self, course: Course, kinds: dict[str, Kind]) -> list[_Run]:
        """Returns what runs the parts of a course that reads values of these kinds, which learn those of its own."""
        return [self._run_of(part, kinds) for part in course.parts]

    def _run_of(self, part: Part, kinds: dict[str, Kind]) -> _Run:
        match part:
            case PythonStep():
                return _run_of_step(part, kinds)
            case Choice():
                return self._run_of_choice(part, kinds)
            case Refused():
                return _run_of_refusal(part.reason)
            case Empty():
                kinds[part.name] = (part.element, len(part.shape))
                return lambda values: values.update({part.name: np.empty(part.shape, DTYPES[part.element])})
        session = self._sessions[part]
        kinds.update({one.name: kind_of(one) for one in session.outputs})
        return lambda values: values.update(session.run(values))

    def _run_of_choice(self, choice: Choice, kinds: dict[str, Kind]) -> _Run:
        branches = []
        for course in choice.courses:
            own = dict(kinds)
            branches.append((self._runs_of(course, own), course.results))
            kinds.update({name: own[result] for name, result in zip(choice.outputs, course.results, strict=False)})
        name, outputs = choice.condition, choice.outputs

        def run(values: _Values) -> None:
            runs, results = branches[0 if _truth(values[name], name) else 1]
            own = dict(values)
            for one in runs:
                one(own)
            values.update({output: own[result] for output, result in zip(outputs, results, strict=True)})

        return run

    def close(self) -> None:
        """Ends the threads and frees the memory; a second call does nothing."""
        self._is_open = False
        for session in self._sessions:
            session.close()

    @property
    def tuning_note(self) -> str:
        """Why what was measured of a plan before is not taken, "" where it is."""
        return next(filter(None, (one.tuning_note for one in self._sessions)), "")

    def begin_tuning(self, seconds: float) -> None:
        """Lets calls try other ways for so many seconds, as `PlanSession.begin_tuning` does, in every plan."""
        for session in self._sessions:
            session.begin_tuning(seconds)

    def begin_fast_tuning(self, seconds: float) -> None:
        """Does the same with ways that change last bits, as `PlanSession.begin_fast_tuning` does, in every plan."""
        for session in self._sessions:
            session.begin_fast_tuning(seconds)

    @property
    def is_tuned(self) -> bool:
        """Whether there is nothing more to try of any plan."""
        return all(session.is_tuned for session in self._sessions)

    def end_tuning(self) -> list[Json]:
        """Takes and keeps what was found of every plan, as `PlanSession.end_tuning` does; returns it."""
        return [one for session in self._sessions for one in session.end_tuning()]

    def replay_tuning(self, data: Sequence[Json]) -> list[Json]:
        """Takes over what `end_tuning` returned before, as `PlanSession.replay_tuning` does, in every plan."""
        return [one for session in self._sessions for one in session.replay_tuning(data)]

    def begin_trials(self, seconds: float) -> None:
        """Lets `try_once` try other ways between calls, as `PlanSession.begin_trials` does, in every plan."""
        for session in self._sessions:
            session.begin_trials(seconds)

    def try_once(self) -> list[Json] | None:
        """Makes one trial of the first plan that has one to make, as `PlanSession.try_once` does."""
        tried = (session.try_once() for session in self._sessions)
        return next((found for found in tried if found is not None), None)

    def end_trials(self) -> None:
        """Tries nothing more."""
        for session in self._sessions:
            session.end_trials()

    @property
    def has_fused_steps(self) -> bool:
        """Whether steps of the only plan can be done apart too; with several there are no points to tell times of."""
        return self._is_one_plan and self._sessions[0].has_fused_steps

    def begin_apart(self) -> None:
        """Lets every second call do its fused steps apart, as `PlanSession.begin_apart` does."""
        self._sessions[0].begin_apart()

    def end_apart(self) -> list[FusedTimes | None]:
        """Ends that; returns the times of each step of the only plan."""
        return self._sessions[0].end_apart()

    def steps_here(self, shapes: Mapping[str, tuple[int, ...]]) -> list[dict[str, int | str]]:
        """Returns the steps of all plans with their sizes and windows, then those of Python; sizes as of a plan."""
        of_plans = [step for session in self._sessions for step in session.steps_here(shapes)]
        return of_plans + told_python_steps(self._course)


def _run_of_step(step: PythonStep, kinds: dict[str, Kind]) -> _Run:
    made = made_step(step, [kinds[name] for name in step.inputs])
    kinds.update(zip(step.outputs, made.kinds, strict=True))
    compute, inputs, outputs = made.run, step.inputs, step.outputs
    if len(inputs) == len(outputs) == 1:
        (name,), (output,) = inputs, outputs

        def run_of_one(values: _Values) -> None:
            values[output] = compute(values[name])

        return run_of_one

    def run(values: _Values) -> None:
        found = compute(*[values[name] for name in inputs])
        values.update(zip(outputs, found if len(outputs) > 1 else (found,), strict=True))

    return run


def _run_of_refusal(reason: str) -> _Run:
    def run(_: _Values) -> None:
        raise OtherSizesError(f"our own kernels were not built for these sizes: {reason}")

    return run


def _truth(value: Value, name: str) -> bool:
    array = np.asarray(value)
    if array.size != 1:
        raise InputError(f"the condition {name!r}: expected one truth, got {array.shape}")
    return bool(array.item())
