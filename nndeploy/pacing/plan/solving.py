# SPDX-License-Identifier: Apache-2.0
"""Delays of all edges of a graph, out of the total that is granted.

First every delay is `units` x one level (`PacePolicy`), as high as the total allows: where units are durations,
the longest stretch of work is thereby the shortest. The length of the graph at a level is the maximum over its ways,
each of which is linear in it until a delay meets its bound, so the level is found exactly, on any graph. Of
`PacePolicy.SOLVED` the time that is then left beside the longest ways is shared by `nndeploy.pacing.plan.slack`.
"""

import math
from bisect import bisect_right

import numpy as np

from nndeploy.errors import UsageError
from nndeploy.pacing.plan.operator_graph import OperatorGraph
from nndeploy.pacing.plan.policy import PacePolicy
from nndeploy.pacing.plan.slack import with_slack
from nndeploy.values.types import Array


def solve(graph: OperatorGraph, total_ns: float, policy: PacePolicy = PacePolicy.PROPORTIONAL) -> Array:
    """Returns the delay of each edge, in nanoseconds; with them the graph is at most `total_ns` long.

    Raises:
        UsageError: the graph is longer without any delay.
        UnavailableError: `PacePolicy.SOLVED` needs HiGHS for this graph, and it is not installed.
    """
    baseline = graph.baseline_ns
    if not baseline <= total_ns < math.inf:
        raise UsageError(
            f"operators take {baseline / 1e6:.6g} ms without delays: they cannot finish in {total_ns / 1e6:.6g} ms",
            hint=f"{math.ceil(baseline / 1e3) / 1e3:g} ms is the minimum",
        )
    durations, bounds = graph.durations[graph.sources], graph.bounds[graph.sources]
    units, most = policy.units(durations), np.where(durations > 0, bounds, 0.0)
    if policy is PacePolicy.EQUAL:
        with np.errstate(invalid="ignore", over="ignore"):
            most = np.where(np.isinf(bounds), np.inf, bounds * durations)
    level = _level(graph, units, most, total_ns)
    delays = units * np.minimum(level, most)
    return with_slack(graph, delays, level, total_ns) if policy is PacePolicy.SOLVED else delays


def _level(graph: OperatorGraph, units: Array, most: Array, total_ns: float) -> float:
    """Returns the highest level at which the graph is at most `total_ns` long, or one at which nothing grows any more.

    The delay of an edge is `units` x level, until level `most`. Between two of those the length is convex: the longest
    way at a level that is too high tells a lower one at which that way fits, until no way is too long.
    """
    marks = np.unique(most[(units > 0) & np.isfinite(most)]).tolist()
    passed = bisect_right(marks, total_ns, key=lambda level: graph.length_ns(units * np.minimum(level, most)))
    low = marks[passed - 1] if passed else 0.0
    grows = np.where(most > low, units, 0.0)
    if not grows.any():
        return float(low)
    fixed = units * np.where(most > low, 0.0, most)
    if passed < len(marks):
        level = marks[passed]
        way = graph.longest_way(fixed + grows * level)
    else:  # no mark is too high, but a level is at which a way that grows fastest is too long
        level = math.inf
        way = graph.without_durations().longest_way(grows)
    while way:  # none: an operator alone takes all the time
        growth, left = float(grows[way].sum()), total_ns - graph.length_of_way(way, fixed)
        if growth <= 0 or left / growth >= level:
            break
        level = left / growth
        way = graph.longest_way(fixed + grows * level)
    return float(max(level, low))
