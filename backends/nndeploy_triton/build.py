# SPDX-License-Identifier: Apache-2.0
"""Submodel -> artifact: cubins for each compute capability of the target, the constants, and the plan.

    constants.bin            all constants, placed on the GPU once
    sm_89/plan.json          where everything lies and what is launched, for compute capability 8.9
    sm_89/<kernel>.cubin     the compiled kernels

Law: the same submodel and target give the same bytes, unless block sizes were measured on a GPU that is here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import onnx_ir as ir

from nndeploy.backend_kit.gpu_probe import NO_GPU
from nndeploy.backend_kit.kernels.memory import Lifetime, aligned, piled, placed
from nndeploy.backend_kit.kernels.usage import readers_of
from nndeploy.errors import BuildRefusedError
from nndeploy.plugin.interface import Artifact
from nndeploy.target.target import Gpu, Target
from nndeploy.values.size import Atom, Dim, Symbol, atoms_of, bounds, is_fixed, of_atom, replaced
from nndeploy.values.solving import solved_symbols
from nndeploy.values.types import DimRange
from nndeploy_triton.compile_kernels import CompiledKernel, Compiler
from nndeploy_triton.fusion import fused
from nndeploy_triton.gpu import GpuFacts, facts_of
from nndeploy_triton.kernel_specs import Planned, planned
from nndeploy_triton.lowering.context import Lowered
from nndeploy_triton.lowering.table import lower
from nndeploy_triton.plan import (
    ALIGNMENT,
    CONSTANTS_FILE,
    FORMAT,
    MAX_GRID,
    PLAN_FILE,
    SHAPES_FORMAT,
    ArenaValue,
    Border,
    Kernel,
    Launch,
    Place,
    Shapes,
    TritonPlan,
    arena_offset,
    grid_of,
    plan_to_json,
    solved_size,
)
from nndeploy_triton.shape_plan import with_sizes
from nndeploy_triton.steps.step import Tile, TritonStep
from nndeploy_triton.views import DTYPE_BYTES, View

ChooseTile: TypeAlias = Callable[[TritonStep, GpuFacts], Tile]


@dataclass(frozen=True, slots=True)
class FusedSubmodel:
    """A submodel as fused steps, with its borders and the data of its constants."""

    steps: tuple[TritonStep, ...]
    lowered: Lowered
    inputs: Mapping[str, View]
    outputs: Mapping[str, View]


def build(
    submodel: ir.Model,
    target: Target,
    ranges: Mapping[str, DimRange],
    compiler: Compiler,
    choose_tile: ChooseTile,
) -> Artifact:
    """Returns the artifact of a submodel for the GPUs of a target.

    Raises:
        BuildRefusedError: a node has no kernel, a kernel does not compile, or the target has no GPU.
    """
    if not target.gpus:
        raise BuildRefusedError(NO_GPU)
    fused_submodel = fused_submodel_of(submodel, ranges)
    places, constants = _constant_places(fused_submodel)
    files: dict[str, bytes] = {CONSTANTS_FILE: constants}
    capabilities = {gpu.compute_capability: gpu for gpu in reversed(target.gpus)}
    for gpu in capabilities.values():
        files.update(_files_for(fused_submodel, gpu, places, len(constants), compiler, choose_tile))
    wanted = sorted(capabilities)
    has_shapes = not all(is_fixed(view.shape) for view in fused_submodel.inputs.values())
    return Artifact(
        files=files,
        metadata={"format": SHAPES_FORMAT if has_shapes else FORMAT},
        requires={"compute_capability": wanted},
        native_code=True,
    )


def fused_submodel_of(submodel: ir.Model, ranges: Mapping[str, DimRange]) -> FusedSubmodel:
    """Returns the submodel as fused steps.

    Raises:
        BuildRefusedError: a node has no rule, or its rule says no.
    """
    lowered, inputs, outputs = lower(submodel, ranges)
    kept = {view.name for view in outputs.values()}
    return FusedSubmodel(tuple(fused(lowered.steps, kept)), lowered, inputs, outputs)


def folder_of(capability: str) -> str:
    """Returns the folder of an artifact that holds what is made for a compute capability: "sm_89" for 8.9."""
    return f"sm_{capability.replace('.', '')}"


def _constant_places(submodel: FusedSubmodel) -> tuple[dict[str, Place], bytes]:
    """Returns where each constant that is read lies, and the bytes of all, in the order of their first use."""
    constants = submodel.lowered.constants
    used = [view.name for step in submodel.steps for view in step.inputs]
    used += [view.name for view in submodel.outputs.values()]
    places: dict[str, Place] = {}
    data = bytearray()
    for name in dict.fromkeys(used):
        if name in constants:
            places[name] = Place("constants", len(data))
            raw = constants[name].tobytes()
            data += raw + bytes(aligned(len(raw), ALIGNMENT) - len(raw))
    return places, bytes(data)


def _files_for(
    submodel: FusedSubmodel,
    gpu: Gpu,
    constants: Mapping[str, Place],
    constants_bytes: int,
    compiler: Compiler,
    choose_tile: ChooseTile,
) -> dict[str, bytes]:
    facts, folder = facts_of(gpu), folder_of(gpu.compute_capability)
    arena = _arena(submodel)
    roots = {**arena.places, **constants}
    launches = [planned(step.request(facts, choose_tile(step, facts)), roots) for step in submodel.steps]
    launches = [launch for launch in launches if _has_work(launch)]
    compiled = {spec.name: compiler(spec, facts) for spec in {one.spec.name: one.spec for one in launches}.values()}
    plan = TritonPlan(
        arena.num_bytes,
        constants_bytes,
        _borders(submodel.inputs, roots),
        _borders(submodel.outputs, roots),
        {one.spec.name: kernel_of(one, compiled[one.spec.name]) for one in launches},
        tuple(Launch(one.spec.name, one.tensors, one.sizes) for one in launches),
    )
    _check_grids(plan)
    plan = _over_symbols(plan, arena)
    cubins = {f"{folder}/{name}.cubin": kernel.cubin for name, kernel in compiled.items()}
    return {f"{folder}/{PLAN_FILE}": plan_to_json(plan), **cubins}


@dataclass(frozen=True, slots=True)
class _Arena:
    """Where each value lies that is no constant, and the most bytes of all; `values` where sizes are not fixed."""

    places: Mapping[str, Place]
    num_bytes: int
    values: tuple[ArenaValue, ...] = ()


def _arena(submodel: FusedSubmodel) -> _Arena:
    """Returns the arena: for the largest sizes of the ranges, in which values move down where sizes are smaller.

    Inputs are written before the first step, outputs are read after the last one.
    """
    lowered, end = submodel.lowered, len(submodel.steps)
    first = {step.output.name: number for number, step in reversed(list(enumerate(submodel.steps)))}
    first.update(dict.fromkeys((view.name for view in submodel.inputs.values()), -1))
    last = {name: numbers[-1] for name, numbers in readers_of(submodel.steps).items()}
    last.update(dict.fromkeys((view.name for view in submodel.outputs.values()), end))
    sizes = {name: _num_bytes(lowered.roots[name]) for name in first if name not in lowered.constants}
    lifetimes = {
        name: Lifetime(bounds(size)[1], first[name], max(first[name], last.get(name, first[name])))
        for name, size in sizes.items()
    }
    offsets, num_bytes = placed(lifetimes, ALIGNMENT)
    if is_fixed(sizes.values()):
        return _Arena({name: Place("arena", offset) for name, offset in offsets.items()}, num_bytes)
    pile = piled(lifetimes, offsets)
    numbers = {name: number for number, name in enumerate(pile)}
    values = tuple(ArenaValue(sizes[name], tuple(numbers[one] for one in below)) for name, below in pile.items())
    return _Arena({name: Place("arena", arena_offset(number)) for name, number in numbers.items()}, num_bytes, values)


def _num_bytes(view: View) -> Dim:
    return view.size * DTYPE_BYTES[view.dtype]


def _over_symbols(plan: TritonPlan, arena: _Arena) -> TritonPlan:
    """Returns the plan with its sizes over the symbols that the shapes of the inputs give, where any depends on them.

    Raises:
        BuildRefusedError: they do not give one.
    """
    solved = solved_symbols(border.shape for border in plan.inputs)
    known: dict[Atom, Dim] = {atom: solved_size(number, solved[atom]) for number, atom in enumerate(solved)}
    known |= {atom: of_atom(atom) for place in arena.places.values() for atom in atoms_of(place.offset)}

    def of_known(atom: Atom) -> "Dim | None":
        if isinstance(atom, Symbol) and atom not in known:
            raise BuildRefusedError(f"the size {atom.name!r} cannot be told from the shapes of the inputs here")
        return known.get(atom)

    over = with_sizes(plan, lambda size: replaced(size, of_known))
    values = tuple(ArenaValue(replaced(one.num_bytes, of_known), one.below) for one in arena.values)
    return replace(over, shapes=Shapes(tuple(solved.values()), values)) if solved else over


def _borders(views: Mapping[str, View], roots: Mapping[str, Place]) -> tuple[Border, ...]:
    found = []
    for name, view in views.items():
        root = roots[view.name]
        place = Place(root.memory, root.offset + view.offset * DTYPE_BYTES[view.dtype])
        found.append(Border(name, place, view.dtype, view.shape))
    return tuple(found)


def _has_work(launch: Planned) -> bool:
    """Whether any block runs; a tensor without elements needs none."""
    sizes = dict(launch.sizes)
    return all(sizes[name] > 0 for axis in launch.grid for name, _ in axis)


def kernel_of(launch: Planned, compiled: CompiledKernel) -> Kernel:
    """Returns what a plan says of a compiled kernel."""
    return Kernel(
        file=f"{launch.spec.name}.cubin",
        symbol=compiled.symbol,
        parameters=compiled.parameters,
        num_null=compiled.num_null,
        grid=launch.grid,
        num_warps=launch.spec.num_warps,
        shared_bytes=compiled.shared_bytes,
    )


def _check_grids(plan: TritonPlan) -> None:
    for launch in plan.launches:
        blocks = [bounds(number)[1] for number in grid_of(plan.kernels[launch.kernel], launch)]
        if any(number > most for number, most in zip(blocks, MAX_GRID, strict=True)):
            raise BuildRefusedError(f"{launch.kernel} would need a grid of {tuple(blocks)}, a GPU takes {MAX_GRID}")
