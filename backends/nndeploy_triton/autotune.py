# SPDX-License-Identifier: Apache-2.0
"""Which tile each step gets: the table's, or the fastest one where the target's GPU is in this machine.

Sizes that depend on the inputs are measured in the middle of their ranges. Measured choices differ from run to run, so
an artifact with them says that it is not deterministic.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

import onnx_ir as ir

from nndeploy import cuda
from nndeploy.backend_kit.kernels.memory import aligned
from nndeploy.cuda.array import Allocation
from nndeploy.errors import BuildRefusedError, UnavailableError
from nndeploy.plugin.interface import Artifact
from nndeploy.target.target import Target
from nndeploy.values.size import typical
from nndeploy.values.types import DimRange
from nndeploy_triton.build import build, kernel_of
from nndeploy_triton.compile_kernels import Compiler, compile_kernel
from nndeploy_triton.gpu import GpuFacts
from nndeploy_triton.kernel_specs import planned
from nndeploy_triton.launching import launcher
from nndeploy_triton.plan import ALIGNMENT, Launch, Place
from nndeploy_triton.steps.step import Tile, TritonStep
from nndeploy_triton.views import DTYPE_BYTES, View

MAX_CANDIDATES = 6
NUM_WARM = 3
NUM_TIMED = 20


def build_tuned(submodel: ir.Model, target: Target, ranges: Mapping[str, DimRange]) -> Artifact:
    """Returns the artifact of a submodel, its tiles measured where the target is this machine and has its GPU.

    Raises:
        BuildRefusedError: a node has no kernel, or a kernel does not compile.
    """
    gpu = _gpu_here(target)
    if gpu is None:
        return build(submodel, target, ranges, compile_kernel, tile_of_table)
    tuner = Tuner(gpu, compile_kernel)
    return replace(build(submodel, target, ranges, compile_kernel, tuner.choose), deterministic=False)


def tile_of_table(step: TritonStep, gpu: GpuFacts) -> Tile:
    """Returns the tile that the table says."""
    return step.tiles(gpu)[0]


class Tuner:
    """Measures each step's candidates once on a GPU; equal steps share the outcome."""

    def __init__(
        self, gpu: cuda.Device, compiler: Compiler, clock_ns: Callable[[], int] = time.perf_counter_ns
    ) -> None:
        """Measures on `gpu` by `clock_ns`."""
        self._gpu = gpu
        self._compiler = compiler
        self._clock_ns = clock_ns
        self._known: dict[object, Tile] = {}

    def choose(self, step: TritonStep, facts: GpuFacts) -> Tile:
        """Returns the fastest of the step's first candidates; one that does not compile is passed over."""
        tiles = step.tiles(facts)[:MAX_CANDIDATES]
        key = _key(step, facts, tiles[0])
        if key not in self._known:
            times = {tile: self._nanoseconds(step, facts, tile) for tile in tiles}
            self._known[key] = min(tiles, key=lambda tile: times[tile])
        return self._known[key]

    def _nanoseconds(self, step: TritonStep, facts: GpuFacts, tile: Tile) -> float:
        request = step.request(facts, tile)
        offsets, num_bytes = _scratch([view for _, view in request.tensors])
        one = planned(request, {name: Place("arena", offset) for name, offset in offsets.items()})
        places = tuple((name, Place(place.memory, typical(place.offset))) for name, place in one.tensors)
        sizes = tuple((name, typical(size)) for name, size in one.sizes)
        try:
            compiled = self._compiler(one.spec, facts)
        except BuildRefusedError:
            return float("inf")
        loaded = self._gpu.load_module(compiled.cubin).kernel(compiled.symbol)
        memory = Allocation(self._gpu, num_bytes)
        call = launcher(loaded, kernel_of(one, compiled), Launch(one.spec.name, places, sizes), {"arena": memory})
        for _ in range(NUM_WARM):
            call()
        self._gpu.synchronize()
        start = self._clock_ns()
        for _ in range(NUM_TIMED):
            call()
        self._gpu.synchronize()
        return (self._clock_ns() - start) / NUM_TIMED


def _gpu_here(target: Target) -> cuda.Device | None:
    """Returns this machine's GPU if `target` describes this machine, None otherwise."""
    if not target.is_host or len({gpu.compute_capability for gpu in target.gpus}) != 1:
        return None
    try:
        gpu = cuda.device(0)
    except UnavailableError:
        return None
    return gpu if gpu.compute_capability == target.gpus[0].compute_capability else None


def _key(step: TritonStep, facts: GpuFacts, tile: Tile) -> object:
    """Returns what makes two steps take the same time: everything of a request but the names of its tensors."""
    request = step.request(facts, tile)
    tensors = tuple((name, replace(view, name="")) for name, view in request.tensors)
    return facts, replace(request, tensors=tensors)


def _scratch(views: list[View]) -> tuple[dict[str, int], int]:
    """Returns a place for each value among the views, and the bytes of all."""
    needed: dict[str, int] = {}
    for view in views:
        needed[view.name] = max(needed.get(view.name, 0), _extent_bytes(view))
    offsets, at = dict[str, int](), 0
    for name, num_bytes in needed.items():
        offsets[name] = at
        at += aligned(num_bytes, ALIGNMENT)
    return offsets, at


def _extent_bytes(view: View) -> int:
    steps = zip(view.shape, view.strides, strict=True)
    last = typical(view.offset) + sum(max(0, (typical(size) - 1) * typical(stride)) for size, stride in steps)
    return (last + 1) * DTYPE_BYTES[view.dtype]
