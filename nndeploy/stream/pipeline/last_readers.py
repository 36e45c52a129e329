# SPDX-License-Identifier: Apache-2.0
"""Of which outputs of its model a pipeline reads the last position alone, as `sample` does of scores of tokens.

Law: an output is among them only if its field goes to such steps and nowhere else.
"""

from collections.abc import Iterator

from nndeploy.bundle.manifest import Manifest
from nndeploy.stream.description import PipelinePlan, StageStep, optional_fields, read_last
from nndeploy.stream.pipeline.pipeline_file import PipelineFile, last_fields, levels_with_models


def last_positions(file: PipelineFile, manifest: Manifest) -> frozenset[str]:
    """Returns the outputs of the bundle that carries the pipeline of which it reads the last position alone.

    `manifest` has the bundle's inputs and outputs. Where another model behind it might take the output, it is not
    among them.
    """
    models = [one for one in file.pipelines if one.runner is not None]
    own = {one.name: manifest for one in models if one.runner is not None and not one.runner.model}
    if len(own) != len(models):
        return frozenset()
    levels = levels_with_models(file, own)
    plans = [plan for level in levels for plan in level]
    named = {name for sink in file.sinks for name in sink.fields}
    if not all(sink.fields for sink in file.sinks) or not file.sinks:
        named |= set(last_fields(levels))
    named |= {how.until for how in file.hows}.union(*map(_named, plans))
    steps = [step for plan in plans for step in _steps(plan)]
    return frozenset.intersection(
        *(_of_one(plan, steps, named) for plan in plans if plan.runner is not None),
    )


def _of_one(plan: PipelinePlan, steps: list[StageStep], named: set[str]) -> frozenset[str]:
    """Returns those of one pipeline with a model; `named` are the fields that are read besides steps."""
    runner = plan.runner
    assert runner is not None
    fields = {name: field for name, field in runner.outputs.items() if name not in runner.carry and field not in named}
    return frozenset(name for name, field in fields.items() if _is_last(field, steps))


def _is_last(field: str, steps: list[StageStep]) -> bool:
    readers = [step for step in steps if field in (*step.takes, *optional_fields(step))]
    return bool(readers) and all(step.takes.count(field) == 1 and field in read_last(step) for step in readers)


def _named(plan: PipelinePlan) -> set[str]:
    """Returns the fields that a pipeline reads besides its steps."""
    inputs = () if plan.runner is None else ((plan.runner.inputs or {}).values())
    session = "" if plan.runner is None else plan.runner.session
    return {plan.each, session, *inputs, *(plan.route.when.mentions if plan.route.when is not None else ())}


def _steps(plan: PipelinePlan) -> Iterator[StageStep]:
    for stage in (*plan.loaders, *plan.looped, *plan.posts):
        yield from stage.steps
