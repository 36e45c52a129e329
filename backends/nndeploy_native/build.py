# SPDX-License-Identifier: Apache-2.0
"""Submodel -> artifact that is data: a plan for the kernel library, the weights as the model has them, and a document.

    plan.bin      the steps, for nndeploy_kernels/c/model/plan.h
    weights.bin   each constant once, in the order of the model
    plan.json     borders, symbols and steps, for callers and for people

A submodel that chooses, or has texts or maps, has plans over the same weights, plan.0.bin and so on: `course.py`.

Law: the same submodel gives the same bytes, whatever the target: the library of the box does the rest when it loads.
"""

import tempfile
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import onnx_ir as ir
from nndeploy_kernels.levels import least_machines

from nndeploy.errors import BuildRefusedError
from nndeploy.files.file_content import MIN_MAPPED_BYTES
from nndeploy.plugin.interface import Artifact
from nndeploy.values.size import Atom
from nndeploy.values.solving import solved_symbols
from nndeploy.values.types import DimRange
from nndeploy_native import found_steps
from nndeploy_native.course import Course, CourseDocument, course_to_json, plan_file, python_steps, read_beside_plans
from nndeploy_native.fusion import fused
from nndeploy_native.lowering.context import Lowered
from nndeploy_native.lowering.courses import CourseLowering, is_beside_plans
from nndeploy_native.lowering.python_rules import border_of
from nndeploy_native.lowering.table import lower
from nndeploy_native.plan import (
    DOCUMENT_FILE,
    PLAN_FILE,
    PLAN_FORMAT_OF_COURSES,
    PLAN_FORMAT_OF_DOUBLES,
    PLAN_FORMAT_OF_FIXED,
    PLAN_FORMAT_OF_FOUND,
    PLAN_FORMAT_OF_GROWN,
    PLAN_FORMAT_OF_HALVES,
    PLAN_FORMAT_OF_MOVED,
    PLAN_FORMAT_OF_PYTHON_STEPS,
    WEIGHTS_FILE,
    GrownOutput,
    PlanBorder,
    PlanDocument,
    document_to_json,
)
from nndeploy_native.plan_words import write_step
from nndeploy_native.plan_writer import PlanWriter, WeightBytes
from nndeploy_native.tensors import Tensor
from nndeploy_native.transforms import transformed


def build(
    submodel: ir.Model,
    ranges: Mapping[str, DimRange],
    *,
    precision: str = "fp32",
    buffer_bytes: int = 0,
    workdir: str | None = None,
) -> Artifact:
    """Returns the artifact of a submodel; `buffer_bytes` is what the user set for windows, 0 where he did not.

    Many weights go to a file in `workdir`.

    Raises:
        BuildRefusedError: a node has no rule, or the library no operator for a step.
    """
    with tempfile.SpooledTemporaryFile(MIN_MAPPED_BYTES, dir=workdir) as file:
        weights = WeightBytes(file)
        if any(map(is_beside_plans, submodel.graph)):
            files, number, log = _files_of_course(submodel, ranges, weights)
        else:
            written = _written(lower(transformed(submodel), ranges), weights)
            files = {PLAN_FILE: written.plan, DOCUMENT_FILE: document_to_json(written.document)}
            number, log = written.least_format, _log(written, len(weights))
        files[WEIGHTS_FILE] = weights.content()
    metadata: dict[str, int | str] = {"format": number}
    metadata |= {"precision": precision} if precision != "fp32" else {}
    metadata |= {"buffer_bytes": buffer_bytes} if buffer_bytes else {}
    return Artifact(
        files=files,
        metadata=metadata,
        requires={"machines": least_machines(precision)},
        precision=precision,
        log=log,
    )


def _files_of_course(
    submodel: ir.Model, ranges: Mapping[str, DimRange], weights: WeightBytes
) -> tuple[dict[str, bytes | memoryview], int, str]:
    """Returns the files of a submodel that is more than one plan, plans over the same weights; their format and log."""
    lowering = CourseLowering(ranges, lambda lowered: _written(lowered, weights))
    course, plans = lowering.course(submodel), lowering.plans
    read = read_beside_plans(course)
    read |= {border.name for one in plans for border in one.document.inputs}
    document = CourseDocument(
        tuple(border_of(value) for value in submodel.graph.inputs if value.name in read),
        tuple(border_of(value) for value in submodel.graph.outputs),
        tuple(one.document for one in plans),
        course,
    )
    files: dict[str, bytes | memoryview] = {plan_file(number): one.plan for number, one in enumerate(plans)}
    files[DOCUMENT_FILE] = course_to_json(document)
    return files, _format_of_course(course), "\n".join(_log(one, len(weights)) for one in plans)


def _format_of_course(course: Course) -> int:
    operators = {step.operator for step in python_steps(course)}
    if not operators.isdisjoint(found_steps.MAKERS):
        return PLAN_FORMAT_OF_FOUND
    return PLAN_FORMAT_OF_PYTHON_STEPS if operators else PLAN_FORMAT_OF_COURSES


class _Written(NamedTuple):
    plan: bytes
    document: PlanDocument
    least_format: int


def _written(lowered: Lowered, weights: WeightBytes) -> _Written:
    """Returns the plan of steps, which are fused here; its constants go to `weights`."""
    inputs, outputs = lowered.inputs, lowered.outputs
    of_plan = [*inputs.values(), *([] if lowered.capacity is None else [lowered.capacity])]
    solved = solved_symbols(tensor.shape for tensor in of_plan)
    written = [*outputs.values(), *([] if lowered.moved is None else [lowered.moved])]
    of_inputs, of_outputs = ([one.name for one in some] for some in (of_plan, written))
    writer = PlanWriter(solved, of_inputs, of_outputs, lowered.constants, lowered.has_halves, weights)
    values: list[str] = []
    for step in fused(lowered.steps, set(of_outputs)):
        write_step(step, writer)
        values += [lowered.value_of(step.output.name)] * (len(writer.shown) - len(values))
    plan = writer.finished(of_plan, written)
    document = PlanDocument(
        _borders(inputs),
        _borders(outputs),
        tuple(solved.values()),
        tuple(_told(step, value, lowered) for step, value in zip(writer.shown, values, strict=True)),
        _grown_outputs(lowered, list(solved)),
        lowered.moved is not None,
    )
    return _Written(plan, document, _format_of(document, writer))


def _told(step: Mapping[str, str], value: str, lowered: Lowered) -> dict[str, str]:
    """Returns a step with the names that its values have in the model."""
    indices = {"indices": lowered.value_of(step["indices"])} if "indices" in step else {}
    return {**step, **indices, "value": value}


def _format_of(document: PlanDocument, writer: PlanWriter) -> int:
    """Returns the least format whose readers know all of a plan."""
    if writer.has_doubles:
        return PLAN_FORMAT_OF_DOUBLES
    if document.tells_moved:
        return PLAN_FORMAT_OF_MOVED
    if writer.has_halves or any(one.element == "fp16" for one in (*document.inputs, *document.outputs)):
        return PLAN_FORMAT_OF_HALVES
    return PLAN_FORMAT_OF_GROWN if document.grown else PLAN_FORMAT_OF_FIXED


def _grown_outputs(lowered: Lowered, symbols: Sequence[Atom]) -> tuple[GrownOutput, ...]:
    """Returns the outputs that grow, in the words of a document.

    Raises:
        BuildRefusedError: the shapes of the inputs do not tell by how much.
    """
    inputs, outputs = list(lowered.inputs), list(lowered.outputs)
    found = []
    for name, (past, axis, added, is_total) in lowered.grown.items():
        if not isinstance(added, int) and added not in symbols:
            raise BuildRefusedError(f"the size {added} cannot be told from the shapes of the inputs here")
        by, symbol = (added, None) if isinstance(added, int) else (0, symbols.index(added))
        found.append(GrownOutput(outputs.index(name), inputs.index(past), axis, by, symbol, is_total))
    return tuple(found)


def _borders(tensors: Mapping[str, Tensor]) -> tuple[PlanBorder, ...]:
    return tuple(
        PlanBorder(name, tensor.element, tuple(size if isinstance(size, int) else None for size in tensor.shape))
        for name, tensor in tensors.items()
    )


def _log(written: _Written, weights_bytes: int) -> str:
    """Returns the plan in words: one line a step."""
    steps = written.document.steps
    conversions = sum(step["kernel"] in ("to_plain", "to_blocked") for step in steps)
    lines = [
        f"a plan of {len(written.plan)} bytes, {len(steps)} steps, {conversions} layout conversions, "
        f"weights {weights_bytes} bytes"
    ]
    return "\n".join([*lines, *(f"{step['kernel']}: {step['what']}" for step in steps)])
