# SPDX-License-Identifier: Apache-2.0
"""Artifact -> running session: the run half of the backend; numpy and nndeploy.cuda, never Triton or onnx.

At load the constants are placed on the GPU once, memory for all values is taken once, and all launches are recorded
as one CUDA graph. A run copies the inputs in, launches the graph and copies the outputs out, all in the order of one
stream, so nothing waits until somebody reads a result.
"""

import threading
from collections.abc import Mapping

import numpy as np

from nndeploy.cuda import CapturedCall, Device, DeviceArray, device, gpu_number
from nndeploy.cuda.array import Allocation
from nndeploy.errors import BundleError, UnavailableError, UsageError
from nndeploy.plugin.interface import Json, OpenOptions
from nndeploy.value_types import Value, numpy_dtype
from nndeploy_triton.launching import Launcher, launcher
from nndeploy_triton.plan import CONSTANTS_FILE, PLAN_FILE, Border, Plan, plan_from_json

FORMAT = 1


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
    if metadata.get("format") != FORMAT:
        raise BundleError(f"an artifact of format {metadata.get('format')!r:.20}; this nndeploy reads {FORMAT}")
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

    def __init__(self, gpu: Device, plan: Plan, files: Mapping[str, memoryview], folder: str) -> None:
        """Loads the kernels, places the constants and records the launches."""
        self.device = gpu.name
        self._gpu = gpu
        self._plan = plan
        self._lock = threading.Lock()
        self._memories = _memories(gpu, plan, files)
        self._launchers = _launchers(gpu, plan, files, folder, self._memories)
        self._inputs = {border.name: self._array(border) for border in plan.inputs}
        self._outputs = {border.name: self._array(border) for border in plan.outputs}
        self._launch_all()  # loads the code onto the GPU, which a capture must not do
        self._call: CapturedCall | None = CapturedCall(gpu, self._inputs, self._outputs, self._launch_all)

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """Returns a fresh device array for every output; the inputs are host arrays or arrays of this device.

        Raises:
            InputError: an input has another shape or type than the submodel, or is on another device.
            UsageError: the session is closed.
        """
        with self._lock:
            if self._call is None:
                raise UsageError("the session is closed")
            return self._call.run(inputs)

    def close(self) -> None:
        """Frees the memory and the code; a second call does nothing."""
        with self._lock:
            self._call = None
            self._launchers = []
            self._inputs, self._outputs, self._memories = {}, {}, {}

    def _array(self, border: Border) -> DeviceArray:
        memory = self._memories[border.place.memory]
        return DeviceArray(memory, border.shape, numpy_dtype(border.dtype), border.place.offset)

    def _launch_all(self) -> None:
        for launch in self._launchers:
            launch()


def _memories(gpu: Device, plan: Plan, files: Mapping[str, memoryview]) -> dict[str, Allocation]:
    """Returns the arena and the constants on the device."""
    data = np.frombuffer(files[CONSTANTS_FILE], np.uint8) if CONSTANTS_FILE in files else np.empty(0, np.uint8)
    if data.size != plan.constants_bytes:
        raise BundleError(f"{CONSTANTS_FILE} has {data.size} bytes, the plan says {plan.constants_bytes}")
    constants = Allocation(gpu, plan.constants_bytes)
    DeviceArray(constants, data.shape, data.dtype).write(data)
    return {"arena": Allocation(gpu, plan.arena_bytes), "constants": constants}


def _launchers(
    gpu: Device, plan: Plan, files: Mapping[str, memoryview], folder: str, memories: Mapping[str, Allocation]
) -> list[Launcher]:
    """Returns one call without arguments for each launch of the plan."""
    loaded = {}
    for name, kernel in plan.kernels.items():
        file = f"{folder}/{kernel.file}"
        if file not in files:
            raise BundleError(f"the artifact has no {file!r:.120}")
        loaded[name] = gpu.load_module(bytes(files[file])).kernel(kernel.symbol)
    return [launcher(loaded[one.kernel], plan.kernels[one.kernel], one, memories) for one in plan.launches]
