# SPDX-License-Identifier: Apache-2.0
"""Whether a pipeline fits its model: the names of inputs and outputs, the batch, the state that is carried."""

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from nndeploy.bundle.manifest import Manifest
from nndeploy.errors import DataError, UsageError, did_you_mean
from nndeploy.runtime.batching import batch_sizes
from nndeploy.stream.description import PipelinePlan, RunnerPlan
from nndeploy.values.types import TensorType, Value, numpy_dtype


def check_fits(pipeline: PipelinePlan, manifest: Manifest, where: str) -> None:
    """Checks the runner of a pipeline, if it has one, against its model.

    Raises:
        UsageError: it names an input or output that there is none of, an input gets nothing, the model takes no batch
            of that size, or state cannot be carried.
    """
    plan = pipeline.runner
    if plan is None:
        return
    _check_names(plan, manifest, where)
    if plan.batch > 1:
        if plan.carry and pipeline.loop is None:
            told = "batch and carry exclude each other: each part waits for the one before it"
            raise UsageError(told, where=where)
        _check_batch(plan, manifest, where)
    if pipeline.loop is not None:
        _check_loop(pipeline, plan, where)
    elif plan.session:
        _check_session(pipeline, plan, where)
    elif plan.carry and not pipeline.each:
        told = "carry needs each, loop or session: it leads from one part of a record, round or record to the next"
        raise UsageError(told, where=where)
    for name in plan.carry.values():
        try:
            first_state(plan, manifest, name)
        except UsageError as err:
            raise err.within(f"{where}, carry to {name!r}") from err


def _check_loop(pipeline: PipelinePlan, plan: RunnerPlan, where: str) -> None:
    told = {"each": bool(pipeline.each), "session": bool(plan.session), "batch-delay-ms": plan.batch_delay_ns > 0}
    for name, is_there in told.items():
        if is_there:
            what = f"loop and {name} exclude each other: each record has a state of its own, and joins those that loop"
            raise UsageError(what, where=where)


def expanded_carry(carry: Mapping[str, str], manifest: Manifest, where: str) -> dict[str, str]:
    """Returns which output is carried to which input; `present.*` = `past.*` stands for all outputs of such names.

    Raises:
        DataError: a pattern fits no output, or an output that fits has no input of that name.
    """
    outputs, inputs = ([item.name for item in items] for items in (manifest.outputs, manifest.inputs))
    found: dict[str, str] = {}
    for source, to in carry.items():
        place = f"{where}, carry {source!r}"
        fitting = _fitting(source, to, outputs, "output", place)
        for name, into in fitting.items():
            if into not in inputs and name != source:
                hint = did_you_mean(into, inputs)
                raise DataError(f"the model has the output {name!r}, but no input {into!r}", where=place, hint=hint)
        found |= fitting
    return found


def expanded_inputs(inputs: Mapping[str, str], names: Sequence[str], where: str) -> dict[str, str]:
    """Returns which input takes which field; `past.*` = `present.*` stands for all inputs of such names.

    `names` are those of the model's inputs.

    Raises:
        DataError: a pattern fits no input.
    """
    found = dict[str, str]()
    for name, field in inputs.items():
        found |= _fitting(name, field, names, "input", f"{where}, inputs {name!r}")
    return found


def _fitting(pattern: str, to: str, names: Sequence[str], what: str, where: str) -> dict[str, str]:
    """Returns all of `names` that a pattern stands for, each with `to` in which * is what * is in the name.

    Raises:
        DataError: it fits none, or there is not one * on both sides.
    """
    if "*" not in pattern or pattern in names:
        return {pattern: to}
    if pattern.count("*") != 1 or to.count("*") != 1:
        raise DataError(f"a pattern and what goes with it each have one *, this is {pattern!r}, {to!r}", where=where)
    form = re.compile("(.+)".join(map(re.escape, pattern.split("*"))))
    fitting = {name: to.replace("*", fit[1]) for name in names if (fit := form.fullmatch(name))}
    if not fitting:
        raise DataError(f"no {what} of the model has such a name", where=where, hint=did_you_mean(pattern, names))
    return fitting


def _check_session(pipeline: PipelinePlan, plan: RunnerPlan, where: str) -> None:
    if not plan.carry:
        raise UsageError("session needs carry: without it nothing is kept", where=where)
    if pipeline.each:
        raise UsageError("each and session exclude each other: state goes from part to part, or on", where=where)
    in_order = len(pipeline.loaders) <= 1 and all(one.workers == 1 for one in pipeline.loaders)
    if not in_order or len(plan.devices) != 1:
        hint = "leave workers, copies and runners at 1"
        raise UsageError("records of a session need their order: one loader and one runner", where=where, hint=hint)


def _check_names(plan: RunnerPlan, manifest: Manifest, where: str) -> None:
    inputs = {item.name: item.type for item in manifest.inputs}
    outputs = {item.name: item.type for item in manifest.outputs}
    _check_known(plan.outputs, outputs, "output", f"{where}, outputs")
    _check_known(plan.carry, outputs, "output", f"{where}, carry")
    _check_known(plan.carry.values(), inputs, "input", f"{where}, carry")
    if plan.inputs is None:
        return
    _check_known(plan.inputs, inputs, "input", f"{where}, inputs")
    needed = [item.name for item in manifest.inputs if not manifest.may_lack(item)]
    for name in needed:
        if name not in plan.inputs and name not in plan.carry.values():
            raise UsageError(f"the model's input {name!r} gets nothing", where=where, hint='inputs = { it = "field" }')


def _check_known(names: Iterable[str], known: Iterable[str], what: str, where: str) -> None:
    for name in names:
        if name not in known:
            raise UsageError(f"the model has no {what} {name!r}", where=where, hint=did_you_mean(name, known))


def _check_batch(plan: RunnerPlan, manifest: Manifest, where: str) -> None:
    sizes = batch_sizes(manifest)
    if isinstance(sizes, str):
        raise UsageError(sizes, where=f"{where}, batch")
    if not sizes.min <= plan.batch <= sizes.max:
        known = f"always {sizes.max}" if sizes.min == sizes.max else str(sizes)
        hint = "compile the bundle with this pipeline, or with another --shape"
        raise UsageError(f"batch is {plan.batch}, the model's batch is {known}", where=where, hint=hint)


def given_sizes(plan: RunnerPlan, manifest: Manifest, inputs: Mapping[str, Value]) -> dict[str, int]:
    """Returns the sizes by their names that the inputs of a call have which are not carried."""
    carried = set(plan.carry.values())
    return {
        size: found
        for item in manifest.inputs
        if item.name in inputs and item.name not in carried and isinstance(item.type, TensorType)
        for size, found in zip(item.type.shape or (), np.shape(inputs[item.name]), strict=False)
        if isinstance(size, str)
    }


def first_state(
    plan: RunnerPlan, manifest: Manifest, name: str, sizes: Mapping[str, int] = MappingProxyType({})
) -> np.ndarray[Any, Any]:
    """Returns what an input that is carried begins with: zeros of its type.

    A size that is not fixed is that of its name in `sizes`, else 1; but 0 where the output that is carried to it has
    the same size and more, as the cache of a decoder, or another one than a size with "past" in its name, as exporters
    call that of a cache.

    Raises:
        UsageError: it is not a tensor of a known rank.
    """
    source = next(output for output, to in plan.carry.items() if to == name)
    value_type = next(item.type for item in manifest.inputs if item.name == name)
    after = next(item.type for item in manifest.outputs if item.name == source)
    if not isinstance(value_type, TensorType) or value_type.shape is None or value_type.dtype == "string":
        raise UsageError(f"a value of type {value_type} cannot be carried from part to part")
    shape_after = after.shape if isinstance(after, TensorType) and after.shape is not None else ()
    both = itertools.zip_longest(value_type.shape, shape_after[: len(value_type.shape)])
    shape = [
        size if isinstance(size, int) else 0 if _grows(size, to) else sizes.get(size or "", 1) for size, to in both
    ]
    return np.zeros(shape, numpy_dtype(value_type.dtype))


def _grows(size: str | None, after: int | str | None) -> bool:
    """Whether a size is a sum of another and more, as "past + 1" is of "past", or is of the past by its name."""
    terms = [term.strip() for term in after.split("+")] if isinstance(after, str) else []
    return size in terms if len(terms) > 1 else size != after and "past" in (size or "")
