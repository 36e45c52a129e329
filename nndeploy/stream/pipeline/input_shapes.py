# SPDX-License-Identifier: Apache-2.0
"""Which sizes the inputs of its model always have in a pipeline, before anything runs.

In come the steps, each of which tells the shapes that it gives; out go the sizes of the inputs of the bundle that
carries the pipeline. Laws: a size that is given is that of every call; what another model or a source gives is unknown.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

from nndeploy.processors.known_shapes import EachOf, Known, Sizes, common
from nndeploy.stream.description import PipelinePlan, StagePlan, given_shapes
from nndeploy.stream.model_fit import expanded_inputs
from nndeploy.stream.pipeline.field_flow import place_of
from nndeploy.stream.pipeline.pipeline_file import PipelineFile

Fields: TypeAlias = dict[str, Known]
"""What is known of the values of fields; nothing of those that are not among them."""


@dataclass(frozen=True, slots=True)
class InputNames:
    """The names of a model's inputs, those of them that a call may leave out, and the names of its outputs."""

    inputs: Sequence[str]
    optional: Set[str]
    outputs: Sequence[str]


def input_shapes(file: PipelineFile, names: InputNames) -> dict[str, Sizes]:
    """Returns the sizes of the inputs of the bundle that carries the pipeline, of those of which any is certain.

    Where a call joins several records, the first axis is open; so it is with a loop, whose records are joined by others
    as a run with another pipeline wants it. All is open of a model with `carry`: the sizes of its state, which are its
    own, go with those of the other inputs.

    Raises:
        DataError: a pattern of names fits no input.
    """
    flow = _Flow(file.where, names)
    for number, (level, how) in enumerate(zip(file.levels, file.hows, strict=True), 1):
        if any(other.back_to == number for other in file.hows):  # what comes from behind may have any shape
            flow.fields.clear()
        takes_all = len(level) == 1 or how.queue == "copy"
        flow.follow(number, level, takes_all=takes_all)
    every = flow.found.values()
    found = {name: reduce(common, [one.get(name) for one in every]) for name in names.inputs if every}
    return {name: sizes for name, sizes in found.items() if isinstance(sizes, tuple) and set(sizes) != {None}}


class _Flow:
    """What is known of the fields of every record, level by level; `found` is that of the inputs, by pipeline."""

    def __init__(self, where: str, names: InputNames) -> None:
        self._where = where
        self._names = names
        self.fields: Fields = {}
        self.found: dict[str, Fields] = {}

    def follow(self, number: int, level: Sequence[PipelinePlan], *, takes_all: bool) -> None:
        """Follows the pipelines of a level; with `takes_all` each of them takes every record that it may."""
        before = dict(self.fields)
        for plan in level:
            given = self._given(number, plan, dict(before))
            if plan.runner is not None and plan.runner.model:
                self.fields.clear()
            for name, known in given.items():
                is_certain = takes_all and plan.route.is_any
                self.fields[name] = known if is_certain else common(known, self.fields.get(name))

    def _given(self, number: int, plan: PipelinePlan, fields: Fields) -> Fields:
        """Returns what is known of the fields that a pipeline gives."""
        if plan.each:
            parts = fields.get(plan.each)
            fields[plan.part] = parts.element if isinstance(parts, EachOf) else None
        _follow_stages(plan.loaders, fields)
        if plan.runner is not None:
            if plan.loop is not None:
                fields = self._in_every_round(plan, fields)
            if not plan.runner.model:
                place = f"{self._where}: {place_of(number, plan)}"
                self.found[plan.name] = self._of_inputs(plan, fields, place)
            self._forget_outputs(plan, fields)
        _follow_stages(plan.looped, fields)
        _follow_stages(plan.posts, fields)
        return {name: EachOf(fields.get(name)) if plan.each else fields.get(name) for name in plan.gives}

    def _in_every_round(self, plan: PipelinePlan, fields: Fields) -> Fields:
        """Returns what holds before each call of the model of a loop, which its steps follow."""
        while True:
            after = dict(fields)
            self._forget_outputs(plan, after)
            _follow_stages(plan.looped, after)
            both = {name: common(known, after.get(name)) for name, known in fields.items()}
            if both == fields:
                return fields
            fields = both

    def _forget_outputs(self, plan: PipelinePlan, fields: Fields) -> None:
        """Forgets what the model writes over: of another one the names of outputs are not known here."""
        assert plan.runner is not None
        if plan.runner.model:
            fields.clear()
        for name in (*self._names.outputs, *plan.runner.outputs.values()):
            fields.pop(name, None)

    def _of_inputs(self, plan: PipelinePlan, fields: Mapping[str, Known], place: str) -> Fields:
        assert plan.runner is not None
        names, runner = self._names, plan.runner
        if runner.carry:
            return {}
        renamed = expanded_inputs(runner.inputs or {}, names.inputs, place)
        taken = {name: name for name in names.inputs if name not in names.optional} | renamed
        found = {name: fields.get(field) for name, field in taken.items()}
        is_alone = runner.batch == 1 and plan.loop is None
        return found if is_alone else {name: _with_open_batch(known) for name, known in found.items()}


def _with_open_batch(known: Known) -> Known:
    return (None, *known[1:]) if isinstance(known, tuple) and known else None


def _follow_stages(stages: Iterable[StagePlan], fields: Fields) -> None:
    """Adds what stages beside each other give to what is known before them."""
    given: Fields = {}
    for stage in stages:
        own = dict(fields)
        for step in stage.steps:
            own |= given_shapes(step, own)
        given |= {name: own.get(name) for name in stage.gives}
    fields |= given
