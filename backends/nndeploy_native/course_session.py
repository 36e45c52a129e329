# SPDX-License-Identifier: Apache-2.0
"""A course -> a running session: the plans that a call goes through, one after the other, on one pool of threads.

A choice reads one truth and goes on in the course that it names; plans of the other are not touched. Each plan is a
session of its own, with its tables, memory and caches, so what one branch is used for does not hold for the other.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from nndeploy.errors import InputError, OtherSizesError, UsageError
from nndeploy.plugin.pacing import PacePoint, Pacer, Wanted
from nndeploy.values.types import Value
from nndeploy_native.course import Choice, Course, CourseDocument, Empty, Refused
from nndeploy_native.plan import DTYPES
from nndeploy_native.plan_session import PlanSession


class CourseSession:
    """Runs of one course; several threads may call at once."""

    def __init__(self, sessions: Sequence[PlanSession], document: CourseDocument) -> None:
        """`sessions` are those of the plans, in order."""
        self.pace_note = "which steps run is known only when they do"
        self._sessions, self._document = sessions, document
        self._inputs = [one.name for one in document.inputs]
        self.takes_strided = frozenset[str]().union(*(one.takes_strided for one in sessions)) & set(self._inputs)
        self._is_open = True

    def pace(
        self,
        pacer: Pacer,  # noqa: ARG002
        sample: Mapping[str, Value] | None,  # noqa: ARG002
        wanted: Wanted | None = None,  # noqa: ARG002
    ) -> list[PacePoint]:
        """Returns none: a run passes the points of one branch alone."""
        return []

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the value of every output by name.

        Raises:
            InputError: an input has another shape than the submodel, or a condition is not one truth.
            OtherSizesError: these sizes lead to a branch that was not built.
            UsageError: the session is closed.
        """
        if not self._is_open:
            raise UsageError("the session is closed")
        values = {name: inputs[name] for name in self._inputs}
        found = dict(zip(self._document.course.results, self._followed(self._document.course, values), strict=True))
        for border in self._document.outputs:
            shape = np.shape(found[border.name])
            if any(said not in (None, size) for said, size in zip(border.shape, shape, strict=True)):
                raise OtherSizesError(f"output {border.name!r} comes to {shape}, the model says {border.shape}")
        return found

    def _followed(self, course: Course, values: dict[str, Value]) -> list[Value]:
        for part in course.parts:
            if isinstance(part, Choice):
                taken = part.courses[0 if _truth(values[part.condition], part.condition) else 1]
                values.update(zip(part.outputs, self._followed(taken, dict(values)), strict=True))
            elif isinstance(part, Refused):
                raise OtherSizesError(f"our own kernels were not built for these sizes: {part.reason}")
            elif isinstance(part, Empty):
                values[part.name] = np.empty(part.shape, DTYPES[part.element])
            else:
                values.update(self._sessions[part].run(values))
        return [values[name] for name in course.results]

    def close(self) -> None:
        """Ends the threads and frees the memory; a second call does nothing."""
        self._is_open = False
        for session in self._sessions:
            session.close()

    def steps_here(self) -> list[dict[str, int | str]]:
        """Returns the steps of all plans with their sizes and windows at the least sizes of the ranges."""
        return [step for session in self._sessions for step in session.steps_here()]


def _truth(value: Value, name: str) -> bool:
    array = np.asarray(value)
    if array.size != 1:
        raise InputError(f"the condition {name!r}: expected one truth, got {array.shape}")
    return bool(array.item())
