# SPDX-License-Identifier: Apache-2.0
"""Measured points -> curves that rise: neighbours are joined, and who is out of order shares a mean."""

import math
import time

from cost_cases import FOLLOWED
from cost_measurements import Measurements
from native_engines import machine_name

from nndeploy.pacing.estimate import BYTES_PER_S
from nndeploy.partition import kinds
from nndeploy.partition.cost_table import FORMAT, Curve

NEAR = 1.3
"""Points whose estimates differ by less than this factor become one."""


def curve_of(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Returns the rising curve nearest to the points, in logarithms (pool adjacent violators)."""
    groups: list[list[tuple[float, float]]] = []
    for x, y in sorted((math.log(x), math.log(y)) for x, y in points):
        if groups and x - groups[-1][0][0] < math.log(NEAR):
            groups[-1].append((x, y))
        else:
            groups.append([(x, y)])
    xs = [_mean([x for x, _ in group]) for group in groups]
    pools: list[list[float]] = []  # the values that share a mean
    for group in groups:
        pools.append([_mean([y for _, y in group])])
        while len(pools) > 1 and _mean(pools[-2]) > _mean(pools[-1]):
            last = pools.pop()
            pools[-1] += last
    ys = [_mean(pool) for pool in pools for _ in pool]
    return [(float(f"{math.exp(x):.4g}"), float(f"{math.exp(y):.4g}")) for x, y in zip(xs, ys, strict=True)]


def table_of(found: Measurements, level: str) -> dict[str, object]:
    """Returns the table as JSON has it."""
    backends = {}
    for engine, by_kind in found.points.items():
        curves = {kind: curve_of(points) for kind, points in by_kind.items()}
        backends[engine] = {
            "call": _short(found.call[engine]),
            "node": _short(found.node[engine]),
            "node_of_any_size": _short(found.node_of_any_size[engine]),
            "fused": {head: _part(curves, head, extra) for head, extra in found.fused.get(engine, {}).items()},
            "in_networks": {},
            "curves": curves,
        }
    return {
        "format": FORMAT,
        "level": level,
        "machine": machine_name(),
        "date": time.strftime("%Y-%m-%d"),
        "backends": backends,
    }


def _part(curves: dict[str, list[tuple[float, float]]], head: str, extra: float) -> float:
    """Returns which part of its own time an elementwise operator takes behind another: 0 to 1."""
    points = curves.get(kinds.ELEMENTWISE)
    if not points:
        return 1.0
    alone = Curve(tuple(points)).seconds(2 * 4 * math.prod(FOLLOWED[head]) / BYTES_PER_S)
    return round(min(1.0, max(0.0, extra / alone)), 3)


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def _short(value: float) -> float:
    return float(f"{value:.4g}")
