# SPDX-License-Identifier: Apache-2.0
"""Runs on a sample that tell whether a session with points is right, and what its operators take."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nndeploy.errors import one_line
from nndeploy.plugin.interface import Session
from nndeploy.plugin.pacing import Pacer, PointTimes
from nndeploy.values.types import Array, Value

MOST_RUNS = 5
MOST_SECONDS = 0.5
"""Time of measured runs after which no further one begins."""


class NoPointsError(Exception):
    """Points cannot be passed in this way; `str(error)` is the reason, one line."""


@dataclass(frozen=True)
class Pointed:
    """A session that passes a point behind each of the operators `names`, but for the last, which its caller passes.

    `note` tells how it came to these. `running` are all operators in the order in which they run, where that is known.
    """

    session: Session
    names: list[str]
    note: str
    running: Sequence[str] = ()


class Trial:
    """What a session without points does on a sample, to compare others with; `sample` is None where there is none.

    With `has_fixed_shapes` all inputs have the sample's shapes, so that times are what they will be.
    """

    def __init__(
        self, whole: Session, pacer: Pacer, sample: Mapping[str, Value] | None, *, has_fixed_shapes: bool
    ) -> None:
        self.whole, self.pacer, self.sample = whole, pacer, sample
        self.has_fixed_shapes = has_fixed_shapes

    def run(self, session: Session) -> dict[str, Value]:
        """Returns what a session gives.

        Raises:
            NoPointsError: it fails, or there is no sample.
        """
        if self.sample is None:
            raise NoPointsError("there is no sample to try it on")
        try:
            return session.run(self.sample)
        except Exception as err:  # a library fails in its own ways
            raise NoPointsError(one_line(f"its run fails: {err}")) from err

    def check(self, session: Session) -> None:
        """Checks that a session gives the same bytes as the one without points, if that itself gives the same twice.

        Raises:
            NoPointsError: it does not.
        """
        want = self.run(self.whole)
        if not _is_same(self.run(session), want) and _is_same(self.run(self.whole), want):
            raise NoPointsError("its results are not those of the model without points")

    def durations(self, session: Session, num_points: int) -> tuple[Array, Array]:
        """Returns the nanoseconds until each of the points from the one before it, and as which one it is passed.

        The last is the end of the run. They are medians.
        """
        runs, end = list[PointTimes](), time.monotonic() + MOST_SECONDS
        while len(runs) < MOST_RUNS and (not runs or time.monotonic() < end):
            with self.pacer.timed(num_points) as passed:
                self.run(session)
                self.pacer.point(num_points - 1)
            runs.append(passed)
        return np.median([one.times for one in runs], 0), runs[-1].order

    def cost(self, session: Session) -> float:
        """Returns what a session takes longer than the one without points, as a share: the least of runs in turn."""
        seconds: tuple[list[float], list[float]] = ([], [])
        end = time.monotonic() + 2 * MOST_SECONDS
        while len(seconds[0]) < 2 * MOST_RUNS and (not seconds[0] or time.monotonic() < end):
            for one, taken in zip((self.whole, session), seconds, strict=True):
                begin = time.perf_counter()
                self.run(one)
                taken.append(time.perf_counter() - begin)
        return min(seconds[1]) / min(seconds[0]) - 1


def _is_same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        same_kind = isinstance(b, np.ndarray) and (a.dtype, a.shape) == (b.dtype, b.shape)
        return same_kind and (a.tolist() == b.tolist() if a.dtype == object else a.tobytes() == b.tobytes())
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(_is_same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(_is_same, a, b))
    return bool(a == b)
