# SPDX-License-Identifier: Apache-2.0
"""Groups neighbouring nodes of one backend into regions so that the graph between regions has no cycle.

Two steps. First levels: level(node) = max over its producers p of level(p) + (backend(p) != backend(node)). Along
every edge the level does not fall, and it rises where the backend changes, so the connected pieces of equal (backend,
level) form a graph without cycles. Then regions of one backend that touch are merged, in order, wherever no path
between them leads through a third region.

Where nodes have places, those of one region have one backend and one place.

A region waits for all that any of its nodes needs, so merging can make a branch wait for another. Where branches can
run at once (`Lanes`), pieces are also told apart by how often the backend changes behind a node, and two are merged
only if the whole then ends no later. These regions are taken if the whole is `LEAST_GAIN` faster with them.

Laws: every node is in exactly one region; regions stand in an order in which every value is produced before it is
read; merging never makes a cycle.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import onnx_ir as ir

from nndeploy.graph.lanes import Lanes, Work
from nndeploy.graph.nodes import is_constant, node_name, values_read

MOST_GROUPS = 32
"""Nobody looks whether the branches of graphs with more pieces can run at once: that takes long."""
LEAST_GAIN = 0.1
"""Part of the predicted time that branches apart must save: a prediction is not more exact."""
HANDING_ON_SECONDS = 100e-6
"""What a branch that runs beside another costs: a thread begins it, and its values are handed on."""


@dataclass(frozen=True, slots=True)
class Region:
    """Nodes of one backend, in the order of the graph; `place` is where they run, "" where nobody says."""

    backend: str
    nodes: tuple[ir.Node, ...]
    place: str = ""


class Owner(NamedTuple):
    """Who runs a node, and where."""

    backend: str
    place: str


def regions_of(
    graph: ir.Graph,
    backend_of: Mapping[str, str],
    place_of: Mapping[str, str] | None = None,
    lanes: Lanes | None = None,
) -> list[Region]:
    """Returns the regions of a topologically sorted graph, in an order in which they can run.

    `backend_of` maps every node's name to its backend, `place_of` to its place; `lanes` says what can run at once.
    """
    nodes = list(graph)
    producers = node_producers(nodes)
    names = [node_name(node) for node in nodes]
    owners = [Owner(backend_of[name], "" if place_of is None else place_of[name]) for name in names]
    if len(set(owners)) == 1:
        return [Region(owners[0].backend, tuple(nodes), owners[0].place)]  # the engine itself runs what is independent
    levels = _levels(producers, owners)
    merged = _merged(_GroupGraph(_connected_pieces(producers, owners, levels), producers), owners)
    if lanes is not None:
        merged = _apart(merged, nodes, producers, owners, levels, lanes)
    ordered = _in_running_order(list(merged.groups.values()), producers)
    found = [(owners[group[0]], tuple(nodes[i] for i in group)) for group in ordered]
    return [Region(owner.backend, inside, owner.place) for owner, inside in found]


def node_producers(nodes: Sequence[ir.Node]) -> list[list[int]]:
    """Returns for each node the indices of the nodes that produce what it reads, sorted."""
    index = {id(node): i for i, node in enumerate(nodes)}
    return [
        sorted({
            index[id(value.producer())]
            for value in values_read(node)
            if not is_constant(value) and value.producer() is not None
        })
        for node in nodes
    ]  # fmt: skip


def _levels(producers: Sequence[Sequence[int]], owners: Sequence[Owner]) -> list[int]:
    """Returns how often the owner changes before each node, at most along any way."""
    levels: list[int] = []
    for i, before in enumerate(producers):
        levels.append(max((levels[p] + (owners[p] != owners[i]) for p in before), default=0))
    return levels


def _changes_behind(producers: Sequence[Sequence[int]], owners: Sequence[Owner]) -> list[int]:
    """Returns how often the owner changes behind each node, at most along any way."""
    found = [0] * len(owners)
    for i in reversed(range(len(owners))):
        for p in producers[i]:
            found[p] = max(found[p], found[i] + (owners[p] != owners[i]))
    return found


def _connected_pieces(
    producers: Sequence[Sequence[int]], owners: Sequence[Owner], levels: Sequence[object]
) -> list[list[int]]:
    """Returns the nodes of one owner and level that touch each other."""
    parent = list(range(len(owners)))
    for i, before in enumerate(producers):
        for p in before:
            if (owners[p], levels[p]) == (owners[i], levels[i]):
                parent[_root(parent, i)] = _root(parent, p)
    pieces: dict[int, list[int]] = {}
    for i in range(len(owners)):
        pieces.setdefault(_root(parent, i), []).append(i)
    return list(pieces.values())


def _root(parent: list[int], i: int) -> int:
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


def _apart(
    merged: "_GroupGraph",
    nodes: Sequence[ir.Node],
    producers: Sequence[Sequence[int]],
    owners: Sequence[Owner],
    levels: Sequence[int],
    lanes: Lanes,
) -> "_GroupGraph":
    """Returns groups in which no branch waits for another, or those that are `merged` where this gains little."""
    both = list(zip(levels, _changes_behind(producers, owners), strict=True))
    graph = _GroupGraph(_connected_pieces(producers, owners, both), producers)
    if len(graph.groups) > MOST_GROUPS:
        return merged
    seconds = [lanes.seconds(node, owner.backend) for node, owner in zip(nodes, owners, strict=True)]

    def end_seconds(groups: _GroupGraph) -> float:
        works = dict[int, Work]()
        for number, group in groups.groups.items():
            backend, place = owners[group[0]]
            own = lanes.call_seconds(backend) + sum(seconds[i] for i in group)
            works[number] = Work(place or lanes.devices[backend], own)
        return lanes.end_seconds(works, groups.after)

    apart = _merged(graph, owners, end_seconds)
    return apart if end_seconds(apart) < (1 - LEAST_GAIN) * end_seconds(merged) else merged


def _merged(
    graph: "_GroupGraph", owners: Sequence[Owner], end_seconds: "Callable[[_GroupGraph], float] | None" = None
) -> "_GroupGraph":
    """Merges touching groups of one backend until no pair is left that can be merged without a cycle.

    With `end_seconds` a pair stays apart if the whole would end `HANDING_ON_SECONDS` later.
    """
    found = True
    while found:
        found = False
        latest = float("inf") if end_seconds is None else end_seconds(graph) + HANDING_ON_SECONDS
        for before, after in graph.edges():
            same = owners[graph.groups[before][0]] == owners[graph.groups[after][0]]
            if not same or graph.has_detour(before, after):
                continue
            if end_seconds is not None and end_seconds(graph.with_merged(before, after)) > latest:
                continue
            graph.merge(before, after)
            found = True
            break
    return graph


class _GroupGraph:
    """Groups of nodes and the edges between them; the sets of successors are kept as bits of one integer."""

    def __init__(self, groups: list[list[int]], producers: Sequence[Sequence[int]]) -> None:
        self.groups = dict(enumerate(groups))
        group_of = {node: g for g, group in self.groups.items() for node in group}
        self.after: dict[int, set[int]] = {g: set() for g in self.groups}
        for node, before in enumerate(producers):
            for p in before:
                if group_of[p] != group_of[node]:
                    self.after[group_of[p]].add(group_of[node])

    def with_merged(self, before: int, after: int) -> "_GroupGraph":
        found = _GroupGraph([], [])
        found.groups, found.after = dict(self.groups), {g: set(others) for g, others in self.after.items()}
        found.merge(before, after)
        return found

    def edges(self) -> list[tuple[int, int]]:
        return [(before, after) for before, successors in self.after.items() for after in sorted(successors)]

    def has_detour(self, before: int, after: int) -> bool:
        """Returns whether a path leads from `before` to `after` through a third group."""
        seen: set[int] = set()
        stack = [g for g in self.after[before] if g != after]
        while stack:
            g = stack.pop()
            if g == after:
                return True
            if g not in seen:
                seen.add(g)
                stack.extend(self.after[g])
        return False

    def merge(self, before: int, after: int) -> None:
        self.groups[before] = sorted(self.groups[before] + self.groups.pop(after))
        self.after[before] = (self.after[before] | self.after.pop(after)) - {before, after}
        for successors in self.after.values():
            if after in successors:
                successors.discard(after)
                successors.add(before)


def _in_running_order(groups: list[list[int]], producers: Sequence[Sequence[int]]) -> list[list[int]]:
    """Returns the groups sorted topologically; among those that could run, the one with the earliest node first."""
    group_of = {node: g for g, group in enumerate(groups) for node in group}
    needs = [{group_of[p] for node in group for p in producers[node]} - {g} for g, group in enumerate(groups)]
    waiting = sorted(range(len(groups)), key=lambda g: groups[g][0])
    done: set[int] = set()
    order: list[list[int]] = []
    while waiting:
        ready = next((g for g in waiting if needs[g] <= done), None)
        assert ready is not None, "the graph between regions has a cycle"
        waiting.remove(ready)
        done.add(ready)
        order.append(groups[ready])
    return order
