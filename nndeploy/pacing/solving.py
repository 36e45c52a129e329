# SPDX-License-Identifier: Apache-2.0
"""Delays of all target pairs of a graph, out of the total that is granted.

With `equal` and `proportional` all delays follow from one number, the level, that is as high as the total allows. The
length of the graph at a level is a maximum over its ways, each of which is linear in it until a delay meets its bound.
"""

import math
from bisect import bisect_right
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np

from nndeploy.errors import UsageError
from nndeploy.pacing.pair_graph import PairGraph

_Array: TypeAlias = "np.ndarray[Any, Any]"


class PacePolicy(StrEnum):
    """How a total of delays is shared: `EQUAL` all the same, `PROPORTIONAL` to the amount before each."""

    EQUAL = "equal"
    PROPORTIONAL = "proportional"


def solve(graph: PairGraph, total_ns: float, policy: PacePolicy = PacePolicy.PROPORTIONAL) -> _Array:
    """Returns the delay of each pair, in nanoseconds; with them the graph is at most `total_ns` long.

    Raises:
        UsageError: the graph is longer without any delay.
    """
    calm = graph.calm_ns
    if not total_ns >= calm:
        raise UsageError(
            f"operators take {calm / 1e6:.6g} ms without delays: {total_ns / 1e6:.6g} ms are too little",
            hint=f"{math.ceil(calm / 1e3) / 1e3:g} ms is the least that works",
        )
    amounts, bounds = graph.amounts[graph.sources], graph.bounds[graph.sources]
    if policy is PacePolicy.EQUAL:
        with np.errstate(invalid="ignore"):
            most = np.where(np.isinf(bounds), np.inf, bounds * amounts)
        return np.minimum(_level(graph, np.ones(len(most)), most, total_ns), most)
    worth = np.where(amounts > 0, bounds, 0.0)
    return amounts * np.minimum(_level(graph, amounts, worth, total_ns), worth)


def _level(graph: PairGraph, units: _Array, most: _Array, total_ns: float) -> float:
    """Returns the highest level at which the graph is at most `total_ns` long, or one at which nothing grows any more.

    The delay of a pair is `units` x level, until level `most`. Between two of those the length is convex: a way that is
    too long at a level tells the level at which it is not, and that is repeated from above until none is too long.
    """
    marks = np.unique(most[(units > 0) & np.isfinite(most)]).tolist()
    passed = bisect_right(marks, total_ns, key=lambda level: graph.length_ns(units * np.minimum(level, most)))
    low = marks[passed - 1] if passed else 0.0
    grows = np.where(most > low, units, 0.0)
    if not grows.any():
        return float(low)
    fixed = np.where(most > low, 0.0, units * most)
    # Above all marks any way that grows fastest is one to start with: what is too long there tells the rest.
    level = marks[passed] if passed < len(marks) else math.inf
    way = graph.longest_way(fixed + grows * level) if math.isfinite(level) else _fastest_way(graph, grows)
    while True:
        growth = float(grows[way].sum())
        rest = total_ns - _length_of_way(graph, way, fixed)
        if growth <= 0 or rest / growth >= level:
            return float(max(level, low))
        level = rest / growth
        way = graph.longest_way(fixed + grows * level)


def _fastest_way(graph: PairGraph, grows: _Array) -> list[int]:
    return PairGraph(np.zeros(len(graph.amounts)), graph.pairs).longest_way(grows)


def _length_of_way(graph: PairGraph, way: list[int], delays: _Array) -> float:
    last = graph.pairs[way[0]][1]
    return float(graph.amounts[graph.sources[way]].sum() + graph.amounts[last] + delays[way].sum())
