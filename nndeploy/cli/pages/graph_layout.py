# SPDX-License-Identifier: Apache-2.0
"""Places the nodes of a graph in layers, from top to bottom, for the page of `inspect --html`.

Layer = longest path from the sources; order inside a layer by the mean position of the neighbours, a few times up
and down; then each node as near to its neighbours as its place in the order allows. Edges over several layers run
through invisible nodes, so that they go around the others.

Source: K. Sugiyama, S. Tagawa, M. Toda, Methods for visual understanding of hierarchical system structures, 1981.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

NUM_SWEEPS = 8
MAX_INVISIBLE = 30_000
"""More invisible nodes than this are not made; the longest edges then run straight."""

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything stands: the centre of each node, and the points that each edge runs through, ends included."""

    nodes: tuple[Point, ...]
    routes: tuple[tuple[Point, ...], ...]
    width: float
    height: float


def layered_layout(
    widths: Sequence[float], edges: Sequence[tuple[int, int]], *, gap: float = 24.0, layer_height: float = 76.0
) -> Layout:
    """Returns the layout of nodes of the given widths; an edge leads from a node to one that stands later.

    Edges that lead back are left out of the order, and so are edges of a node to itself; their routes are straight.
    """
    forward = sorted({(a, b) for a, b in edges if a < b})
    layer_of = _layers(len(widths), forward)
    graph = _Layered(widths, layer_of, forward)
    _order(graph)
    _place(graph, gap)
    ys = [(layer + 0.5) * layer_height for layer in graph.layer_of]
    left = min((x - w / 2 for x, w in zip(graph.xs, graph.widths, strict=True)), default=0.0)
    xs = [x - left + gap for x in graph.xs]
    right = max((x + w / 2 for x, w in zip(xs, graph.widths, strict=True)), default=0.0)
    points = list(zip(xs, ys, strict=True))
    routes = tuple(tuple(points[i] for i in graph.chains.get(edge, edge)) for edge in edges)
    return Layout(tuple(points[: len(widths)]), routes, right + gap, layer_height * len(graph.layers))


def _layers(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Returns the layer of each node; a source without predecessors stands just above its first reader."""
    layer = [0] * count
    for a, b in sorted(edges, key=lambda edge: edge[0]):
        layer[b] = max(layer[b], layer[a] + 1)
    has_source = {b for _, b in edges}
    readers: dict[int, int] = {}
    for a, b in edges:
        readers[a] = min(readers.get(a, layer[b]), layer[b])
    return [readers[i] - 1 if i in readers and i not in has_source else layer[i] for i in range(count)]


class _Layered:
    """Nodes and invisible nodes in their layers, with edges between neighbouring layers only."""

    def __init__(self, widths: Sequence[float], layer_of: list[int], edges: Sequence[tuple[int, int]]) -> None:
        self.widths = list(widths)
        self.layer_of = list(layer_of)
        self.chains: dict[tuple[int, int], tuple[int, ...]] = {}
        self.above: list[list[int]] = [[] for _ in widths]
        self.below: list[list[int]] = [[] for _ in widths]
        for a, b in sorted(edges, key=lambda edge: layer_of[edge[1]] - layer_of[edge[0]]):
            self._link(a, b)
        self.layers: list[list[int]] = [[] for _ in range(max(self.layer_of, default=-1) + 1)]
        for node, layer in enumerate(self.layer_of):
            self.layers[layer].append(node)
        self.xs = [0.0] * len(self.widths)

    def _link(self, a: int, b: int) -> None:
        between = range(self.layer_of[a] + 1, self.layer_of[b])
        if len(self.widths) + len(between) > MAX_INVISIBLE:
            return
        chain = [a]
        for layer in between:
            chain.append(len(self.widths))
            self.widths.append(6.0)
            self.layer_of.append(layer)
            self.above.append([])
            self.below.append([])
        chain.append(b)
        for upper, lower in pairwise(chain):
            self.below[upper].append(lower)
            self.above[lower].append(upper)
        self.chains[a, b] = tuple(chain)


def _order(graph: _Layered) -> None:
    """Sorts each layer by the mean position of its neighbours in the layer before, down and up in turn."""
    rank = [0.0] * len(graph.widths)
    for layer in graph.layers:
        _rank(layer, rank)
    for sweep in range(NUM_SWEEPS):
        is_down = sweep % 2 == 0
        neighbours = graph.above if is_down else graph.below
        for layer in graph.layers if is_down else reversed(graph.layers):
            key = {node: _mean([rank[other] for other in neighbours[node]], rank[node]) for node in layer}
            layer.sort(key=key.__getitem__)
            _rank(layer, rank)


def _rank(layer: Sequence[int], rank: list[float]) -> None:
    for position, node in enumerate(layer):
        rank[node] = (position + 0.5) / len(layer)


def _mean(values: Sequence[float], default: float) -> float:
    return sum(values) / len(values) if values else default


def _place(graph: _Layered, gap: float) -> None:
    """Moves each node towards the mean of its neighbours, as far as order and widths allow."""
    for layer in graph.layers:
        at = 0.0
        for node in layer:
            graph.xs[node] = at + graph.widths[node] / 2
            at += graph.widths[node] + gap
        for node in layer:
            graph.xs[node] -= at / 2
    for sweep in range(NUM_SWEEPS):
        is_down = sweep % 2 == 0
        neighbours = graph.above if is_down else graph.below
        for layer in graph.layers if is_down else reversed(graph.layers):
            wanted = [_mean([graph.xs[other] for other in neighbours[node]], graph.xs[node]) for node in layer]
            for node, x in zip(layer, _spread(wanted, [graph.widths[node] for node in layer], gap), strict=True):
                graph.xs[node] = x


def _spread(wanted: Sequence[float], widths: Sequence[float], gap: float) -> list[float]:
    """Returns the places nearest to the wanted ones (least squares) that keep the order and do not overlap.

    With the widths to the left of a node taken off, this is isotonic regression: neighbours that would stand in the
    wrong order are pooled at their mean.
    """
    offsets = [0.0]
    for left, right in pairwise(widths):
        offsets.append(offsets[-1] + (left + right) / 2 + gap)
    pools: list[tuple[float, int]] = []  # the sum and number of the pooled
    for want, offset in zip(wanted, offsets, strict=False):
        total, count = want - offset, 1
        while pools and pools[-1][0] / pools[-1][1] >= total / count:
            before, number = pools.pop()
            total, count = total + before, count + number
        pools.append((total, count))
    means = [total / count for total, count in pools for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=False)]
