# SPDX-License-Identifier: Apache-2.0
"""Artifact -> running session: the run half of the backend; numpy and nndeploy.cuda, never Triton or onnx.

At load the constants are placed on the GPU once, memory for all values is taken once, and all launches are recorded
as one CUDA graph. A run copies the inputs in, launches the graph and copies the outputs out, all in the order of one
stream, so nothing waits until somebody reads a result.

Where shapes are not fixed, the first run of a shape makes its plan of numbers and queues the launches one by one, the
second records them. Memory is taken for the largest shape so far.
"""

import threading
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np

from nndeploy.cuda import CapturedCall, Device, DeviceArray, Kernel, device, gpu_number
from nndeploy.cuda.array import Allocation
from nndeploy.errors import BundleError, UnavailableError, UsageError
from nndeploy.plugin.interface import Json, OpenOptions
from nndeploy.values.size import fixed
from nndeploy.values.types import Value, numpy_dtype
from nndeploy_triton.launching import Launcher, launcher
from nndeploy_triton.plan import CONSTANTS_FILE, FORMAT, PLAN_FILE, SHAPES_FORMAT, Border, TritonPlan, plan_from_json
from nndeploy_triton.shape_plan import plan_at

MAX_KEPT = 64
"""Shapes whose launches are kept, with a graph of those that ran twice."""

_Shapes: TypeAlias = tuple[tuple[int, ...], ...]


def open_session(
    files: Mapping[str, memoryview], metadata: Mapping[str, Json], options: OpenOptions
) -> "TritonSession":
    """Returns a session on the GPU that `options` names.

    Raises:
        UnavailableError: there is no such GPU, or the artifact has no code for its compute capability.
        BundleError: the artifact lacks a file, or its plan is malformed.
    """
    number = gpu_number(options.device)
    if number is None:
        raise UnavailableError(
            f"Triton kernels run on an NVIDIA GPU, not on {options.device!r}", hint="--device cuda:0"
        )
    gpu = device(number)
    if metadata.get("format") not in (FORMAT, SHAPES_FORMAT):
        raise BundleError(
            f"an artifact of format {metadata.get('format')!r:.20}; this nndeploy reads {FORMAT} and {SHAPES_FORMAT}"
        )
    folder = f"sm_{gpu.compute_capability.replace('.', '')}"
    if f"{folder}/{PLAN_FILE}" not in files:
        built = sorted({name.split("/")[0] for name in files if name.endswith(f"/{PLAN_FILE}")})
        raise UnavailableError(
            f"built for {', '.join(built) or 'no GPU'}, this one is {folder} ({gpu.gpu_name})",
            where=gpu.name,
            hint="compile with --target for this GPU",
        )
    plan = plan_from_json(bytes(files[f"{folder}/{PLAN_FILE}"]))
    return TritonSession(gpu, plan, files, folder)


class TritonSession:
    """One submodel on a GPU; `device` is its name. Several threads may call `run` at once."""

    def __init__(self, gpu: Device, plan: TritonPlan, files: Mapping[str, memoryview], folder: str) -> None:
        """Loads the kernels and places the constants; where all shapes are fixed it records the launches, too."""
        self.device = gpu.name
        self._gpu = gpu
        self._plan: TritonPlan | None = plan
        self._lock = threading.Lock()
        self._constants = _constants(gpu, plan, files)
        self._kernels = _kernels(gpu, plan, files, folder)
        self._arena = Allocation(gpu, 0)
        self._calls: dict[_Shapes, CapturedCall] = {}
        if plan.shapes is None:
            self._calls[()] = self._call_of(plan, runs_before=0)

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """Returns a fresh device array for every output; the inputs are host arrays or arrays of this device.

        Raises:
            InputError: an input has another shape or type than the submodel, or is on another device.
            UsageError: the session is closed.
        """
        with self._lock:
            if self._plan is None:
                raise UsageError("the session is closed")
            return self._call_for(self._plan, inputs).run(inputs)

    def close(self) -> None:
        """Frees the memory and the code; a second call does nothing."""
        with self._lock:
            self._plan = None
            self._calls, self._kernels = {}, {}
            self._arena = self._constants = Allocation(self._gpu, 0)

    def _call_for(self, plan: TritonPlan, inputs: Mapping[str, Value]) -> CapturedCall:
        """Returns the call for the inputs' shapes, the one used last at the end of those that are kept."""
        if plan.shapes is None:
            return self._calls[()]
        shapes = tuple(tuple(np.shape(inputs[border.name])) for border in plan.inputs)
        found = self._calls.pop(shapes, None) or self._call_of(plan_at(plan, shapes), runs_before=1)
        while len(self._calls) >= MAX_KEPT:
            self._calls.pop(next(iter(self._calls)))
        self._calls[shapes] = found
        return found

    def _call_of(self, plan: TritonPlan, runs_before: int) -> CapturedCall:
        """Returns the call of a plan of numbers; memory for its values is taken anew where there is too little."""
        if plan.arena_bytes > self._arena.num_bytes:
            self._calls.clear()  # they use the memory that there was
            self._arena = Allocation(self._gpu, 0)  # so that the two are not there at once
            self._arena = Allocation(self._gpu, plan.arena_bytes)
        memories = {"arena": self._arena, "constants": self._constants}
        launchers = [
            launcher(self._kernels[one.kernel], plan.kernels[one.kernel], one, memories) for one in plan.launches
        ]
        if not runs_before:
            _launch_all(launchers)  # loads the code onto the GPU, which a capture must not do
        inputs, outputs = (
            {border.name: _array(border, memories) for border in borders} for borders in (plan.inputs, plan.outputs)
        )
        return CapturedCall(self._gpu, inputs, outputs, partial(_launch_all, launchers), runs_before)


def _launch_all(launchers: Sequence[Launcher]) -> None:
    for launch in launchers:
        launch()


def _array(border: Border, memories: Mapping[str, Allocation]) -> DeviceArray:
    memory, shape = memories[border.place.memory], tuple(map(fixed, border.shape))
    return DeviceArray(memory, shape, numpy_dtype(border.dtype), fixed(border.place.offset))


def _constants(gpu: Device, plan: TritonPlan, files: Mapping[str, memoryview]) -> Allocation:
    """Returns the constants on the device."""
    data = np.frombuffer(files[CONSTANTS_FILE], np.uint8) if CONSTANTS_FILE in files else np.empty(0, np.uint8)
    if data.size != plan.constants_bytes:
        raise BundleError(f"{CONSTANTS_FILE} has {data.size} bytes, the plan says {plan.constants_bytes}")
    constants = Allocation(gpu, plan.constants_bytes)
    DeviceArray(constants, data.shape, data.dtype).write(data)
    return constants


def _kernels(gpu: Device, plan: TritonPlan, files: Mapping[str, memoryview], folder: str) -> dict[str, Kernel]:
    """Returns the functions that the plan's launches name."""
    loaded = {}
    for name, kernel in plan.kernels.items():
        file = f"{folder}/{kernel.file}"
        if file not in files:
            raise BundleError(f"the artifact has no {file!r:.120}")
        loaded[name] = gpu.load_module(bytes(files[file])).kernel(kernel.symbol)
    return loaded
