# SPDX-License-Identifier: Apache-2.0
"""Submodel -> artifact: the steps, their plans and constants as the files of `program.py`.

A plan fits one cuDNN version and one kind of GPU (its architecture and number of multiprocessors), so the artifact
requires that compute capability, and the session says the rest.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir
from safetensors.numpy import save

from nndeploy.backend_kit.gpu_probe import NO_GPU
from nndeploy.errors import BuildRefusedError, UnavailableError, one_line
from nndeploy.plugin.interface import Artifact, BuildOptions
from nndeploy.target.target import Gpu, Target
from nndeploy_cudnn.buffers import Buffer, lay_out
from nndeploy_cudnn.emitter import Emission, EmittedStep
from nndeploy_cudnn.ladder import Ladder, ladder_of
from nndeploy_cudnn.lowering import Lowered, lower, lower_rungs
from nndeploy_cudnn.operations import Array, Value
from nndeploy_cudnn.patterns.translation import NotTakenError
from nndeploy_cudnn.planner import Planner, planner_for
from nndeploy_cudnn.program import (
    CONSTANTS_FILE,
    PLANS_FILE,
    PROGRAM_FILE,
    Binding,
    Program,
    ProgramStep,
    Tensor,
    folder_of,
    program_to_json,
)


def build(submodel: ir.Model, target: Target, options: BuildOptions) -> Artifact:
    """Returns the artifact of a submodel for the first GPU of the target.

    Raises:
        BuildRefusedError: cuDNN does not take it, or is not usable here.
    """
    if not target.gpus:
        raise BuildRefusedError(NO_GPU)
    gpu, graph = target.gpus[0], submodel.graph
    try:
        with planner_for(gpu) as planner:
            ladder = ladder_of(graph.inputs, options.ranges)
            if ladder is None:
                lowered = lower(list(graph), graph.inputs, graph.outputs, planner, options.ranges)
                return _artifact(lowered, gpu, planner)
            every = lower_rungs(graph, ladder, planner, options.ranges)
            return _of_rungs(ladder, [_artifact(lowered, gpu, planner) for lowered in every])
    except (NotTakenError, UnavailableError) as err:
        raise BuildRefusedError(one_line(str(err))) from err


def _of_rungs(ladder: Ladder, made: Sequence[Artifact]) -> Artifact:
    """Returns the artifacts of all rungs as one, each in a folder of its own; what is equal is stored once."""
    files = zip(ladder.rungs, made, strict=True)
    return replace(
        made[-1],
        files={f"{folder_of(rows)}/{name}": data for rows, one in files for name, data in one.files.items()},
        metadata={**made[-1].metadata, "rows": list(ladder.rungs)},
        deterministic=all(one.deterministic for one in made),
        log="\n".join(f"{rows} rows: {one.log}" for rows, one in zip(ladder.rungs, made, strict=True)),
    )


def _artifact(lowered: Lowered, gpu: Gpu, planner: Planner) -> Artifact:
    emission = lowered.emission
    steps, buffers = emission.steps, emission.memory.buffers
    constant_bytes, arena_bytes = lay_out(buffers, [_uses(step) for step in steps])
    texts = list(dict.fromkeys(step.planned.text for step in steps))
    constants = _constants(emission)
    program = Program(
        cudnn_version=planner.version,
        gpu=gpu.name,
        inputs=_tensors(lowered.inputs),
        outputs=_tensors(lowered.outputs),
        constant_bytes=constant_bytes,
        arena_bytes=arena_bytes,
        workspace_bytes=max((step.planned.workspace_bytes for step in steps), default=0),
        constants=tuple((name, buffers[n].offset, buffers[n].num_bytes) for name, n in constants.items()),
        plans=_ranges(texts),
        steps=tuple(_program_step(step, buffers, texts.index(step.planned.text)) for step in steps),
    )
    _check_memory(program, gpu)
    return Artifact(
        files={
            PROGRAM_FILE: program_to_json(program),
            PLANS_FILE: "".join(texts).encode(),
            CONSTANTS_FILE: _safetensors(emission, constants),
        },
        metadata={"cudnn_version": planner.version, "gpu": gpu.name},
        requires={"compute_capability": [gpu.compute_capability]},
        native_code=True,
        deterministic=planner.is_fixed or not any(step.planned.is_compiled for step in steps),
        log=_log(emission, program),
    )


def _uses(step: EmittedStep) -> set[int]:
    return {view.buffer for _, view in step.work.bindings}


def _tensors(values: Sequence[Value]) -> tuple[Tensor, ...]:
    return tuple(Tensor(value.name, value.dtype, value.dims) for value in values)


def _ranges(texts: Sequence[str]) -> tuple[tuple[int, int], ...]:
    found, offset = list[tuple[int, int]](), 0
    for text in texts:
        size = len(text.encode())
        found.append((offset, size))
        offset += size
    return tuple(found)


def _program_step(step: EmittedStep, buffers: Sequence[Buffer], plan: int) -> ProgramStep:
    bindings = tuple(
        Binding(uid, (buffer := buffers[view.buffer]).kind, buffer.index, buffer.offset + view.offset_bytes)
        for uid, view in step.work.bindings
    )
    return ProgramStep(step.makes, plan, bindings, step.work.scalars)


def _constants(emission: Emission) -> dict[str, int]:
    """Returns name -> buffer of the constants that some step reads; names are numbers, so no text of the model's."""
    used = sorted({number for step in emission.steps for number in _uses(step)})
    return {f"c{number:06}": number for number in used if emission.memory.buffers[number].kind == "constant"}


def _safetensors(emission: Emission, constants: dict[str, int]) -> bytes:
    arrays = {name: emission.memory.constants[number] for name, number in constants.items()}
    return bytes(save({name: _storable(array) for name, array in arrays.items()}))


def _storable(array: Array) -> Array:
    """Returns an array of a type that numpy itself has: bfloat16 as its bits."""
    return array.view(np.uint16) if array.dtype.name == "bfloat16" else array


def _check_memory(program: Program, gpu: Gpu) -> None:
    needed = program.constant_bytes + program.arena_bytes + program.workspace_bytes
    if gpu.memory_bytes and needed > gpu.memory_bytes:
        raise NotTakenError(f"it needs {needed} bytes, {gpu.name} has {gpu.memory_bytes}")


def _log(emission: Emission, program: Program) -> str:
    compiled = sum(step.planned.is_compiled for step in emission.steps)
    return (
        f"cuDNN {program.cudnn_version} for {program.gpu}: {len(program.steps)} steps ({emission.num_copies} copies), "
        f"{len(program.plans)} plans, {compiled} steps with compiled code, arena {program.arena_bytes} bytes, "
        f"workspace {program.workspace_bytes} bytes"
    )
