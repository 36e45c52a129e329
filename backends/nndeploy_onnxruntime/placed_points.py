# SPDX-License-Identifier: Apache-2.0
"""Points in a model where they work and are worth their cost: put behind every operator, tried, and thinned out.

Left out are those that ONNX Runtime does not load (a value that is not a tensor), those that copy (a value that cannot
stay where it is), and those that stand close behind others: a point costs microseconds, whatever stands before it, and
nobody sleeps before a millisecond of work was done.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nndeploy.errors import one_line
from nndeploy.plugin.interface import Session
from nndeploy.plugin.pacing import PART_NS, Wanted
from nndeploy.values.types import Array
from nndeploy_onnxruntime.model_fields import last_operator
from nndeploy_onnxruntime.pace_operator import watched_copies
from nndeploy_onnxruntime.pace_points import with_points
from nndeploy_onnxruntime.pace_trials import NoPointsError, Pointed, Trial
from nndeploy_onnxruntime.session import session_over


def with_placed_points(
    optimised: bytes, opened: Callable[[bytes], Any], trial: Trial, wanted: Wanted | None = None
) -> Pointed:
    """Returns the session of an optimised model with points; `opened` opens one that is run as it is.

    Points are behind the operators `wanted`, None: thinned out.

    Raises:
        NoPointsError: such a session fails, or gives other results.
    """
    return _Placing(optimised, opened, trial).done(wanted)


class _Placing:
    """The points of one model, which become fewer; `left_out` are the operators behind which there is none."""

    def __init__(self, optimised: bytes, opened: Callable[[bytes], Any], trial: Trial) -> None:
        self._optimised, self._opened, self._trial = optimised, opened, trial
        self.left_out = set[str]()
        self._reasons = list[str]()
        self._running = list[str]()

    def done(self, wanted: Wanted | None) -> Pointed:
        every = self._names()
        if wanted is not None:
            self._leave_out({name for name in every if not wanted(name)}, "where none is wanted")
        session = self._accepted_session(self._names())
        if self._trial.sample is not None:
            session = self._without_copies(session)
            session = self._thinned(session) if wanted is None else session
            if session is not self._trial.whole:
                self._trial.check(session)
        names = self._names()
        note = f"points behind {len(names)} of {len(every)} operators"
        ends = [*names, last_operator(self._optimised)]
        return Pointed(session, ends, "; ".join([note, *self._reasons]), self._running)

    def _names(self) -> list[str]:
        return with_points(self._optimised, self.left_out)[1]

    def _session(self) -> Session:
        try:
            return session_over(self._opened(with_points(self._optimised, self.left_out)[0]), None)
        except Exception as err:  # the library refuses in its own ways
            raise NoPointsError(one_line(f"the model with points is refused: {err}")) from err

    def _leave_out(self, names: set[str], why: str) -> None:
        if names:
            self.left_out |= names
            self._reasons.append(f"none behind {len(names)} {why}")

    def _accepted_session(self, every: Sequence[str]) -> Session:
        """Returns a session with all points, or with those that it opens with."""
        try:
            return self._session()
        except NoPointsError:
            accepted = self._accepted(every)
            if not accepted:
                raise
        self._leave_out(set(every).difference(accepted), "whose values are no tensors")
        return self._session()

    def _accepted(self, some: Sequence[str]) -> list[str]:
        """Returns those of some points with which the model opens; found by halves."""
        others = set(self._names()).difference(some)
        try:
            self._opened(with_points(self._optimised, others)[0])
        except Exception:  # the reason is known from when all were tried
            half = len(some) // 2
            return [*self._accepted(some[:half]), *self._accepted(some[half:])] if half else []
        return list(some)

    def _without_copies(self, session: Session) -> Session:
        names, failure = self._names(), None
        with watched_copies(self._trial.pacer.path, len(names)) as copies:
            try:
                self._trial.run(session)
            except NoPointsError as err:
                failure = err
        copying = {name for name, count in zip(names, copies.tolist(), strict=True) if count}
        if not copying:
            if failure is not None:
                raise failure
            return session
        self._leave_out(copying, "whose values would be copied")
        session.close()
        return self._without_copies(self._session())

    def _thinned(self, session: Session) -> Session:
        """Returns a session with fewer points, where shapes are always those of the sample."""
        if not self._trial.has_fixed_shapes:
            return session
        names = self._names()
        durations, order = self._trial.durations(session, len(names) + 1)
        passed = np.argsort(order)
        self._running = [names[point] for point in passed[:-1]]
        close = {names[point] for point, is_kept in zip(passed, spaced(durations[passed]), strict=True) if not is_kept}
        if not close:
            return session
        self._leave_out(close, f"within {PART_NS / 1e6:g} ms of others")
        session.close()
        return self._session() if len(close) < len(names) else self._trial.whole


def spaced(durations: Array) -> list[bool]:
    """Returns which points are kept, of those that stand behind operators of so many nanoseconds.

    From one to the next it is at most `PART_NS`, but where a single operator takes longer; such a one has a point
    before it and behind it. The last is kept.
    """
    kept, since = list[bool](), 0.0
    for duration, following in zip(durations.tolist(), [*durations[1:].tolist(), math.inf], strict=True):
        since += duration
        kept.append(since + following > PART_NS)
        since *= not kept[-1]
    return kept
