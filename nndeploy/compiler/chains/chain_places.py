# SPDX-License-Identifier: Apache-2.0
"""A chain that spans places: each node gets one, and regions are cut where the place changes.

    nodes by backend, costs, places -> spread over these -> backends that fit -> regions by backend and place

A node that no backend for GPUs takes stays on the CPU among the nodes of a GPU; one that is given to the CPU goes to
the first backend of the CPU that takes it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from nndeploy.bundle.manifest import PlacedSubmodel, Placing
from nndeploy.errors import UnavailableError
from nndeploy.graph.lanes import Lanes
from nndeploy.graph.nodes import is_constant, node_name, values_read
from nndeploy.graph.regions import Region, regions_of
from nndeploy.graph.submodels import region_inputs, region_outputs, values_between
from nndeploy.partition.cost import Costs
from nndeploy.partition.memory_needs import memory_needs, needs_together
from nndeploy.partition.placement import Placement
from nndeploy.plugin.interface import Backend
from nndeploy.target.place_limits import PlaceLimit, is_gpu
from nndeploy.target.spread import NoRoom, SpreadStep, spread


@dataclass(frozen=True, slots=True)
class Placed:
    """The regions of a chain with their places, and who runs which node."""

    regions: tuple[Region, ...]
    backend_of: Mapping[str, str]


def placed(
    placement: Placement,
    backend_of: Mapping[str, str],
    costs: Costs,
    largest: Costs,
    places: Sequence[PlaceLimit],
    order: Sequence[Backend],
    lanes: Lanes | None,
    *,
    for_rate: bool,
) -> Placed:
    """Returns the chain over `places`: what memory it needs is counted at the sizes of `largest`, time at the others.

    `lanes` says what can run at once. With `for_rate` no place takes longer than it must.

    Raises:
        UnavailableError: the places are too small.
    """
    graph = placement.model.graph
    on_cpu = [backend.name for backend in order if backend.device_kind != "cuda"]
    cpu_takers = {name: next((one for one in on_cpu if placement.answers[one][name].ok), "") for name in backend_of}
    needs = memory_needs(graph, largest)
    steps = [
        SpreadStep(
            f"node {name!r:.80}",
            tuple(value.name or "" for value in values_read(node) if not is_constant(value)),
            tuple(value.name for value in node.outputs if value.name),
            costs.seconds[name],
            needs[name].weights,
            needs[name].peak_bytes,
            needs_cpu=backend_of[name] in on_cpu,
            needs_gpu=not cpu_takers[name],
        )
        for node in graph
        for name in [node_name(node)]
    ]
    outputs = [value.name or "" for value in graph.outputs]
    found = spread(steps, costs.value_bytes, outputs, places, for_rate=for_rate)
    if isinstance(found, NoRoom):
        hint = "give --place (or [[places]] in the target file) more memory or more places"
        raise UnavailableError(found.reason, hint=hint)
    place_of = {node_name(node): place for node, place in zip(graph, found, strict=True)}
    backends = {
        name: backend if is_gpu(place_of[name]) or backend in on_cpu else cpu_takers[name]
        for name, backend in backend_of.items()
    }
    return Placed(tuple(regions_of(graph, backends, place_of, lanes)), backends)


def placing_of(graph: ir.Graph, regions: Sequence[Region], costs: Costs, largest: Costs, ids: Sequence[str]) -> Placing:
    """Returns what the manifest says of the places of a chain with submodels called `ids`."""
    needs = memory_needs(graph, largest)
    between = values_between(list(regions), graph)
    submodels, value_bytes = dict[str, PlacedSubmodel](), dict[str, int]()
    for name, region in zip(ids, regions, strict=True):
        own = needs_together(needs[node_name(node)] for node in region.nodes)
        submodels[name] = PlacedSubmodel(region.place, own.weight_bytes, own.peak_bytes)
        for value in (*region_inputs(region), *region_outputs(region, between)):
            value_bytes[value.name or ""] = costs.value_bytes.get(value.name or "", 0)
    return Placing(submodels, value_bytes)
