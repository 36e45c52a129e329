# SPDX-License-Identifier: Apache-2.0
"""What a backend sees of pacing: the points that its sessions pass, and who is told of them.

A run begins, passes points between its operators and ends; at a point the thread may sleep. The core begins and ends
runs, a session passes points: by `Pacer.point`, by our operator of ONNX Runtime, which is in `Pacer.path`, or by
kernels that call the item themselves (`backends/nndeploy_kernels/c/base/pace.h`). Nothing here is called where a
program is not paced: its sessions are opened without `OpenOptions.pace`, and `pace` is never asked of them.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from nndeploy.values.types import Array, Value

PACE_VERSION = 2
"""NND_PACE_VERSION: the version of the structures that kernels and the core share."""
PART_NS = 0.2e6
"""How long a part of an operator is that can be cut; points closer to each other than this may be left out."""
BURST_NS = 1.2e6
"""How long a thread works before it sleeps: each sleep costs it some 40 us, others may have to wait for so long."""

Wanted: TypeAlias = Callable[[str], bool]
"""Whether there must be a point behind an operator, by its name."""


class PacePoint(NamedTuple):
    """A point where a run may sleep: the operator before it, and whether that is done in parts with points between.

    `values` are those of the submodel that operators made since the point before, by name; names of the backend's own
    do no harm.
    """

    name: str
    is_cut: bool
    values: tuple[str, ...] = ()


class PointTimes(Protocol):
    """What a run passed, by point: arrays of int64 of shape (num_points,)."""

    times: Array
    """Nanoseconds of work until the point from the one before it."""
    order: Array
    """As which one, counted from 0, the point was passed; -1: not at all."""


class Pacer(Protocol):
    """Who is told of the points of a program's runs; every call speaks of the run that the calling thread works on."""

    path: str
    """The shared library of delays, which also has the operator nndeploy.Pace of ONNX Runtime."""

    def item(self) -> int:
        """Returns the address of the run (struct nnd_pace_item), 0 where the thread is in none that is paced."""

    def point(self, number: int) -> None:
        """Passes a point, where the thread may sleep; the points of a session are counted from 0."""

    def timed(self, num_points: int) -> AbstractContextManager[PointTimes]:
        """Begins a run in which nobody sleeps, and ends it; what it passed is known behind the `with` block."""


@runtime_checkable
class PacedSession(Protocol):
    """What a session may offer besides: to pass points between its operators, where runs may sleep."""

    pace_note: str
    """How its points were placed, "" where there is nothing to tell; known once `pace` was called."""

    def pace(
        self, pacer: Pacer, sample: Mapping[str, Value] | None, wanted: Wanted | None = None
    ) -> Sequence[PacePoint]:
        """Lets later runs pass their points; returns these, none where there is no way.

        `sample` are inputs to try points with, None where there are none. A session that can choose has points behind
        the operators that are `wanted`, as far as they work; None: where they are worth what they cost.
        """


@runtime_checkable
class HasPacePoints(Protocol):
    """What a backend may offer besides: its sessions pass points between their operators (`PacedSession`)."""

    has_pace_points: Literal[True]


@runtime_checkable
class HasPaceLibrary(Protocol):
    """What a backend may offer besides: the library of delays, which paced sessions of all backends call."""

    def pace_library(self) -> Path:
        """Returns the installed shared library for this machine.

        Raises:
            UnavailableError: it is not installed.
        """
