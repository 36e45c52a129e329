# SPDX-License-Identifier: Apache-2.0
"""Which placement a bundle gets: candidates are predicted, the hopeless left out, the others built and raced.

    recipes (candidates.py) -> plans -> predicted -> built and checked -> raced as the bundles they would be, those in
      which backends rewrote what they take also without that
      -> the split by the order of tiers, unless another is `MIN_GAIN` faster or an engine alone beats it at all
      -> variations of the best split, and engines that are near the best with the graph as it was exported, raced
         against the best
      -> rewrites of backends are left out of the chosen where it is faster without

A candidate is measured as the bundle it would be, through the runtime: calls of submodels, copies and conversions of
layouts at their borders included. With ranges of sizes it is measured at several shapes, and the geometric mean counts:
no shape weighs more because it is larger. How long is measured depends on how long a call takes. Where nothing can be
measured (no inputs run, or the target is another machine) the prediction decides by the same rule.

The whole model on each engine that comes near is among the candidates, so the result is never slower than the best of
them but for noise.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TypeAlias

from nndeploy.bundle.report import Candidate
from nndeploy.compiler.chains.built_chain import Settled
from nndeploy.compiler.chains.chain_setting import Setting
from nndeploy.compiler.chains.lower import Memo, settle
from nndeploy.compiler.placement.candidates import (
    WHOLE_MODEL_TIERS,
    Graphs,
    Pins,
    Planned,
    Recipe,
    alone_by_prediction,
    as_settled,
    asked,
    by_priority,
    exported_alone,
    is_alone,
    is_compiled,
    is_same,
    planned,
    plans_of,
    refusing_exported,
    splits_of,
    variations,
)
from nndeploy.compiler.placement.race import Race, Trial, raced_trials
from nndeploy.errors import ModelError, UsageError
from nndeploy.partition.speeds import prepares_for_sizes
from nndeploy.plugin.interface import Backend
from nndeploy.values.types import Value, shapes_text

MIN_GAIN = 0.10
"""Another placement must be so much faster than the split by the order of tiers, so that two builds decide alike."""
ENGINE_GAIN = 0.03
"""An engine that has the whole model alone needs only this: nobody is to be slower with us than without."""
MARGIN = 0.03
"""A chain of several submodels must win by this over a single one, and who stands later over who stands before."""
EXPORTED_GAIN = 1.3
"""Who takes more times the best with the optimised graph is not tried with the one that was exported.

Passes cost an engine 9% at most (ONNX Runtime and OpenVINO on the real models, 2026-11-29).
"""
NEW_SIZES = 0.05
"""What a backend that prepares itself for each new size must win by where sizes vary, for a race repeats its few."""
PRUNED = 2.0
"""Times the least prediction: who is predicted slower is not built."""
PRUNED_COMPILED = 1.1
"""The same for those that are compiled for each model, which takes long."""
SMALL_SECONDS = 100e-6
"""A call of this length is not worth a compiler."""
REWRITES_GAIN = 0.01
"""Rewrites of a backend are left out where the same without them is faster by this, and not by noise alone."""
MAX_REGIONS_TRIED = 4
MAX_SHAPES = 8

CALLS_MEASURED = 30
LEAST_SECONDS = 0.02
MOST_SECONDS = 1.0
"""Each candidate and shape."""


Graph: TypeAlias = tuple[str, tuple[str, ...]]
"""A graph by its name, and the backends whose own rewrites are left out of it."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The placement that was chosen, built; how it is made again; and the table of all that were thought of.

    `built` is what was built of the same graph, for fallbacks.
    """

    settled: Settled
    recipe: Recipe
    candidates: tuple[Candidate, ...] = ()
    measured_shapes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    built: Memo = field(default_factory=dict)


def chosen_by_priority(setting: Setting, graphs: Graphs, order: Sequence[Backend], pins: Pins) -> Chosen:
    """Returns the split by the order of tiers.

    Raises:
        ModelError: some node has no backend left.
    """
    recipe = by_priority(order, pins)
    return Chosen(settle(setting, graphs[recipe.graph], order, pins), recipe)


def chosen_by_prediction(setting: Setting, graphs: Graphs, order: Sequence[Backend], pins: Pins) -> Chosen:
    """Returns the first plan that can be built, by the time that is predicted for it; nothing is measured.

    Without pins backends are asked one after the other, the fastest with the whole model first: who takes all of it
    ends the questions, since each costs what opening the model in a library does.

    Raises:
        ModelError: some node has no backend left.
    """
    alone = [] if pins else alone_by_prediction(setting, graphs, order)
    for i, (recipe, _) in enumerate(alone):
        plans = [plan for plan in plans_of(setting, graphs, [recipe], _by_name(order)) if plan.is_whole]
        if chosen := _first_built(setting, graphs, order, plans):
            rest = [Candidate(one.order[0], None, False, (), ms) for one, ms in alone[:i] + alone[i + 1 :]]
            return replace(chosen, candidates=(*chosen.candidates, *rest))
    plans = sorted(_plans(setting, graphs, order, pins), key=lambda plan: plan.seconds)
    return _first_built(setting, graphs, order, plans) or chosen_by_priority(setting, graphs, order, pins)  # says why


def _first_built(setting: Setting, graphs: Graphs, order: Sequence[Backend], plans: Sequence[Planned]) -> Chosen | None:
    for i, plan in enumerate(plans):
        memos: dict[Graph, Memo] = {}
        if trials := _built(setting, graphs, order, [plan], memos):
            table = _table(trials, 0, [*plans[:i], *plans[i + 1 :]])
            return Chosen(trials[0].settled, plan.recipe, table, built=memos[_graph(plan.recipe)])
    return None


def chosen_again(
    setting: Setting, graphs: Graphs, order: Sequence[Backend], recipe: Recipe, memo: Memo | None = None
) -> Settled:
    """Returns the placement of a recipe that was chosen before; `memo` is what was built of its graph until now.

    Raises:
        ModelError: some node has no backend left.
    """
    builders = [_by_name(order)(name) for name in recipe.order]
    return settle(_for(setting, recipe), graphs[recipe.graph], builders, recipe.pins, memo=memo)


def planned_best(
    setting: Setting, graphs: Graphs, order: Sequence[Backend], pins: Pins
) -> tuple[Planned, list[Planned]]:
    """Returns the plan that the prediction prefers, and all that were thought of; nothing is built.

    Raises:
        ModelError: some node has no backend.
    """
    plans = _plans(setting, graphs, order, pins)
    tiers = {backend.name: backend.tier for backend in order}
    return plans[_decided(plans, [plan.seconds for plan in plans], tiers)], plans


def fastest(setting: Setting, graphs: Graphs, order: Sequence[Backend], pins: Pins, race: Race) -> Chosen:
    """Returns the placement that is to be taken, by `MIN_GAIN` and `ENGINE_GAIN`; all candidates keep `pins`.

    Raises:
        ModelError: some node has no backend left in every candidate.
    """
    plans = _plans(setting, graphs, order, pins)
    tiers = {backend.name: backend.tier for backend in order}
    least = min(plan.seconds for plan in plans)
    by_name = _by_name(order)
    pruned = [plan for plan in plans if plan.seconds > _limit(plan, by_name, least) * least]
    memos: dict[Graph, Memo] = {}
    trials = _built(setting, graphs, order, [plan for plan in plans if plan not in pruned], memos)
    if not trials:
        alone = plans_of(setting, graphs, exported_alone(graphs, order, order, pins), by_name)
        trials = _built(setting, graphs, order, [*pruned, *alone], memos)
    if not trials:  # the reason is that of the split by priority
        return chosen_by_priority(setting, graphs, order, pins)
    trials, warnings = raced_trials(setting, _with_plain(setting, graphs, order, trials, memos), race)
    best = _decided_trial(trials, tiers, race.sizes_vary)
    can_race = race.samples and not warnings
    if can_race and (more := _second_heat(setting, graphs, order, pins, trials, trials[best], pruned)):
        added = _with_plain(setting, graphs, order, _built(setting, graphs, order, more, memos), memos)
        trials = _distinct((*trials, *added))
        trials, warnings = raced_trials(setting, trials, race, best)
        best = _decided_trial(trials, tiers, race.sizes_vary)
    best, left_out = _plain_if_faster(trials, best)
    chosen, recipe = trials[best], trials[best].planned.recipe
    shapes = tuple(shapes_text(sample) for sample in race.samples[: len(chosen.shape_ms)])
    lost = dict.fromkeys(line for trial in trials for line in trial.settled.dropped)
    lost |= {left_out: None} if left_out else {}
    memo, settled = memos[_graph(recipe)], chosen.settled
    if is_alone(recipe):  # fallbacks are taken from what the others say
        settled = chosen_again(setting, graphs, order, recipe, memo)
    settled = replace(settled, dropped=tuple(lost))
    return Chosen(settled, recipe, _table(trials, best, pruned), shapes, warnings, memo)


def _with_plain(
    setting: Setting, graphs: Graphs, order: Sequence[Backend], trials: Sequence[Trial], memos: dict[Graph, Memo]
) -> list[Trial]:
    """Returns trials, and behind them those in which backends rewrote what they take without that, where it is new."""
    plain = [replace(trial.planned, recipe=_as_taken(trial)) for trial in trials if trial.settled.rewrites]
    return _distinct((*trials, *_built(setting, graphs, order, plain, memos)))


def _as_taken(trial: Trial) -> Recipe:
    """Returns the recipe of a trial without the rewrites that its backends made."""
    return replace(trial.planned.recipe, as_taken=tuple(name for name, _ in trial.settled.rewrites))


def _plain_if_faster(trials: Sequence[Trial], best: int) -> tuple[int, str]:
    """Returns the index of the best trial, or of the same without rewrites where that was measured to be faster.

    And a warning where rewrites are left out.
    """
    chosen = trials[best]
    plain = replace(chosen.planned, recipe=_as_taken(chosen)) if chosen.settled.rewrites else None
    twin = next((i for i, one in enumerate(trials) if plain is not None and is_same(one.planned, plain)), best)
    if twin != best and chosen.shape_ms and trials[twin].ms < (1 - REWRITES_GAIN) * chosen.ms:
        best = twin
    left_out = trials[best].planned.recipe.as_taken
    return best, f"rewrites of {', '.join(left_out)} are left out: it is faster without" if left_out else ""


def _second_heat(
    setting: Setting,
    graphs: Graphs,
    order: Sequence[Backend],
    pins: Pins,
    trials: Sequence[Trial],
    best: Trial,
    pruned: Sequence[Planned],
) -> list[Planned]:
    """Returns what may win against the best of the first trials: engines alone, and the best with a region moved."""
    slow = [one.planned for one in trials if one.ms > EXPORTED_GAIN * best.ms]
    far = {plan.plan.regions[0].backend for plan in (*pruned, *slow) if plan.is_whole}
    far |= refusing_exported(graphs, [one.planned for one in trials])
    engines = [backend for backend in order if backend.name not in far]
    recipes = [
        *exported_alone(graphs, engines, order, pins),
        *variations(best.planned, order, MAX_REGIONS_TRIED),
    ]
    return [
        plan
        for plan in plans_of(setting, graphs, recipes, _by_name(order))
        if plan.seconds <= PRUNED * best.planned.seconds and not any(is_same(plan, one.planned) for one in trials)
    ]


def _plans(setting: Setting, graphs: Graphs, order: Sequence[Backend], pins: Pins) -> list[Planned]:
    """Returns the plans of the optimised graph, each once; the split by priority first."""
    by_name = _by_name(order)
    first = planned(setting, graphs, by_priority(order, pins), by_name)
    found = [first]
    for plan in plans_of(setting, graphs, splits_of(first.plan, order, pins), by_name):
        if not any(is_same(plan, other) for other in found):
            found.append(plan)
    return found


def _limit(plan: Planned, by_name: Callable[[str], Backend], least: float) -> float:
    """Returns how many times the least prediction a plan may take to be built."""
    if not any(is_compiled(by_name(region.backend)) for region in plan.plan.regions):
        return PRUNED
    return 1.0 if least < SMALL_SECONDS else PRUNED_COMPILED


def _graph(recipe: Recipe) -> Graph:
    return recipe.graph, recipe.as_taken


def _for(setting: Setting, recipe: Recipe) -> Setting:
    """Returns the setting in which a recipe is built."""
    return replace(setting, as_taken=frozenset(recipe.as_taken))


def _by_name(order: Sequence[Backend]) -> Callable[[str], Backend]:
    return {backend.name: backend for backend in order}.__getitem__


def _built(
    setting: Setting, graphs: Graphs, order: Sequence[Backend], plans: Sequence[Planned], memos: dict[Graph, Memo]
) -> list[Trial]:
    by_name = _by_name(order)

    def built(plan: Planned) -> Trial | None:
        recipe = plan.recipe
        builders = [by_name(name) for name in asked(recipe)]
        memo = memos.setdefault(_graph(recipe), {})
        try:
            here, graph = _for(setting, recipe), graphs[recipe.graph]
            settled = settle(here, graph, builders, recipe.pins, first=plan.plan, memo=memo)
        except (ModelError, UsageError):
            return None  # nobody builds what it leaves
        return Trial(as_settled(recipe, settled.plan), settled)

    with ThreadPoolExecutor(setting.num_at_once) as pool:  # whole models have no piece in common
        begun = [pool.submit(built, plan) if plan.is_whole else None for plan in plans]
    trials = [built(plan) if future is None else future.result() for plan, future in zip(plans, begun, strict=True)]
    return _distinct([trial for trial in trials if trial is not None])


def _distinct(trials: Sequence[Trial]) -> list[Trial]:
    """Returns the first trial of each placement: who lost nodes while it was built may be what another is."""
    found: list[Trial] = []
    for trial in trials:
        if not any(is_same(trial.planned, other.planned) for other in found):
            found.append(trial)
    return found


def _decided_trial(trials: Sequence[Trial], tiers: Mapping[str, int], sizes_vary: bool) -> int:
    plans = [trial.planned for trial in trials]
    prepares = [prepares_for_sizes(plan.plan.regions, plan.plan.costs.level) for plan in plans]
    factors = [1 + NEW_SIZES * (sizes_vary and one) for one in prepares]
    times = [trial.ms * factor for trial, factor in zip(trials, factors, strict=True)]
    return _decided(plans, times, tiers)


def _decided(plans: Sequence[Planned], times: Sequence[float], tiers: Mapping[str, int]) -> int:
    """Returns the index of the plan that is taken; the first is the split by the order of tiers, where it was built."""
    least = min(times)
    engines = [time for plan, time in zip(plans, times, strict=True) if _is_engine(plan, tiers)]
    if plans[0].recipe.name == "priority":
        is_near = least > (1 - MIN_GAIN) * times[0]
        if is_near and min(engines, default=math.inf) > (1 - ENGINE_GAIN) * times[0]:
            return 0
    penalised = [time * (1 + MARGIN * (not plan.is_whole)) for plan, time in zip(plans, times, strict=True)]
    return next(i for i, time in enumerate(penalised) if time <= min(penalised) * (1 + MARGIN / 3))


def _is_engine(plan: Planned, tiers: Mapping[str, int]) -> bool:
    return plan.is_whole and tiers[plan.plan.regions[0].backend] in WHOLE_MODEL_TIERS


def _table(trials: Sequence[Trial], best: int, pruned: Sequence[Planned]) -> tuple[Candidate, ...]:
    built = [
        Candidate(
            trial.planned.name,
            round(trial.ms, 4) if trial.shape_ms else None,
            i == best,
            trial.shape_ms,
            round(trial.planned.seconds * 1e3, 4),
        )
        for i, trial in enumerate(trials)
    ]
    return (*built, *(Candidate(plan.name, None, False, (), round(plan.seconds * 1e3, 4)) for plan in pruned))


def shapes_to_measure(samples: Sequence[Mapping[str, Value]]) -> dict[str, Mapping[str, Value]]:
    """Returns the first sample of each shape, at most `MAX_SHAPES`, by its shapes as text."""
    found: dict[str, Mapping[str, Value]] = {}
    for sample in samples:
        found.setdefault(shapes_text(sample), sample)
    return dict(islice(found.items(), MAX_SHAPES))


def seconds_to_measure(call_seconds: float, num_shapes: int) -> float:
    """Returns how long each candidate is measured whose call is predicted to take `call_seconds`."""
    return num_shapes * min(max(CALLS_MEASURED * call_seconds, LEAST_SECONDS), MOST_SECONDS)
