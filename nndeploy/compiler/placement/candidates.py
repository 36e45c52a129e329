# SPDX-License-Identifier: Apache-2.0
"""The ways in which a model may be placed that are worth a thought, as recipes: plain data that make a plan again.

First the split by the order of tiers, then each backend that takes much of the compute before all others, and what it
leaves once for each library: one that prepares itself for every new size is slow where sizes depend on data. Beside
them an inference library with the whole graph as its exporter wrote it, which the fusions of such a library know best.
Laws: the same model, backends and pins give the same recipes; every recipe keeps the user's pins.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import onnx_ir as ir

from nndeploy.compiler.chains.chain_plan import ChainPlan, plan_for
from nndeploy.compiler.chains.chain_setting import Setting
from nndeploy.errors import ModelError, UsageError
from nndeploy.graph.nodes import node_name
from nndeploy.graph.regions import Region
from nndeploy.partition.cost import estimate_costs
from nndeploy.partition.speeds import chain_seconds
from nndeploy.plugin.interface import LAST_RESORT_TIER, OWN_KERNELS_TIER, TAKEN, Backend

Pins = tuple[tuple[str, str], ...]
"""(glob of node names, backend)."""

OPTIMISED, EXPORTED = "optimised", "exported"
WHOLE_MODEL_TIERS = (1, 4)
"""Tiers of backends that have fusions of their own for whole models."""
MIN_SHARE = 0.1
"""Least share of the compute: who takes less cannot make the whole much faster by being asked first."""
MIN_SHARE_OF_COMPILED = 0.5
"""A backend that is compiled for each model is only put first where it has most of the compute."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What makes a plan: a graph by its name in `Graphs`, backends in order, pins; `name` is for people.

    `as_taken` are backends whose own rewrites are left out.
    """

    name: str
    graph: str
    order: tuple[str, ...]
    pins: Pins = ()
    as_taken: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Planned:
    """A recipe's plan, and the seconds that a call of it is predicted to take."""

    recipe: Recipe
    plan: ChainPlan
    seconds: float

    @property
    def is_whole(self) -> bool:
        """Whether one backend has the whole model."""
        return len(self.plan.regions) == 1

    @property
    def name(self) -> str:
        """What to call it: the backend that has the whole model, or what the recipe is called."""
        left_out = "".join(f", without rewrites of {backend}" for backend in self.recipe.as_taken)
        if not self.is_whole:
            return self.recipe.name + left_out
        return self.plan.regions[0].backend + (", as exported" if self.recipe.graph == EXPORTED else "") + left_out


Graphs = Mapping[str, ir.Model]
"""`OPTIMISED`, and `EXPORTED` where that is another."""


def is_alone(recipe: Recipe) -> bool:
    """Returns whether a recipe is of one engine with the whole graph, or no candidate at all."""
    return recipe.graph == EXPORTED


def asked(recipe: Recipe) -> tuple[str, ...]:
    """Returns who is asked about the graph of a recipe before it is chosen."""
    return recipe.order[:1] if is_alone(recipe) else recipe.order


def is_compiled(backend: Backend) -> bool:
    """Returns whether a backend compiles kernels for each model, which takes long."""
    return backend.tier == OWN_KERNELS_TIER and backend.device_kind != "cpu"


def by_priority(order: Sequence[Backend], pins: Pins) -> Recipe:
    """Returns the recipe of the split by the order of tiers."""
    return Recipe("priority", OPTIMISED, tuple(backend.name for backend in order), pins)


def exported_alone(graphs: Graphs, engines: Sequence[Backend], order: Sequence[Backend], pins: Pins) -> list[Recipe]:
    """Returns the recipes of inference libraries among `engines` with the whole graph as it was exported."""
    if EXPORTED not in graphs or pins:
        return []
    return [
        Recipe(f"{backend.name} alone, as exported", EXPORTED, _put_first(backend, order))
        for backend in engines
        if backend.tier in WHOLE_MODEL_TIERS
    ]


def refusing_exported(graphs: Graphs, plans: Sequence[Planned]) -> set[str]:
    """Returns the backends that refused a node of `plans` which the exporter wrote, so that they refuse its graph.

    To ask them would take long: who refuses a graph is asked about each of its nodes.
    """
    kinds = {node_name(node): node.op_type for node in graphs[EXPORTED].graph} if EXPORTED in graphs else {}
    return {
        backend
        for placement in (plan.plan.placement for plan in plans if plan.recipe.graph == OPTIMISED)
        for node in placement.model.graph
        for backend, answers in placement.answers.items()
        if kinds.get(node_name(node)) == node.op_type and not answers.get(node_name(node), TAKEN).ok
    }


def alone_by_prediction(setting: Setting, graphs: Graphs, order: Sequence[Backend]) -> list[tuple[Recipe, float]]:
    """Returns for each backend but last resorts the recipe of the whole optimised graph on it, a library behind it.

    With the milliseconds that are predicted if it takes every node, the least first. Nobody is asked.
    """
    model, able = graphs[OPTIMISED], [backend for backend in order if backend.tier < LAST_RESORT_TIER]
    costs = estimate_costs(model, setting.shapes_of(model), setting.target.level)
    found = []
    for backend in able:
        behind = (other.name for other in able if other.tier == WHOLE_MODEL_TIERS[-1] and other is not backend)
        seconds = chain_seconds([Region(backend.name, tuple(model.graph))], model.graph, costs)
        recipe = Recipe(f"{backend.name} alone", OPTIMISED, (backend.name, *behind))
        found.append((recipe, round(seconds * 1e3, 4)))
    return sorted(found, key=lambda one: one[1])


def splits_of(first: ChainPlan, order: Sequence[Backend], pins: Pins) -> list[Recipe]:
    """Returns the recipes for the optimised graph beside the split by priority, whose plan is `first`."""
    found = []
    for backend in order[1:]:
        least = MIN_SHARE_OF_COMPILED if is_compiled(backend) else MIN_SHARE
        if backend.tier < LAST_RESORT_TIER and _share_taken(first, backend.name) >= least:
            found.append(Recipe(f"{backend.name} first", OPTIMISED, _put_first(backend, order), pins))
            if not first.placement.takes_all(backend.name, list(first.backend_of)):
                found += _with_the_rest_on(backend, order, pins)
    return found


def _put_first(backend: Backend, order: Sequence[Backend]) -> tuple[str, ...]:
    return (backend.name, *(other.name for other in order if other is not backend))


def _with_the_rest_on(backend: Backend, order: Sequence[Backend], pins: Pins) -> list[Recipe]:
    """Returns the recipes in which what `backend` leaves goes to another library than the first of `order`."""
    rest = [other for other in order if other is not backend]
    libraries = [other for other in rest if other.tier in WHOLE_MODEL_TIERS]
    return [
        Recipe(f"{backend.name}, then {other.name}", OPTIMISED, (backend.name, *_put_first(other, rest)), pins)
        for other in libraries[1:]
    ]


def variations(best: Planned, order: Sequence[Backend], limit: int) -> list[Recipe]:
    """Returns `best` with one of its heaviest regions given to another backend that takes it, but to no last resort."""
    others = [backend.name for backend in order if backend.tier < LAST_RESORT_TIER]
    plan, placement = best.plan, best.plan.placement
    if len(plan.regions) < 2:
        return []
    found = []
    seconds = [sum(plan.costs.seconds[node.name or ""] for node in region.nodes) for region in plan.regions]
    heaviest = sorted(range(len(plan.regions)), key=lambda i: -seconds[i])
    for i in heaviest[:limit]:
        names = [node.name or "" for node in plan.regions[i].nodes]
        if placement.pinned.intersection(names):
            continue
        for backend in (name for name in placement.answers if name in others):
            if backend == plan.regions[i].backend or not placement.takes_all(backend, names):
                continue
            pins = tuple((literal(node), other) for node, other in plan.backend_of.items())
            pins += tuple((literal(node), backend) for node in names)
            name = f"{plan.submodel_id(i)} on {backend}"
            found.append(replace(best.recipe, name=name, order=tuple(placement.answers), pins=pins))
    return found


def planned(setting: Setting, graphs: Graphs, recipe: Recipe, backend: Callable[[str], Backend]) -> Planned:
    """Returns a recipe's plan.

    Raises:
        ModelError: a node has no backend.
        UsageError: a pin does not fit.
    """
    order = [backend(name) for name in asked(recipe)]
    return as_settled(recipe, plan_for(setting, graphs[recipe.graph], order, recipe.pins))


def as_settled(recipe: Recipe, plan: ChainPlan) -> Planned:
    """Returns what a recipe became, with the seconds that it is predicted to take."""
    return Planned(recipe, plan, chain_seconds(plan.regions, plan.model.graph, plan.costs))


def plans_of(
    setting: Setting, graphs: Graphs, recipes: Sequence[Recipe], backend: Callable[[str], Backend]
) -> list[Planned]:
    """Returns the plans of those recipes that have one; splits are of the optimised graph."""
    found = []
    for recipe in recipes:
        try:
            plan = planned(setting, graphs, recipe, backend)
        except (ModelError, UsageError):
            continue  # no candidate: nobody takes what it leaves, or its transforms leave nothing to pin
        if plan.is_whole or not is_alone(recipe):
            found.append(plan)
    return found


def is_same(one: Planned, other: Planned) -> bool:
    """Returns whether two plans place the same graph alike, and rewrite alike."""
    kept = one.recipe.graph == other.recipe.graph and one.recipe.as_taken == other.recipe.as_taken
    return kept and one.plan.backend_of == other.plan.backend_of


def literal(name: str) -> str:
    """Returns a glob that matches exactly `name`."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)


def share_placed(plan: ChainPlan, backend: str) -> float:
    """Returns the share of the compute that a backend has in a plan."""
    return sum(plan.costs.share(node) for node, has_it in plan.backend_of.items() if has_it == backend)


def _share_taken(plan: ChainPlan, backend: str) -> float:
    return sum(plan.costs.share(node) for node, answer in plan.placement.answers[backend].items() if answer.ok)
