# SPDX-License-Identifier: Apache-2.0
"""Submodel -> artifact that is data: a plan for the kernel library, the weights as the model has them, and a document.

    plan.bin      the steps, for nndeploy_kernels/c/model/plan.h
    weights.bin   each constant once, in the order of the model
    plan.json     borders, symbols and steps, for callers and for people

Law: the same submodel gives the same bytes, whatever the target: the library of the box does the rest when it loads.
"""

from collections.abc import Mapping, Sequence

import onnx_ir as ir
from nndeploy_kernels.levels import least_machines

from nndeploy.errors import BuildRefusedError
from nndeploy.plugin.interface import Artifact
from nndeploy.values.size import Atom
from nndeploy.values.solving import solved_symbols
from nndeploy.values.types import DimRange
from nndeploy_native.fusion import fused
from nndeploy_native.lowering.context import Lowered
from nndeploy_native.lowering.table import lower
from nndeploy_native.plan import (
    DOCUMENT_FILE,
    PLAN_FILE,
    PLAN_FORMAT_OF_FIXED,
    PLAN_FORMAT_OF_GROWN,
    PLAN_FORMAT_OF_HALVES,
    PLAN_FORMAT_OF_MOVED,
    WEIGHTS_FILE,
    GrownOutput,
    PlanBorder,
    PlanDocument,
    document_to_json,
)
from nndeploy_native.plan_steps import write_step
from nndeploy_native.plan_writer import PlanWriter
from nndeploy_native.tensors import Tensor
from nndeploy_native.transforms import transformed


def build(
    submodel: ir.Model, ranges: Mapping[str, DimRange], *, precision: str = "fp32", buffer_bytes: int = 0
) -> Artifact:
    """Returns the artifact of a submodel; `buffer_bytes` is what the user set for windows, 0 where he did not.

    Raises:
        BuildRefusedError: a node has no rule, or the library no operator for a step.
    """
    return artifact_of(lower(transformed(submodel), ranges), precision=precision, buffer_bytes=buffer_bytes)


def artifact_of(lowered: Lowered, *, precision: str = "fp32", buffer_bytes: int = 0) -> Artifact:
    """Returns the artifact of steps, which are fused here.

    Raises:
        BuildRefusedError: the library has no operator for a step.
    """
    inputs, outputs = lowered.inputs, lowered.outputs
    of_plan = [*inputs.values(), *([] if lowered.capacity is None else [lowered.capacity])]
    solved = solved_symbols(tensor.shape for tensor in of_plan)
    written = [*outputs.values(), *([] if lowered.moved is None else [lowered.moved])]
    of_inputs, of_outputs = ([one.name for one in some] for some in (of_plan, written))
    writer = PlanWriter(solved, of_inputs, of_outputs, lowered.constants, keeps_halves=lowered.has_halves)
    values: list[str] = []
    for step in fused(lowered.steps, set(of_outputs)):
        write_step(step, writer)
        values += [lowered.value_of(step.output.name)] * (len(writer.shown) - len(values))
    plan = writer.finished(of_plan, written)
    document = PlanDocument(
        _borders(inputs),
        _borders(outputs),
        tuple(solved.values()),
        tuple({**step, "value": value} for step, value in zip(writer.shown, values, strict=True)),
        _grown_outputs(lowered, list(solved)),
        lowered.moved is not None,
    )
    metadata: dict[str, int | str] = {"format": _format_of(document, writer)}
    metadata |= {"precision": precision} if precision != "fp32" else {}
    metadata |= {"buffer_bytes": buffer_bytes} if buffer_bytes else {}
    return Artifact(
        files={PLAN_FILE: plan, WEIGHTS_FILE: bytes(writer.weights), DOCUMENT_FILE: document_to_json(document)},
        metadata=metadata,
        requires={"machines": least_machines(precision)},
        precision=precision,
        log=_log(document, len(plan), len(writer.weights)),
    )


def _format_of(document: PlanDocument, writer: PlanWriter) -> int:
    """Returns the least format whose readers know all of a plan."""
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


def _log(document: PlanDocument, plan_bytes: int, weights_bytes: int) -> str:
    """Returns the plan in words: one line a step."""
    conversions = sum(step["kernel"] in ("to_plain", "to_blocked") for step in document.steps)
    lines = [
        f"a plan of {plan_bytes} bytes, {len(document.steps)} steps, {conversions} layout conversions, "
        f"weights {weights_bytes} bytes"
    ]
    return "\n".join([*lines, *(f"{step['kernel']}: {step['what']}" for step in document.steps)])
