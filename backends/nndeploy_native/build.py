# SPDX-License-Identifier: Apache-2.0
"""Submodel -> artifact: a shared library for the target's instruction set, its packed constants, and the plan.

    kernels.so      nnd_run(call, pool): all steps, one after the other
    constants.bin   weights as the kernels read them
    plan.json       borders, the arena, and each step with its window and buffer

One arena holds all values between; values that never live at the same time share memory. Law: the same submodel and
target give the same bytes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx_ir as ir

from nndeploy.backend_kit.kernels.memory import aligned
from nndeploy.errors import BuildRefusedError
from nndeploy.plugin.interface import Artifact, BuildOptions
from nndeploy.target.target import Target
from nndeploy.values.size import Dim, Size, bounds, typical
from nndeploy.values.solving import solved_symbols
from nndeploy.values.types import DimRange
from nndeploy_native.arena import arena_of
from nndeploy_native.emit import PlaceOf, sources_of, step_sources
from nndeploy_native.fusion import fused
from nndeploy_native.isa import Isa, isa_for, no_isa_reason
from nndeploy_native.library import library_from_source
from nndeploy_native.lowering.context import Lowered
from nndeploy_native.lowering.table import lower
from nndeploy_native.plan import (
    ALIGNMENT,
    CONSTANTS_FILE,
    FORMAT,
    LIBRARY_FILE,
    PLAN_FILE,
    SHAPES_FORMAT,
    Border,
    Entry,
    NativePlan,
    Shapes,
    plan_to_json,
)
from nndeploy_native.plan_check import seal_of
from nndeploy_native.size_table import SizeTable, largest_code
from nndeploy_native.steps.movement import Convert
from nndeploy_native.steps.step import Machine, NativeStep, Note
from nndeploy_native.tensors import Array, Tensor, padded

_C_TYPES = {"float32": "float", "int32": "int32_t", "uint16": "uint16_t"}
_C_ELEMENTS = {"fp32": "float", "int32": "int32_t", "int64": "int64_t"}


@dataclass(slots=True)
class Constants:
    """The bytes of constants.bin as it grows; equal constants are kept once."""

    data: bytearray = field(default_factory=bytearray)
    offsets: dict[tuple[str, bytes], int] = field(default_factory=dict)

    def offset_of(self, array: Array) -> int:
        """Returns where an array lies, adding it where it is not there."""
        raw = np.ascontiguousarray(array).tobytes()
        key = (array.dtype.str, raw)
        if key not in self.offsets:
            self.offsets[key] = len(self.data)
            self.data += raw + bytes(aligned(len(raw), ALIGNMENT) - len(raw))
        return self.offsets[key]


def machine_of(target: Target, options: BuildOptions) -> Machine:
    """Returns what a target's kernels are made for; `buffer` among its caches sets the window buffer's bytes.

    Raises:
        BuildRefusedError: there is no instruction set for it.
    """
    isa = isa_for(target, options.precision)
    if isa is None:
        raise BuildRefusedError(no_isa_reason(target, options.precision))
    caches = dict(target.caches)
    return Machine(isa, caches.get("l2", 0), caches.get("buffer", 0), options.threads or 0)


def build(submodel: ir.Model, machine: Machine, ranges: Mapping[str, DimRange], workdir: Path) -> Artifact:
    """Returns the artifact of a submodel for a machine.

    Raises:
        BuildRefusedError: a node has no kernel, or there is no compiler.
    """
    return artifact_of(lower(submodel, ranges), machine, workdir)


def artifact_of(lowered: Lowered, machine: Machine, workdir: Path) -> Artifact:
    """Returns the artifact of steps, fused here; inputs and outputs may be blocked, for measurements.

    Raises:
        BuildRefusedError: there is no compiler.
    """
    kept = {tensor.name for tensor in lowered.outputs.values()}
    steps = fused(lowered.steps, kept, machine)
    calls = [step.call(machine) for step in steps]
    table = SizeTable(solved_symbols(tensor.memory_shape(machine.isa.lanes) for tensor in lowered.inputs.values()))
    inputs, outputs = (_borders(tensors, machine.isa, table) for tensors in (lowered.inputs, lowered.outputs))
    arena = arena_of(steps, lowered, machine.isa, table)
    scratch = [call.scratch_bytes for call in calls]
    constants = Constants()
    most_scratch = aligned(max((bounds(one)[1] for one in scratch), default=0), ALIGNMENT)
    steps_in_c = step_sources(calls, _place_of(lowered, arena.offsets, constants), table)
    shapes = _shapes(table, arena.num_bytes, scratch)
    plan = NativePlan(
        machine.isa.name,
        arena.most_bytes,
        most_scratch,
        len(constants.data),
        inputs,
        outputs,
        tuple(
            {"kernel": call.kernel, **_shown(call.notes), "value": lowered.value_of(call.output.name)} for call in calls
        ),
        shapes,
    )
    plan_json, data = plan_to_json(plan), bytes(constants.data)
    sources = sources_of(calls, steps_in_c, table, seal_of(plan_json, data))
    library = library_from_source(sources, machine.isa, workdir)
    return Artifact(
        files={LIBRARY_FILE: library, CONSTANTS_FILE: data, PLAN_FILE: plan_json},
        metadata={
            "format": FORMAT if plan.shapes is None else SHAPES_FORMAT,
            "isa": machine.isa.name,
            "arch": machine.isa.arch,
            "cpu_features": list(machine.isa.cpu_features),
        },
        requires={"arch": machine.isa.arch, "cpu_features": list(machine.isa.cpu_features)},
        native_code=True,
        precision=machine.isa.precision,
        log=_log(steps, plan),
    )


def _borders(tensors: Mapping[str, Tensor], isa: Isa, table: SizeTable) -> tuple[Border, ...]:
    return tuple(
        Border(name, _axes(tensor, isa, table), f"blocked {isa.precision}" if tensor.is_blocked else tensor.element)
        for name, tensor in tensors.items()
    )


def _axes(tensor: Tensor, isa: Isa, table: SizeTable) -> tuple[int | Entry, ...]:
    shape = tensor.memory_shape(isa.lanes)
    return tuple(Entry(table.entry_of(size)) if isinstance(size, Size) else size for size in shape)


def _shapes(table: SizeTable, arena_bytes: str, scratch: Sequence[Dim]) -> Shapes | None:
    """Returns what the run half needs to fill the table, None where nothing depends on the inputs."""
    if not table.solved:
        return None
    each = largest_code(table.code_of(padded(one, ALIGNMENT)) for one in scratch)
    arena_entry, scratch_entry = table.added(arena_bytes), table.added(each)
    return Shapes(tuple(table.solved.values()), table.num_entries, arena_entry, scratch_entry)


def _shown(notes: Mapping[str, Note]) -> dict[str, int | str]:
    """Returns notes for readers: sizes that are not fixed as they are in the middle of their ranges."""
    return {key: note if isinstance(note, str) else typical(note) for key, note in notes.items()}


def _place_of(lowered: Lowered, offsets: Mapping[str, str], constants: Constants) -> PlaceOf:
    inputs = {tensor.name: number for number, tensor in enumerate(lowered.inputs.values())}
    outputs = {tensor.name: number for number, tensor in enumerate(lowered.outputs.values())}

    def place_of(one: Tensor | Array) -> str:
        if not isinstance(one, Tensor):
            return f"(const {_C_TYPES[one.dtype.name]} *)(call->constants + {constants.offset_of(one)})"
        kind = "nnd_elem" if one.is_blocked else _C_ELEMENTS[one.element]
        if one.name in inputs:
            return f"(const {kind} *)call->inputs[{inputs[one.name]}]"
        if one.name in outputs:
            return f"({kind} *)call->outputs[{outputs[one.name]}]"
        if one.name in lowered.constants:
            return place_of(lowered.constants[one.name])
        return f"({kind} *)(call->arena + {offsets[one.name]})"

    return place_of


def _log(steps: Sequence[NativeStep], plan: NativePlan) -> str:
    """Returns the plan in words: one line a step, with window and buffer where there is one."""
    conversions = sum(isinstance(step, Convert) for step in steps)
    lines = [
        f"{plan.isa}: {len(steps)} steps, {conversions} layout conversions, arena {plan.arena_bytes} bytes, "
        f"scratch {plan.scratch_bytes} bytes a thread, "
        f"constants {plan.constants_bytes} bytes"
    ]
    for step in plan.steps:
        rest = ", ".join(f"{key} {value}" for key, value in step.items() if key not in ("kernel", "what", "value"))
        lines.append(f"{step['kernel']}: {step['what']}" + (f" ({rest})" if rest else ""))
    return "\n".join(lines)
