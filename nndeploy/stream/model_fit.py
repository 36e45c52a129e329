# SPDX-License-Identifier: Apache-2.0
"""Whether a pipeline fits its model: the names of inputs and outputs, the batch, the state that is carried."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from nndeploy.bundle.manifest import Manifest
from nndeploy.errors import UsageError, did_you_mean
from nndeploy.runtime.batching import batch_sizes
from nndeploy.stream.description import PipelinePlan, RunnerPlan
from nndeploy.values.types import OptionalType, TensorType, ValueType, numpy_dtype


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
        _check_batch(plan, manifest, where)
    if plan.carry and not pipeline.each:
        raise UsageError("carry needs each: it leads from one part of a record to the next", where=where)
    types = {item.name: item.type for item in manifest.inputs}
    for name in plan.carry.values():
        try:
            zeros(types[name])
        except UsageError as err:
            raise err.within(f"{where}, carry to {name!r}") from err


def _check_names(plan: RunnerPlan, manifest: Manifest, where: str) -> None:
    inputs = {item.name: item.type for item in manifest.inputs}
    outputs = {item.name: item.type for item in manifest.outputs}
    _check_known(plan.outputs, outputs, "output", f"{where}, outputs")
    _check_known(plan.carry, outputs, "output", f"{where}, carry")
    _check_known(plan.carry.values(), inputs, "input", f"{where}, carry")
    if plan.inputs is None:
        return
    _check_known(plan.inputs, inputs, "input", f"{where}, inputs")
    for name, value_type in inputs.items():
        if name not in plan.inputs and name not in plan.carry.values() and not isinstance(value_type, OptionalType):
            raise UsageError(f"the model's input {name!r} gets nothing", where=where, hint='inputs = { it = "field" }')


def _check_known(names: Iterable[str], known: Iterable[str], what: str, where: str) -> None:
    for name in names:
        if name not in known:
            raise UsageError(f"the model has no {what} {name!r}", where=where, hint=did_you_mean(name, known))


def _check_batch(plan: RunnerPlan, manifest: Manifest, where: str) -> None:
    if plan.carry:
        raise UsageError("batch and carry exclude each other: each part waits for the one before it", where=where)
    sizes = batch_sizes(manifest)
    if isinstance(sizes, str):
        raise UsageError(sizes, where=f"{where}, batch")
    if not sizes.min <= plan.batch <= sizes.max:
        known = f"always {sizes.max}" if sizes.min == sizes.max else str(sizes)
        raise UsageError(f"batch is {plan.batch}, the model's batch is {known}", where=where)


def zeros(value_type: ValueType) -> np.ndarray[Any, Any]:
    """Returns what carried state begins with: zeros of its type; a size that is not fixed counts as 1.

    Raises:
        UsageError: it is no tensor of a known rank.
    """
    if not isinstance(value_type, TensorType) or value_type.shape is None or value_type.dtype == "string":
        raise UsageError(f"a value of type {value_type} cannot be carried from part to part")
    return np.zeros([size if isinstance(size, int) else 1 for size in value_type.shape], numpy_dtype(value_type.dtype))
