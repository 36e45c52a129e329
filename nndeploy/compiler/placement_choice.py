# SPDX-License-Identifier: Apache-2.0
"""The placement that a bundle gets: replayed from a file of decisions, the split by tiers, or the fastest measured.

    file of decisions there -> its recipe again
    objective "priority"    -> the split by the order of tiers
    weights of more than 256 MiB -> what is predicted to be fastest: each candidate would have the weights once more
    else                    -> candidates are built, checked and measured (`nndeploy.compiler.placement.objective`)

Law: with the same model, options and decisions the same placement comes out, and nothing is measured.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from nndeploy.bundle.report import PassReport
from nndeploy.checking.original import samples_of_other_sizes
from nndeploy.checking.samples import has_free_size
from nndeploy.compiler.chains.backend_order import pins_for
from nndeploy.compiler.chains.built_chain import Settled
from nndeploy.compiler.chains.chain_setting import Setting
from nndeploy.compiler.compilation import Compilation
from nndeploy.compiler.options import options_that_decide
from nndeploy.compiler.pack import Packing
from nndeploy.compiler.placement.candidates import (
    EXPORTED,
    OPTIMISED,
    Graphs,
    Pins,
    Planned,
    Recipe,
    by_priority,
    planned,
)
from nndeploy.compiler.placement.decisions import Decisions, decisions_from_file, write_decisions
from nndeploy.compiler.placement.objective import (
    Chosen,
    chosen_again,
    chosen_by_prediction,
    chosen_by_priority,
    fastest,
    planned_best,
    seconds_to_measure,
    shapes_to_measure,
)
from nndeploy.compiler.placement.race import Race
from nndeploy.compiler.whole_bundle import write_candidate
from nndeploy.errors import DataError
from nndeploy.frontend.load import LoadedModel
from nndeploy.jobs.tasks import MeasureOptions
from nndeploy.jobs.temporary import temporary_folder
from nndeploy.partition.cost import estimate_costs
from nndeploy.plugin.interface import Backend
from nndeploy.values.types import Value

AS_EXPORTED = PassReport("none: the graph is the one that was exported, which is as fast or faster", 0)
MAX_RACED_BYTES = 256 << 20
"""Most weights whose candidates are raced: libraries take several times as much to open a model."""
MAX_SECONDS_AT_OTHER_SIZES = 0.02
"""Predicted for a call: longer ones are raced at the sizes of the samples alone."""


def chosen_placement(compilation: Compilation, packing: Packing, graphs: Graphs) -> Chosen:
    """Returns the placement of the portable chain, built and checked.

    Raises:
        DataError: the file of decisions is for another model or other options, or for backends that do not build here.
        ModelError: some node has no backend left.
    """
    setting, order = packing.setting, packing.portable.backends
    pins = _pins(compilation, order)
    if compilation.options.decisions is not None and compilation.options.decisions.exists():
        decided = _decided(packing, order, compilation.options.decisions)
        settled = chosen_again(setting, graphs, order, decided.recipe)
        settled = replace(settled, dropped=decided.dropped)
        return Chosen(settled, decided.recipe, decided.candidates, decided.measured_shapes)
    if compilation.options.objective == "priority":
        return chosen_by_priority(setting, graphs, order, pins)
    if (stored := packing.loaded.stored) is not None and stored.num_bytes > MAX_RACED_BYTES:
        return chosen_by_prediction(setting, graphs, order, pins)
    return _measured(compilation, packing, graphs, pins)


def planned_placement(compilation: Compilation, setting: Setting, graphs: Graphs, order: Sequence[Backend]) -> Planned:
    """Returns who would run what, as far as that is known before anything is measured."""
    pins = _pins(compilation, order)
    if compilation.options.objective == "priority":
        return planned(setting, graphs, by_priority(order, pins), {b.name: b for b in order}.__getitem__)
    best, _ = planned_best(setting, graphs, order, pins)
    return best


def packed_by(packing: Packing, recipe: Recipe) -> Packing:
    """Returns what is packed where the graph of `recipe` was chosen: no pass had a part in the one as exported."""
    return packing if recipe.graph != EXPORTED else replace(packing, passes=(AS_EXPORTED,))


def packed_as_chosen(packing: Packing, chosen: Chosen) -> Packing:
    """Returns what is packed of the placement that was chosen, with the candidates that it was chosen from."""
    packing = packed_by(packing, chosen.recipe)
    setting = replace(packing.setting, as_taken=frozenset(chosen.recipe.as_taken))
    return replace(packing, setting=setting, candidates=chosen.candidates, measured_shapes=chosen.measured_shapes)


def keep_decisions(compilation: Compilation, chosen: Chosen, loaded: LoadedModel) -> None:
    """Writes what was decided to the file that was named, unless that decided it.

    Raises:
        InputOutputError: it cannot be written.
    """
    path = compilation.options.decisions
    if path is not None and not path.exists():
        decisions = Decisions(chosen.recipe, chosen.candidates, chosen.measured_shapes, chosen.settled.dropped)
        write_decisions(path, decisions, loaded.sha256, options_that_decide(compilation.options))


def _pins(compilation: Compilation, order: Sequence[Backend]) -> Pins:
    return tuple(pins_for(compilation.options.pins, order))


def _decided(packing: Packing, order: Sequence[Backend], path: Path) -> Decisions:
    found = decisions_from_file(path, packing.loaded.sha256, options_that_decide(packing.options))
    here = {backend.name for backend in order}
    if missing := [name for name in found.recipe.order if name not in here]:
        raise DataError(f"the decisions name {missing[0]}, which cannot build here", where=str(path))
    return found


def _measured(compilation: Compilation, packing: Packing, graphs: Graphs, pins: Pins) -> Chosen:
    setting, options = packing.setting, compilation.options
    call_seconds = estimate_costs(graphs[OPTIMISED], setting.shapes_of(graphs[OPTIMISED])).total
    samples = _samples_to_race(packing, call_seconds)
    measure = MeasureOptions(
        seconds=seconds_to_measure(call_seconds, len(samples)),
        inflight=1 if options.objective == "latency" else max(2, compilation.host.num_cores),
        threads=options.threads or 1,
        custom_op_libraries=options.custom_op_libraries,
    )

    def write_trial(trial: Settled, recipe: Recipe, path: Path) -> None:
        write_candidate(compilation, packed_by(packing, recipe), trial, path)

    with temporary_folder("measure", compilation.workers.shared_folder) as folder:
        sizes_vary = has_free_size(packing.loaded.inputs, packing.loaded.ranges)
        race = Race(write_trial, folder, samples, measure, sizes_vary)
        return fastest(setting, graphs, packing.portable.backends, pins, race)


def _samples_to_race(packing: Packing, call_seconds: float) -> tuple[Mapping[str, Value], ...]:
    """Returns a sample of each shape that is known; of open sizes that were made up some around them too."""
    samples = tuple(shapes_to_measure(packing.original.samples).values())
    if len(samples) != 1 or call_seconds > MAX_SECONDS_AT_OTHER_SIZES:
        return samples
    loaded, reference = packing.loaded, packing.setting.reference
    return (*samples, *loaded.filled(samples_of_other_sizes(loaded.without_defaults(), reference, packing.original)))
