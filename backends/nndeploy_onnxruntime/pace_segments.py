# SPDX-License-Identifier: Apache-2.0
"""A model cut into segments: several sessions over consecutive parts of it, and a point behind each.

For where our operator cannot be used. Each cut costs tens of microseconds and more, for what crosses it lies in memory
of its own; so cuts stand where little crosses, and there are only as many as the model's time pays for: what they cost
is measured. Values cross as the library's own, without a copy.
"""

import json
import math
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from nndeploy.errors import UsageError, one_line
from nndeploy.plugin.pacing import BURST_NS, Pacer, Wanted
from nndeploy.values.types import Array, Value
from nndeploy_onnxruntime.pace_trials import NoPointsError, Pointed, Trial
from nndeploy_onnxruntime.segment_models import Parts
from nndeploy_onnxruntime.session import from_library, to_library

SEGMENT_NS = 2 * BURST_NS
"""How long a segment is at least: shorter ones cost more than 2% (40 microseconds a cut and more)."""
MOST_SEGMENTS = 16
MOST_COST = 0.02
"""Share of a run's time by which segments may take longer than the whole."""
_EVENT = re.compile(r"nndeploy/(\d+)_kernel_time")


class Opener(Protocol):
    """Opens the library's session over a model that is run as it is; with `profile` it writes what it does."""

    def __call__(self, model: bytes, *, profile: str = "") -> Any:
        """Returns the session."""


def in_segments(optimised: bytes, opened: Opener, trial: Trial, wanted: Wanted | None = None) -> Pointed:
    """Returns the session of an optimised model that is cut, in as many segments as are worth it.

    Where no more are `wanted` than may be, by the operators before cuts, those are made, whatever they cost.

    Raises:
        NoPointsError: it is too short to be cut, there is no sample to measure it on, or its segments do not work.
    """
    trial.run(trial.whole)
    try:
        parts = Parts(optimised)
        if wanted is not None and 0 < len(cuts := parts.cuts_behind(wanted)) < MOST_SEGMENTS:
            session = SegmentedSession(parts, cuts, opened, trial.pacer)
            trial.check(session)
            return Pointed(session, session.names, f"cut into {len(session.names)} segments, as wanted")
        times, sizes = _profiled(parts, opened, trial)
        count = min(MOST_SEGMENTS, int(times.sum() / SEGMENT_NS))
        found = "it takes too little time"
        while count > 1 and (cuts := parts.cuts(times, sizes, count)):
            session = SegmentedSession(parts, cuts, opened, trial.pacer)
            trial.check(session)
            cost = trial.cost(session)
            if cost <= MOST_COST:
                return Pointed(session, session.names, f"cut into {len(session.names)} segments, {cost:+.1%}")
            found = f"{len(session.names)} segments cost {cost:+.1%}"
            session.close()
            count = len(cuts) + 1 - max(1, (len(cuts) + 1) // 2)
    except NoPointsError:
        raise
    except Exception as err:  # a library refuses in its own ways
        raise NoPointsError(one_line(f"its segments do not open: {err}")) from err
    raise NoPointsError(found)


def _profiled(parts: Parts, opened: Opener, trial: Trial) -> tuple[Array, Array]:
    """Returns the nanoseconds of each node, and the bytes of its outputs, as the library's own profile tells."""
    times, sizes = np.zeros(parts.num_nodes), np.zeros(parts.num_nodes)
    with tempfile.TemporaryDirectory(prefix="nndeploy-pace-") as folder:
        session = opened(parts.with_numbered_nodes(), profile=str(Path(folder) / "profile"))
        inputs = {name: to_library(value) for name, value in _arrays(trial.sample or {}).items()}
        for _ in range(3):  # the first also makes pages and caches
            session.run_with_ort_values(None, inputs)
        events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    for event in events:
        if found := _EVENT.fullmatch(str(event.get("name"))):
            node = int(found[1])
            times[node] = min(times[node] or math.inf, 1e3 * event["dur"])
            sizes[node] = int(event["args"]["output_size"])
    return times, sizes


@dataclass(frozen=True)
class _Segment:
    """A session, the names that it reads and makes, and those that nobody reads behind it."""

    session: Any
    inputs: Sequence[str]
    outputs: Sequence[str]
    dead: Sequence[str]


class SegmentedSession:
    """Sessions over the segments of a model, one after the other; passes a point behind each but the last."""

    def __init__(self, parts: Parts, cuts: Sequence[int], opened: Opener, pacer: Pacer) -> None:
        """Opens them; a segment begins at the node 0 and at each of `cuts`."""
        self._pacer, self._segments, types = pacer, list[_Segment](), dict[str, str]()
        spans = list(zip([0, *cuts], [*cuts, parts.num_nodes], strict=True))
        self.names = [parts.name(end - 1) for _, end in spans]
        self._outputs = parts.output_names
        for begin, end in spans:
            model = parts.segment(begin, end, types)
            session = opened(model)
            made = session.get_outputs()
            types |= {value.name: value.type for value in made}
            read = [value.name for value in session.get_inputs()]
            self._segments.append(_Segment(session, read, [value.name for value in made], parts.dead_after(begin, end)))

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the value of every output by name."""
        if not self._segments:
            raise UsageError("the session is closed")
        values = {name: to_library(value) for name, value in _arrays(inputs).items()}
        for point, segment in enumerate(self._segments):
            if point:
                self._pacer.point(point - 1)
            given = {name: values[name] for name in segment.inputs}
            made = segment.session.run_with_ort_values(segment.outputs, given)
            values.update(zip(segment.outputs, made, strict=True))
            for name in segment.dead:
                values.pop(name, None)
        return {name: from_library(values[name]) for name in self._outputs}

    def close(self) -> None:
        """Frees the library's sessions; a second call does nothing."""
        self._segments = []


def _arrays(inputs: Mapping[str, Value]) -> dict[str, Array]:
    for name, value in inputs.items():
        if not isinstance(value, np.ndarray):
            raise TypeError(f"{name!r} is not a tensor")
    return dict(inputs)
