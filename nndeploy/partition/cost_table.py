# SPDX-License-Identifier: Apache-2.0
"""The cost table: how long each backend takes for an operator of a kind and size, measured, by instruction set.

`costs/<level>.json` is written by `make bench-costs`, on one thread. A curve holds points (estimate of
`nndeploy.partition.cost`, measured), both in seconds, in rising order; between them seconds are interpolated in
logarithms, below the first they stay, beyond the last they grow as the estimate does. Law: no curve ever falls, so a
larger operator is never predicted to be faster.

An operator within a network finds other things in the caches than one by itself, and is computed together with others.
What it then takes, over what it takes alone, is a factor for each of the terms that `nndeploy.partition.speeds` adds up
(a call, a kind, what is behind another operator), fitted to whole networks by `make bench-costs ARGS=fit`.

A level without a table (x86-64-v2, aarch64) has the nearest one's: only ratios between backends mean something there.
A backend without a row (those of GPUs, somebody else's) is taken to compute as fast as the fastest and to cost a call
as most do, so that it is measured, and nobody else is left out for it.
"""

import bisect
import functools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

from nndeploy.partition.kinds import FREE, OTHER

FORMAT = 2
CALL = "call"
"""The term of a call, among those that have a factor."""
WIDEST, LEAST = "x86-64-v4", "x86-64-v3"
LEVELS = (WIDEST, LEAST)


@dataclass(frozen=True, slots=True)
class Curve:
    """Measured seconds over estimated ones, at rising points."""

    points: tuple[tuple[float, float], ...]

    def seconds(self, estimate: float) -> float:
        """Returns the measured seconds at an estimate."""
        first, last = self.points[0], self.points[-1]
        if estimate <= first[0]:
            return first[1]
        if estimate >= last[0]:
            return last[1] * estimate / last[0]
        right = bisect.bisect_right(self.points, estimate, key=lambda point: point[0])
        (x0, y0), (x1, y1) = self.points[right - 1], self.points[right]
        part = math.log(estimate / x0) / math.log(x1 / x0)
        return float(y0 * (y1 / y0) ** part)


@dataclass(frozen=True, slots=True)
class BackendCosts:
    """What a backend costs, in seconds.

    `call` is a call's; `node` the least of a node; `node_of_any_size` the least of one whose sizes are only known in a
    call. `curves` are by kind of operator. `fused` is the part of its own time that an elementwise operator takes
    behind a convolution, a product or another elementwise operator of the same backend. `in_networks` are the factors
    of terms within whole networks, 1 where there is none; no other field has them in it.
    """

    call: float
    node: float
    node_of_any_size: float
    curves: Mapping[str, Curve]
    fused: Mapping[str, float]
    in_networks: Mapping[str, float]

    def seconds_of(self, term: str, seconds: float) -> float:
        """Returns what a term comes to within a network."""
        return self.in_networks.get(term, 1.0) * seconds

    def seconds(self, kind: str, estimate: float) -> float:
        """Returns the seconds of a node of a kind; of one that has no kind, those of the middle of all kinds."""
        if kind == FREE:
            return 0.0
        if kind != OTHER and kind in self.curves:
            return max(self.node, self.curves[kind].seconds(estimate))
        found = sorted(curve.seconds(estimate) for curve in self.curves.values())
        return max(self.node, found[len(found) // 2])


@dataclass(frozen=True, slots=True)
class CostTable:
    """The costs of every measured backend at one instruction set."""

    level: str
    machine: str
    backends: Mapping[str, BackendCosts]

    def of(self, backend: str) -> BackendCosts:
        """Returns the costs of a backend; of one that was not measured, the middle call and the least of the rest."""
        found = self.backends.get(backend)
        return found or _unmeasured(list(self.backends.values()))

    def node_seconds(self, backend: str, kind: str, estimate: float) -> float:
        """Returns the seconds of a node on a backend; on one that was not measured, the least of all."""
        asked = [self.backends[backend]] if backend in self.backends else list(self.backends.values())
        return min(one.seconds(kind, estimate) for one in asked)


@functools.cache
def table_for(level: str) -> CostTable:
    """Returns the table of a target's level, or the nearest one's."""
    name = level if level in LEVELS else WIDEST if level.startswith(WIDEST) else LEAST
    text = resources.files("nndeploy.partition").joinpath("costs", f"{name}.json").read_text(encoding="utf-8")
    return table_from_json(text)


def table_from_json(text: str) -> CostTable:
    """Returns the table that a file holds.

    Raises:
        ValueError: it is of another format, or a curve falls.
    """
    data = json.loads(text)
    if data["format"] != FORMAT:
        raise ValueError(f"not a cost table of format {FORMAT}")
    backends = {name: _backend(one) for name, one in data["backends"].items()}
    return CostTable(data["level"], data["machine"], backends)


def _unmeasured(measured: Sequence[BackendCosts]) -> BackendCosts:
    calls = sorted(one.seconds_of(CALL, one.call) for one in measured)
    node, any_size = min(one.node for one in measured), min(one.node_of_any_size for one in measured)
    heads = {head for one in measured for head in one.fused}
    fused = {head: min(one.fused.get(head, 1.0) for one in measured) for head in heads}
    terms = {term for one in measured for term in one.in_networks} - {CALL}
    in_networks = {term: min(one.in_networks.get(term, 1.0) for one in measured) for term in terms}
    return BackendCosts(calls[len(calls) // 2], node, any_size, {}, fused, in_networks)


def _backend(data: Mapping[str, object]) -> BackendCosts:
    call, node, node_of_any_size = (float(str(data[key])) for key in ("call", "node", "node_of_any_size"))
    curves, fused, in_networks = data["curves"], data["fused"], data["in_networks"]
    if not isinstance(curves, dict) or not isinstance(fused, dict) or not isinstance(in_networks, dict):
        raise ValueError("curves, fused and in_networks are tables")
    found = {kind: Curve(_rising(kind, points)) for kind, points in curves.items()}
    return BackendCosts(call, node, node_of_any_size, found, _floats(fused), _floats(in_networks))


def _floats(data: Mapping[str, object]) -> dict[str, float]:
    return {name: float(str(number)) for name, number in data.items()}


def _rising(kind: str, points: Sequence[Sequence[float]]) -> tuple[tuple[float, float], ...]:
    pairs = tuple((float(x), float(y)) for x, y in points)
    xs, ys = [x for x, _ in pairs], [y for _, y in pairs]
    if not pairs or min(xs + ys) <= 0 or xs != sorted(set(xs)) or ys != sorted(ys):
        raise ValueError(f"the curve of {kind} does not rise")
    return pairs
