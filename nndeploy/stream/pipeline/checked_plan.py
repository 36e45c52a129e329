# SPDX-License-Identifier: Apache-2.0
"""Puts a pipeline and its models together, and checks them as a whole: source, models, fields, sinks.

`run` does it before anything runs, `compile --pipeline` before anything is built.
"""

from collections.abc import Mapping

from nndeploy.bundle.manifest import Manifest
from nndeploy.errors import DataError
from nndeploy.stream.description import PipelinePlan, StreamPlan, handed_on, largest_values, step_name
from nndeploy.stream.model_fit import expanded_carry, expanded_inputs
from nndeploy.stream.pipeline.field_flow import place_of
from nndeploy.stream.pipeline.pipeline_file import PipelineFile, last_fields, levels_with_models, plan_of_file
from nndeploy.stream.pipeline.pipeline_sinks import check_sinks
from nndeploy.stream.pipeline.pipeline_sources import check_join, source_fields
from nndeploy.values.types import ValueType


def checked_plan(
    file: PipelineFile, manifests: Mapping[str, Manifest]
) -> tuple[StreamPlan, dict[str, dict[str, ValueType]]]:
    """Returns the plan, and for each source, by name, the types of the fields that its first models take.

    `manifests` are by pipeline.

    Raises:
        DataError: the pipeline does not fit its models, or its source, fields or sinks do not fit each other.
    """
    types = {source.name: _first_types(file, manifests, source.name) for source in file.sources}
    fields = {
        source.name: source_fields(source, types[source.name], file.where, is_joined=file.join is not None)
        for source in file.sources
    }
    check_join(file, fields)
    plan = plan_of_file(file, manifests, fields)
    check_sinks(file.sinks, last_fields(plan.levels), file.where, plan.may_lack)
    return plan, types


def check_carried(file: PipelineFile, manifest: Manifest, rows: Mapping[str, int]) -> None:
    """Checks a pipeline against the bundle that is to carry it, as far as that is known without its other models.

    `rows` says of inputs that choose rows of a table how many there are.

    Raises:
        DataError: it does not fit.
    """
    with_runner = [one for one in file.pipelines if one.runner is not None]
    own = {one.name: manifest for one in with_runner if one.runner is not None and not one.runner.model}
    if len(own) == len(with_runner):
        checked_plan(file, own)
    for number, level in enumerate(levels_with_models(file, own), 1):
        for plan in level:
            if plan.name in own:
                _check_rows(plan, rows, f"{file.where}: {place_of(number, plan)}")


def _check_rows(plan: PipelinePlan, rows: Mapping[str, int], where: str) -> None:
    """Refuses loaders that give numbers for which a table of the model has no row."""
    largest: dict[str, tuple[int, str]] = {}
    for step in (step for stage in plan.loaders for step in stage.steps):
        own, same = largest_values(step), handed_on(step)
        largest |= {
            name: largest[same[name]] if same.get(name) in largest else (own.get(name, -1), step_name(step))
            for name in step.gives
        }
    for name, field in (plan.runner.inputs or {}).items() if plan.runner is not None else ():
        number, step_of_it = largest.get(field, (-1, ""))
        if number >= rows.get(name, number + 1):
            raise DataError(
                f"gives tokens up to {number}, but the model's input {name!r} chooses from {rows[name]} rows",
                where=f"{where}, step {step_of_it!r}", hint="take the tokenizer that belongs to this model",
            )  # fmt: skip


def _first_types(file: PipelineFile, manifests: Mapping[str, Manifest], source: str) -> dict[str, ValueType]:
    """Returns the types of what the models of the first level take from a source, by field.

    Where sources are joined, only models that are bound to one say what it gives.
    """
    types: dict[str, ValueType] = {}
    for one in file.levels[0]:
        if one.runner is None or one.route.source not in ((source,) if file.join is not None else ("", source)):
            continue
        place = f"{file.where}: {place_of(1, one)}"
        carried = set(expanded_carry(one.runner.carry, manifests[one.name], place).values())
        names = [item.name for item in manifests[one.name].inputs]
        renamed = expanded_inputs(one.runner.inputs or {}, names, place)
        for item in manifests[one.name].inputs:
            if item.name not in carried:
                types.setdefault(renamed.get(item.name, item.name), item.type)
    return types
