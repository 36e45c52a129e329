# SPDX-License-Identifier: Apache-2.0
"""Islands: a region so small that entering and leaving it costs more than its backend can gain.

    estimated seconds of the region < SECONDS_PER_CROSSING + bytes that cross its border / BYTES_PER_S
      -> its nodes move to the neighbour that takes them all and has the highest priority

The smallest region moves first; regions are formed anew after each move, so that the neighbours on both sides grow
together. Pinned nodes never move. Every move takes a node to another backend for good, so this ends.
"""

from collections.abc import Mapping

from nndeploy.pacing.estimate import BYTES_PER_S
from nndeploy.partition.cost import SECONDS_PER_CROSSING, Costs
from nndeploy.partition.extract import region_inputs, region_outputs, values_between
from nndeploy.partition.graph import is_constant, node_name
from nndeploy.partition.placement import Placement
from nndeploy.partition.regions import Region, regions_of


def merge_islands(placement: Placement, costs: Costs) -> tuple[list[Region], dict[str, str], dict[str, str]]:
    """Returns the regions, node -> backend, and for each node that moved the reason."""
    backend_of = dict(placement.backend_of)
    moved: dict[str, str] = {}
    while True:
        regions = regions_of(placement.model.graph, backend_of)
        move = _next_move(regions, placement, backend_of, costs, moved)
        if move is None:
            return regions, backend_of, moved
        region, backend = move
        names = [node_name(node) for node in region.nodes]
        backend_of.update(dict.fromkeys(names, backend))
        share = sum(costs.share(name) for name in names)
        reason = f"{len(names)} nodes with {share:.1%} of the compute are not worth crossing to {region.backend}"
        moved.update(dict.fromkeys(names, reason))


def _next_move(
    regions: list[Region], placement: Placement, backend_of: Mapping[str, str], costs: Costs, moved: Mapping[str, str]
) -> tuple[Region, str] | None:
    if len(regions) == 1:
        return None
    between = values_between(regions, placement.model.graph)
    for region in sorted(regions, key=lambda r: _seconds(r, costs)):
        names = [node_name(node) for node in region.nodes]
        if placement.pinned.intersection(names) or moved.keys() & set(names):
            continue
        if _seconds(region, costs) >= _crossing_seconds(region, between, costs):
            continue
        neighbours = _neighbour_backends(region, backend_of)
        for backend in placement.answers:
            if backend in neighbours and placement.takes_all(backend, names):
                return region, backend
    return None


def _seconds(region: Region, costs: Costs) -> float:
    return sum(costs.seconds[node_name(node)] for node in region.nodes)


def _crossing_seconds(region: Region, between: set[int], costs: Costs) -> float:
    values = [*region_inputs(region), *region_outputs(region, between)]
    return SECONDS_PER_CROSSING + sum(costs.value_bytes.get(value.name or "", 0) for value in values) / BYTES_PER_S


def _neighbour_backends(region: Region, backend_of: Mapping[str, str]) -> set[str]:
    inside = {id(node) for node in region.nodes}
    around = [value.producer() for value in region_inputs(region) if not is_constant(value)]
    around += [user for node in region.nodes for output in node.outputs for user, _ in output.uses()]
    return {
        backend_of[node.name]
        for node in around
        if node is not None and id(node) not in inside and node.name and node.name in backend_of
    } - {region.backend}
