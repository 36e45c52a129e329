# SPDX-License-Identifier: Apache-2.0
"""Islands: a region so small that entering and leaving it costs more than it computes, and than its backend gains.

    border = call of its backend + call of the neighbour, which it cuts in two + bytes that cross / BYTES_PER_S
    seconds on its backend < border  and  seconds on the neighbour < seconds on its backend + border
      -> its nodes move to the neighbour that takes them all and is predicted to be the fastest

Seconds are those of `nndeploy.partition.speeds`: by backend and kind of operator. The smallest region moves first;
regions are formed anew after each move, so that the neighbours on both sides grow together. Pinned nodes never move,
and nothing moves to the last resort (`avoided`), which takes only what nobody else takes. Every move takes a node to
another backend for good, so this ends.
"""

from collections.abc import Collection, Mapping

from nndeploy.graph.lanes import Lanes
from nndeploy.graph.nodes import is_constant, node_name
from nndeploy.graph.regions import Region, regions_of
from nndeploy.graph.submodels import region_inputs, values_between
from nndeploy.partition.cost import Costs
from nndeploy.partition.placement import Placement
from nndeploy.partition.speeds import call_seconds, crossing_seconds, region_seconds


def merge_islands(
    placement: Placement, costs: Costs, avoided: Collection[str] = (), lanes: Lanes | None = None
) -> tuple[list[Region], dict[str, str], dict[str, str]]:
    """Returns the regions, node -> backend, and for each node that moved the reason; nothing moves to the `avoided`.

    `lanes` says what can run at once.
    """
    backend_of = dict(placement.backend_of)
    moved: dict[str, str] = {}
    while True:
        regions = regions_of(placement.model.graph, backend_of, lanes=lanes)
        move = _next_move(regions, placement, backend_of, costs, moved, avoided)
        if move is None:
            return regions, backend_of, moved
        region, backend = move
        names = [node_name(node) for node in region.nodes]
        backend_of.update(dict.fromkeys(names, backend))
        share = sum(costs.share(name) for name in names)
        reason = f"{len(names)} nodes with {share:.1%} of the compute are not worth crossing to {region.backend}"
        moved.update(dict.fromkeys(names, reason))


def _next_move(
    regions: list[Region],
    placement: Placement,
    backend_of: Mapping[str, str],
    costs: Costs,
    moved: Mapping[str, str],
    avoided: Collection[str],
) -> tuple[Region, str] | None:
    if len(regions) == 1:
        return None
    between = values_between(regions, placement.model.graph)
    for region in sorted(regions, key=lambda r: _seconds(r, costs)):
        names = [node_name(node) for node in region.nodes]
        if placement.pinned.intersection(names) or moved.keys() & set(names):
            continue
        neighbours = _neighbour_backends(region, backend_of) - set(avoided)
        takers = [b for b in placement.answers if b in neighbours and placement.takes_all(b, names)]
        if not takers:
            continue
        best = min(takers, key=lambda backend: region_seconds(region, backend, costs))
        border = (
            call_seconds(region.backend, costs) + call_seconds(best, costs) + crossing_seconds(region, between, costs)
        )
        own = region_seconds(region, region.backend, costs)
        if own < border and region_seconds(region, best, costs) < own + border:
            return region, best
    return None


def _seconds(region: Region, costs: Costs) -> float:
    return sum(costs.seconds[node_name(node)] for node in region.nodes)


def _neighbour_backends(region: Region, backend_of: Mapping[str, str]) -> set[str]:
    inside = {id(node) for node in region.nodes}
    around = [value.producer() for value in region_inputs(region) if not is_constant(value)]
    around += [user for node in region.nodes for output in node.outputs for user, _ in output.uses()]
    return {
        backend_of[node.name]
        for node in around
        if node is not None and id(node) not in inside and node.name and node.name in backend_of
    } - {region.backend}
