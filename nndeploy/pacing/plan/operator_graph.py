# SPDX-License-Identifier: Apache-2.0
"""Operators and the edges between them on which a run may sleep: what the solver of delays gets.

Of an edge (a, b) the operator b starts directly after a, so its delay lies between the end of a and the start of
b. The length of a graph is its longest way: delays add up along a way, and where ways join the latest counts.
"""

from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

import numpy as np

from nndeploy.errors import UsageError
from nndeploy.values.types import Array

NO_TIME_NS = 1e-9
"""Durations below it are none: a delay can be no multiple of them."""


class Chains(NamedTuple):
    """Chains of edges: those in a row with nothing else before or behind the operators between them.

    `of` is the number of each edge's chain, `first` and `last` are the operators at the ends of each chain.
    """

    of: Array
    first: Array
    last: Array


class OperatorGraph:
    """An acyclic graph of operators; arrays are float64 by operator, or by edge in the order in which they were given.

    An operator that nothing follows has no delay behind it; whoever wants one there adds an operator of duration 0.
    """

    def __init__(
        self,
        durations: "Sequence[float] | Array",
        edges: Iterable[tuple[int, int]],
        bounds: "Sequence[float] | Array | None" = None,
    ) -> None:
        """Takes `durations` in nanoseconds, `edges` of indices into them, and `bounds`.

        A bound is the most that may be slept behind an operator, as a multiple of its duration: 0 behind one that is
        rigid, infinity (the default) where there is no bound.

        Raises:
            UsageError: a number has no meaning, or edges name unknown operators, are there twice or form a cycle.
        """
        self.durations: Array = np.array(durations, np.float64)
        self.durations[np.abs(self.durations) < NO_TIME_NS] = 0.0
        self.edges: list[tuple[int, int]] = [(int(a), int(b)) for a, b in edges]
        self.bounds: Array = np.full(len(self.durations), np.inf) if bounds is None else np.array(bounds, np.float64)
        self._check()
        rank = self._ranks()
        self._passed = sorted(range(len(self.edges)), key=lambda edge: rank[self.edges[edge][0]])
        self.sources: Array = np.array([a for a, _ in self.edges], np.intp)
        """The operator before each edge."""
        self.targets: Array = np.array([b for _, b in self.edges], np.intp)
        """The operator behind it."""

    def _check(self) -> None:
        durations, bounds, size = self.durations, self.bounds, len(self.durations)
        if bounds.shape != durations.shape or durations.ndim != 1:
            raise UsageError(f"{size} durations of operators, but {bounds.size} bounds of delays")
        if not (np.isfinite(durations).all() and (durations >= 0).all()):
            raise UsageError(f"a duration is {durations[~(np.isfinite(durations) & (durations >= 0))][0]}, not a time")
        if not (bounds >= 0).all():
            raise UsageError(f"a bound of delays is {bounds[~(bounds >= 0)][0]}, not a multiple")
        for edge in self.edges:
            if not all(0 <= end < size for end in edge):
                raise UsageError(f"edge {edge} names an operator that is not one of the {size}")
        if len(set(self.edges)) < len(self.edges):
            twice = next(edge for i, edge in enumerate(self.edges) if edge in self.edges[:i])
            raise UsageError(f"edge {twice} is there twice")

    def _ranks(self) -> list[int]:
        sorter = TopologicalSorter[int]()
        for a, b in self.edges:
            sorter.add(b, a)
        ranks = [0] * len(self.durations)
        try:
            for rank, operator in enumerate(sorter.static_order()):
                ranks[operator] = rank
        except CycleError as err:
            cycle = " -> ".join(str(operator) for operator in err.args[1][::-1])
            raise UsageError(f"operators depend on each other in a cycle: {cycle}") from err
        return ranks

    @property
    def baseline_ns(self) -> float:
        """How long the graph is without delays."""
        return self.length_ns(np.zeros(len(self.edges)))

    def starts_ns(self, delays: Array) -> Array:
        """Returns when each operator starts with these delays, the first one at 0."""
        return np.array(self._starts(delays)[0])

    def length_ns(self, delays: Array) -> float:
        """Returns when the last operator ends."""
        return float((self.starts_ns(delays) + self.durations).max(initial=0.0))

    def latest_starts_ns(self, delays: Array, total_ns: float) -> Array:
        """Returns how late each operator may start for the last one to end at `total_ns`."""
        after, edges = [0.0] * len(self.durations), self.edges
        durations, delays = self.durations.tolist(), delays.tolist()
        for edge in reversed(self._passed):
            a, b = edges[edge]
            after[a] = max(after[a], delays[edge] + durations[b] + after[b])
        latest: Array = total_ns - self.durations - np.array(after)
        return latest

    def chains(self) -> Chains:
        """Returns the chains in an order in which none comes before one that ends where it begins."""
        fan_in, fan_out = (np.bincount(ends, minlength=len(self.durations)) for ends in (self.targets, self.sources))
        of, first, last = [0] * len(self.edges), list[int](), list[int]()
        chain_to = dict[int, int]()
        for edge in self._passed:
            a, b = self.edges[edge]
            if fan_in[a] == fan_out[a] == 1:
                chain = chain_to[a]
                last[chain] = b
            else:
                chain = len(first)
                first.append(a)
                last.append(b)
            of[edge] = chain_to[b] = chain
        return Chains(*(np.array(column, np.intp) for column in (of, first, last)))

    def longest_way(self, delays: Array) -> list[int]:
        """Returns the edges of a longest way through the graph, the last one first."""
        starts, before = self._starts(delays)
        way = list[int]()
        edge = before[int((np.array(starts) + self.durations).argmax())] if starts else -1
        while edge >= 0:
            way.append(edge)
            edge = before[self.edges[edge][0]]
        return way

    def length_of_way(self, way: Sequence[int], delays: Array) -> float:
        """Returns how long the operators and delays of a way from `longest_way` take."""
        last = int(self.targets[way[0]])
        return float(self.durations[self.sources[way]].sum() + self.durations[last] + delays[way].sum())

    def without_durations(self) -> "OperatorGraph":
        """Returns the same graph of operators that take no time."""
        return OperatorGraph(np.zeros(len(self.durations)), self.edges)

    def _starts(self, delays: Array) -> tuple[list[float], list[int]]:
        """Returns when each operator starts, and the edge that it waited for, -1 where there is none."""
        starts, before, edges = [0.0] * len(self.durations), [-1] * len(self.durations), self.edges
        lengths = (self.durations[self.sources] + delays).tolist()
        for edge in self._passed:
            a, b = edges[edge]
            start = starts[a] + lengths[edge]
            if start > starts[b] or before[b] < 0:
                starts[b], before[b] = start, edge
        return starts, before
