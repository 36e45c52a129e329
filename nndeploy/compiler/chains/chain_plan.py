# SPDX-License-Identifier: Apache-2.0
"""Who runs what in one chain: backends are asked, nodes are placed, and the regions become models of their own.

    model, backends in order, pins -> placement -> islands merged -> over places, if any -> `ChainPlan` -> `Piece`s

Laws: every node is in exactly one piece; a backend is asked once of the same graph.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import onnx_ir as ir

from nndeploy.bundle.manifest import Placing
from nndeploy.compiler.chains.chain_places import placed, placing_of
from nndeploy.compiler.chains.chain_setting import Setting, options_for
from nndeploy.graph.nodes import node_name
from nndeploy.graph.regions import Region
from nndeploy.graph.submodels import region_inputs, region_outputs, submodel_of, values_between
from nndeploy.partition.at_once import lanes_of
from nndeploy.partition.cost import Costs, estimate_costs
from nndeploy.partition.derived_ranges import shapes_at
from nndeploy.partition.islands import merge_islands
from nndeploy.partition.placement import Banned, Placement, place
from nndeploy.plugin.interface import LAST_RESORT_TIER, Backend, Support
from nndeploy.target.spanned_places import spanned_places


@dataclass(frozen=True, slots=True)
class ChainPlan:
    """Who runs what: the placement, the regions in running order, and what the nodes cost.

    `largest` is what they cost at the largest sizes of the inputs, for a chain that spans places; else None.
    """

    prefix: str
    placement: Placement
    regions: tuple[Region, ...]
    backend_of: Mapping[str, str]
    moved: Mapping[str, str]
    costs: Costs
    largest: Costs | None = None

    @property
    def model(self) -> ir.Model:
        """The model after the backends' transforms."""
        return self.placement.model

    @property
    def placing(self) -> Placing | None:
        """Where the submodels run and what they need there, None for a chain that runs in one place."""
        if self.largest is None:
            return None
        ids = [self.submodel_id(i) for i in range(len(self.regions))]
        return placing_of(self.model.graph, self.regions, self.costs, self.largest, ids)

    def why_not(self, node: str, backend: str) -> str:
        """Returns why a backend would not take a node, "" where it would, or where it was not asked."""
        if backend == self.placement.backend_of[node]:
            return self.moved.get(node, "")
        answer = self.placement.answers.get(backend, {}).get(node)
        return answer.reason if answer is not None else ""

    def submodel_id(self, index: int) -> str:
        """Returns the id of the submodel made of a region."""
        return f"{self.prefix}s{index}"


@dataclass(frozen=True, slots=True)
class Piece:
    """One region as a model of its own; `place` is where it runs, "" where nobody says."""

    id: str
    backend: str
    nodes: tuple[str, ...]
    model: ir.Model
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    place: str = ""


def plan_for(
    setting: Setting,
    model: ir.Model,
    order: Sequence[Backend],
    pins: Sequence[tuple[str, str]] = (),
    banned: Banned | None = None,
) -> ChainPlan:
    """Returns who runs which node of `model`, asked of the backends in `order`."""
    by_name = {backend.name: backend for backend in order}
    fingerprint = cache(_fingerprint)  # of a model that all are asked about

    def ask(name: str, asked: ir.Model) -> list[Support]:
        key = (name, setting.target, fingerprint(asked))
        if key not in setting.answers:
            setting.events("partition", f"asking {name}")
            options = options_for(setting, asked)
            setting.answers[key] = setting.workers.supports(name, asked, setting.target, options)
        return setting.answers[key]

    def costs_of(asked: ir.Model) -> Costs:
        return estimate_costs(asked, setting.shapes_of(asked), setting.target.level)

    placement = place(
        model,
        list(by_name),
        ask,
        transforms=lambda name: by_name[name].transforms(setting.target),
        seconds=lambda asked: costs_of(asked).seconds,
        pins=pins,
        banned=banned,
        num_at_once=setting.num_at_once,
    )
    costs = costs_of(placement.model)
    last_resorts = [backend.name for backend in order if backend.tier == LAST_RESORT_TIER]
    places = spanned_places(setting.target)
    lanes = None  # of many calls at once each fills the time that others leave
    if not setting.for_rate:
        threads = setting.build_options.threads
        lanes = lanes_of(order, costs, setting.target.num_cores, threads, has_places=len(places) > 1)
    regions, backend_of, moved = merge_islands(placement, costs, last_resorts, lanes)
    if not places:
        return ChainPlan(setting.prefix, placement, tuple(regions), backend_of, moved, costs)
    shapes = shapes_at(placement.model, setting.build_options.ranges, "max")
    largest = costs if shapes is None else estimate_costs(placement.model, shapes)
    over = placed(placement, backend_of, costs, largest, places, order, lanes, for_rate=setting.for_rate)
    return ChainPlan(setting.prefix, placement, over.regions, over.backend_of, moved, costs, largest)


def pieces_of(plan: ChainPlan) -> list[Piece]:
    """Returns the regions of a plan as models, in running order."""
    between = values_between(list(plan.regions), plan.model.graph)
    return [
        Piece(
            id=plan.submodel_id(i),
            backend=region.backend,
            nodes=tuple(node_name(node) for node in region.nodes),
            model=submodel_of(plan.model, region, between),
            inputs=tuple(value.name or "" for value in region_inputs(region)),
            outputs=tuple(value.name or "" for value in region_outputs(region, between)),
            place=region.place,
        )
        for i, region in enumerate(plan.regions)
    ]


MAX_BYTES_LOOKED_AT = 512
"""Largest constant that is looked at: those that decide what a backend takes (shapes, axes, scales) are smaller."""


def _fingerprint(model: ir.Model) -> str:
    """Returns what tells graphs of one compile apart: nodes with their attributes, and the types of what enters."""
    digest = hashlib.sha256()
    graph = model.graph
    for node in graph:
        digest.update(ir.serde.serialize_node(node).SerializeToString(deterministic=True))
    for value in (*graph.inputs, *graph.initializers.values(), *graph.outputs):
        digest.update(f"{value.name}:{value.type}:{value.shape};".encode())
        if value.const_value is not None and _is_small(value.const_value):
            digest.update(_content(value.const_value))
    return digest.hexdigest()


def _is_small(tensor: ir.TensorProtocol) -> bool:
    return tensor.dtype == ir.DataType.STRING or tensor.nbytes <= MAX_BYTES_LOOKED_AT


def _content(tensor: ir.TensorProtocol) -> bytes:
    if tensor.dtype == ir.DataType.STRING:  # texts have no bytes in one piece
        return bytes(ir.serde.serialize_tensor(tensor).SerializeToString(deterministic=True))
    return tensor.tobytes()
