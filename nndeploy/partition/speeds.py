# SPDX-License-Identifier: Apache-2.0
"""How long a plan takes: from the cost table of the target's instruction set, by kind of operator, size and backend.

    seconds(plan) = sum over regions of (call * factor + crossing bytes / BYTES_PER_S)
                  + sum over nodes of (measured seconds of its kind at its estimate * part that is left of it if fused
                                       * factor)

`estimate` is `nndeploy.partition.cost`'s. An elementwise operator behind a convolution, a product or another
elementwise one that nothing else reads is computed together with it: the part of its time that remains was measured
too. Nodes that give a value a new name or shape are free. Factors are what terms come to within whole networks. Who is
predicted to be hopeless is not built, who is left is measured; where nothing can be measured the least prediction
decides.
"""

from collections.abc import Sequence

import onnx_ir as ir

from nndeploy.graph.nodes import bodies, node_name
from nndeploy.graph.regions import Region
from nndeploy.graph.submodels import region_inputs, region_outputs, values_between
from nndeploy.partition.cost import Costs
from nndeploy.partition.cost_table import CALL, table_for
from nndeploy.partition.kinds import CONVOLUTIONS, FOLLOWERS, FREE, PRODUCTS
from nndeploy.target.target import BYTES_PER_S

BEHIND_CONVOLUTION, BEHIND_PRODUCT, BEHIND_ELEMENTWISE = "convolution", "product", "elementwise"
BEHIND = "behind {head}"
"""The term of what is computed together with a convolution, a product or an elementwise operator."""
PREPARES = 1.25
"""A backend whose least node takes so many times longer where sizes are open prepares itself for them."""


def call_seconds(backend: str, costs: Costs) -> float:
    """Returns what a call of a backend costs, whatever it computes."""
    found = table_for(costs.level).of(backend)
    return found.seconds_of(CALL, found.call)


def prepares_for_sizes(regions: Sequence[Region], level: str) -> bool:
    """Returns whether some region is of a backend that prepares itself for each new size of its inputs."""
    found = [table_for(level).of(region.backend) for region in regions]
    return any(one.node_of_any_size > PREPARES * one.node for one in found)


def region_seconds(region: Region, backend: str, costs: Costs) -> float:
    """Returns how long a backend takes for the nodes of a region, the call apart."""
    found = table_for(costs.level).of(backend)
    return sum(found.seconds_of(term, seconds) for term, seconds in region_terms(region, backend, costs).items())


def region_terms(region: Region, backend: str, costs: Costs) -> dict[str, float]:
    """Returns the seconds of a region's nodes by term, as measured of single operators: without factors."""
    fused = table_for(costs.level).of(backend).fused
    head_of: dict[int, str] = {}
    terms: dict[str, float] = {}
    for node in region.nodes:
        head, term = _head(node, costs, head_of), costs.kind(node)
        seconds = node_seconds(node, backend, costs)
        if head and term in FOLLOWERS:
            seconds, term = seconds * fused.get(head, 1.0), BEHIND.format(head=head)
        if seconds:
            terms[term] = terms.get(term, 0.0) + seconds
    return terms


def node_seconds(node: ir.Node, backend: str, costs: Costs) -> float:
    """Returns how long a backend takes for a node by itself, as measured of single operators."""
    table, kind = table_for(costs.level), costs.kind(node)
    if kind == FREE:
        return 0.0
    backend_costs = table.of(backend)
    has_any_size = any(value.shape is None or not value.shape.is_static() for value in node.outputs)
    extra = max(0.0, backend_costs.node_of_any_size - backend_costs.node) if has_any_size else 0.0
    inside = backend_costs.node * sum(len(body) for body in bodies(node))
    return table.node_seconds(backend, kind, costs.seconds[node_name(node)]) + extra + inside


def _head(node: ir.Node, costs: Costs, head_of: dict[int, str]) -> str:
    """Returns behind what a node of a region is computed, "" for one that stands alone; keeps what it is itself."""
    kind = costs.kind(node)
    if kind in CONVOLUTIONS or kind in PRODUCTS:
        head_of[id(node)] = BEHIND_CONVOLUTION if kind in CONVOLUTIONS else BEHIND_PRODUCT
        return ""
    if kind not in FOLLOWERS:
        return ""
    behind = [
        head_of[id(producer)]
        for value in node.inputs
        if value is not None
        and (producer := value.producer()) is not None
        and id(producer) in head_of
        and len(value.uses()) == 1
    ]
    head_of[id(node)] = behind[0] if behind else BEHIND_ELEMENTWISE
    return behind[0] if behind else ""


def crossing_seconds(region: Region, between: set[int], costs: Costs) -> float:
    """Returns how long the values that enter and leave a region take to cross."""
    values = [*region_inputs(region), *region_outputs(region, between)]
    return sum(costs.value_bytes.get(value.name or "", 0) for value in values) / BYTES_PER_S


def chain_seconds(regions: Sequence[Region], graph: ir.Graph, costs: Costs) -> float:
    """Returns how long a call of the regions, one after the other, is predicted to take."""
    between = values_between(list(regions), graph)
    return sum(
        call_seconds(region.backend, costs)
        + region_seconds(region, region.backend, costs)
        + crossing_seconds(region, between, costs)
        for region in regions
    )
