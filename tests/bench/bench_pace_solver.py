# SPDX-License-Identifier: Apache-2.0
"""How long it takes to solve for delays, and how flat the load is that they give.

    python tests/bench/bench_pace_solver.py [--edges 2000] [--graphs 10] [--stretch 2] [--most-seconds 0.3]

Graphs are random in their sizes, durations and seeds; half have bounds, and a tenth of their operators is rigid.
Times are of one graph from its edges to its delays, imports done before. Flatness is the mean square of the load of
each way over the time that is granted, relative to that with proportional delays: the sum over edges of
duration^2 / (duration + delay). Exit code 1 if any graph takes longer than `--most-seconds`.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from itertools import pairwise

import highspy
import numpy as np

from nndeploy.pacing.operator_graph import OperatorGraph
from nndeploy.pacing.policy import PacePolicy
from nndeploy.pacing.solving import solve

Edges = list[tuple[int, int]]
Random = np.random.Generator


def serial(random: Random, count: int) -> Edges:
    """Returns one operator after another."""
    return [(i, i + 1) for i in range(count)]


def inception(random: Random, count: int) -> Edges:
    """Returns blocks of four branches that are joined."""
    edges: Edges = []
    fork, free = 0, 1
    while len(edges) < count:
        ends = []
        for length in random.integers(1, 6, 4).tolist():
            branch = [fork, *range(free, free + length)]
            free += length
            edges += pairwise(branch)
            ends.append(branch[-1])
        edges += [(end, free) for end in ends]
        fork, free = free, free + 1
    return edges


def residual(random: Random, count: int) -> Edges:
    """Returns blocks of a few operators in a row, each with a way past it."""
    edges: Edges = []
    fork = 0
    while len(edges) < count:
        end = fork + int(random.integers(3, 6))
        edges += [*((i, i + 1) for i in range(fork, end)), (fork, end)]
        fork = end
    return edges


def crossed(random: Random, count: int) -> Edges:
    """Returns branches that lead into each other, as searched architectures have them."""
    size = count * 2 // 3
    edges = {(max(0, i - int(random.integers(1, 9))), i) for i in range(1, size)}
    while len(edges) < count:
        first = int(random.integers(0, size - 12))
        edges.add((first, first + int(random.integers(1, 12))))
    return sorted(edges)


def long_edges(random: Random, count: int) -> Edges:
    """Returns rows of operators between which edges of any length lie."""
    size = count * 2 // 3
    edges = {(i, i + 1) for i in range(size - 1) if random.random() < 0.7}
    while len(edges) < count:
        first, last = sorted(random.integers(0, size, 2).tolist())
        if first < last:
            edges.add((first, last))
    return sorted(edges)


SHAPES: tuple[Callable[[Random, int], Edges], ...] = (serial, inception, residual, crossed, long_edges)


def parts_of(random: Random, edges: Edges, *, is_bounded: bool) -> tuple[list[float], Edges, list[float]]:
    """Returns durations around 0.06 ms, the edges, and bounds."""
    size = 1 + max(max(edge) for edge in edges)
    bounds = np.full(size, np.inf)
    if is_bounded:
        bounds = random.uniform(0.5, 8.0, size)
        bounds[random.random(size) < 0.1] = 0.0
    return random.lognormal(11, 1.2, size).tolist(), edges, bounds.tolist()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=int, default=2000)
    parser.add_argument("--graphs", type=int, default=10, help="of each shape")
    parser.add_argument("--stretch", type=float, default=2.0, help="the total, as a multiple of the baseline")
    parser.add_argument("--most-seconds", type=float, default=0.3)
    options = parser.parse_args()
    print(f"{options.edges} edges, {options.graphs} graphs a shape, HiGHS {highspy.Highs().version()}")
    print(f"{'shape':12} {'policy':13} {'median s':>9} {'worst s':>9} {'mean square of the load':>24}")
    worst = 0.0
    for shape in SHAPES:
        seconds: dict[PacePolicy, list[float]] = {policy: [] for policy in PacePolicy}
        squares: dict[PacePolicy, list[float]] = {policy: [] for policy in PacePolicy}
        for seed in range(options.graphs):
            random = np.random.default_rng(seed)
            parts = parts_of(random, shape(random, options.edges), is_bounded=seed % 2 == 1)
            total = OperatorGraph(*parts).baseline_ns * options.stretch
            for policy in PacePolicy:
                start = time.perf_counter()
                graph = OperatorGraph(*parts)
                delays = solve(graph, total, policy)
                seconds[policy].append(time.perf_counter() - start)
                assert graph.length_ns(delays) <= total * (1 + 1e-12)
                work = graph.durations[graph.sources]
                squares[policy].append(float((work**2 / (work + delays)).sum()))
        for policy in PacePolicy:
            flatness = statistics.median(
                one / other for one, other in zip(squares[policy], squares[PacePolicy.PROPORTIONAL], strict=True)
            )
            median, most = statistics.median(seconds[policy]), max(seconds[policy])
            print(f"{shape.__name__:12} {policy.value:13} {median:9.3f} {most:9.3f} {flatness:24.3f}")
            worst = max(worst, most)
    print(f"worst: {worst:.3f} s of {options.most_seconds:g} s that are allowed")
    return int(worst > options.most_seconds)


if __name__ == "__main__":
    sys.exit(main())
