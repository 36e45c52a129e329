# SPDX-License-Identifier: Apache-2.0
"""Artifact -> running session: plans loaded by cuDNN, constants on the device once, one stream.

The run half of the backend: numpy, the driver and cuDNN, never onnx. Outputs are fresh arrays on the device; what is in
between lives in one arena that all calls share, which is safe because the work of all calls is in order on the
program's stream. `enqueue` neither allocates nor waits, so after the first run it is captured as a CUDA graph, over
arrays that the session keeps; where cuDNN does not allow that, every run queues its steps. Where the batch is in a
range, there is such a session for each rung of a ladder; they share handle and memory.
"""

import contextlib
import ctypes
import hashlib
import threading
from collections.abc import Mapping, Sequence

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load

from nndeploy.cuda import CapturedCall, CudaError, Device, DeviceArray, cuda_unavailable, device, gpu_number
from nndeploy.cuda.array import Allocation
from nndeploy.errors import BundleError, UnavailableError, UsageError
from nndeploy.plugin.interface import Json, OpenOptions, Session
from nndeploy.values.types import Value
from nndeploy_cudnn.ladder_session import LadderSession
from nndeploy_cudnn.library import CudnnError, Handle, Library, LoadedPlan, Pack, cudnn_library
from nndeploy_cudnn.program import (
    CONSTANTS_FILE,
    PLANS_FILE,
    PROGRAM_FILE,
    Binding,
    Program,
    ProgramStep,
    Tensor,
    folder_of,
    program_from_json,
)

ALIGNMENT = 16  # bytes; what the plans were made for
STEPS_WORTH_A_GRAPH = 4
"""Least steps worth a graph: with fewer, copying values to and from its arrays costs what queueing the steps does."""

Arrays = Mapping[str, Sequence[DeviceArray]]
"""The arrays of a call by kind of binding: "input" and "output"."""


def open_session(files: Mapping[str, memoryview], metadata: Mapping[str, Json], options: OpenOptions) -> Session:
    """Returns a session over an artifact's files.

    Raises:
        UnavailableError: there is no GPU, no cuDNN, or they are not those that the plans were made for.
        BundleError: the artifact is malformed.
    """
    rungs = _rungs(metadata)
    parts = {rows: _inside(files, folder_of(rows)) for rows in rungs} if rungs else {0: files}
    programs = {rows: _program_of(part) for rows, part in parts.items()}
    if why := cuda_unavailable():
        raise UnavailableError(f"cuDNN needs an NVIDIA GPU: {why}")
    library = cudnn_library()
    for program in programs.values():
        if library.version != program.cudnn_version:
            raise UnavailableError(
                f"the plans were made by cuDNN {program.cudnn_version}, this machine has {library.version}",
                hint="the device and the machine that compiles need the same version of cuDNN",
            )
    gpu, sessions, largest = device(_number_of(options.device)), dict[int, CudnnSession](), None
    for rows in reversed(parts):  # the largest has memory for the others, and constants where theirs are equal
        digest = hashlib.sha256(parts[rows][CONSTANTS_FILE]).digest() if rungs else b""
        sessions[rows] = CudnnSession(programs[rows], parts[rows], library, gpu, largest, digest)
        largest = largest or sessions[rows]
    return LadderSession({rows: sessions[rows] for rows in rungs}, programs, gpu) if rungs else sessions[0]


def _rungs(metadata: Mapping[str, Json]) -> list[int]:
    """Returns the sizes of the batch that there are plans for, the smallest first; none where it is fixed.

    Raises:
        BundleError: they are none.
    """
    rows = metadata.get("rows", [])
    if not isinstance(rows, list) or not all(type(one) is int and one > 0 for one in rows) or rows != sorted(set(rows)):
        raise BundleError(f"no sizes of a batch: {rows!r:.60}")
    return rows


def _inside(files: Mapping[str, memoryview], folder: str) -> dict[str, memoryview]:
    return {name.removeprefix(f"{folder}/"): data for name, data in files.items() if name.startswith(f"{folder}/")}


def _program_of(files: Mapping[str, memoryview]) -> Program:
    for name in (PROGRAM_FILE, PLANS_FILE, CONSTANTS_FILE):
        if name not in files:
            raise BundleError(f"the artifact has no {name}")
    return program_from_json(files[PROGRAM_FILE])


class CudnnSession:
    """A program on its device; `device` is "cuda:<number>"."""

    def __init__(
        self,
        program: Program,
        files: Mapping[str, memoryview],
        library: Library,
        gpu: Device,
        like: "CudnnSession | None" = None,
        constants_digest: bytes = b"",
    ) -> None:
        """Loads a program; of `like`, which runs another of the same artifact, it uses what it can.

        `constants_digest` tells the constants of one from those of the other.
        """
        self.device = gpu.name
        self._program, self._gpu = program, gpu
        self._lock: threading.RLock = threading.RLock() if like is None else like._lock
        with gpu.entered():
            self._handle: Handle | None = _opened(library, gpu) if like is None else like._handle
            assert self._handle is not None, "it is open"
            self._plans = _loaded(self._handle, program, files[PLANS_FILE], gpu)
        workspace_bytes = max((plan.workspace_bytes for plan in self._plans), default=0)
        others = dict[str, Allocation]() if like is None else like._memory
        self._memory: dict[str, Allocation] = {
            "arena": _large_enough(others.get("arena"), gpu, program.arena_bytes),
            "workspace": _large_enough(others.get("workspace"), gpu, workspace_bytes),
        }
        self._constants = (program.constant_bytes, program.constants, constants_digest)
        if like is not None and self._constants == like._constants:
            self._memory["constant"] = others["constant"]
        else:
            self._memory["constant"] = Allocation(gpu, program.constant_bytes)
            self._place_constants(files[CONSTANTS_FILE])
        self._scalars = [[(uid, ctypes.c_float(number)) for uid, number in step.scalars] for step in program.steps]
        self._packs = [self._fixed_pack(number) for number in range(len(program.steps))]
        self._call: CapturedCall | None = None
        self._may_capture = len(program.steps) >= STEPS_WORTH_A_GRAPH

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the value of every output by name, on the device.

        An input is an array of the host or of this device.
        """
        with self._lock:
            if self._call is not None:
                return self._call.run(inputs)
            given = [self._aligned(self._gpu.array_of(inputs[tensor.name])) for tensor in self._program.inputs]
            made = self._arrays(self._program.outputs)
            self.enqueue(given, list(made.values()))
            if self._may_capture:  # the first run has loaded the code, which a capture must not do
                self._capture()
            return dict(made)

    def _arrays(self, tensors: Sequence[Tensor]) -> dict[str, DeviceArray]:
        return {tensor.name: self._gpu.empty(tensor.shape, tensor.dtype) for tensor in tensors}

    def _capture(self) -> None:
        self._may_capture = False
        inputs, outputs = self._arrays(self._program.inputs), self._arrays(self._program.outputs)
        given, made = list(inputs.values()), list(outputs.values())
        with contextlib.suppress(CudaError, UnavailableError):
            self._call = CapturedCall(self._gpu, inputs, outputs, lambda: self.enqueue(given, made))

    def enqueue(self, inputs: Sequence[DeviceArray], outputs: Sequence[DeviceArray]) -> None:
        """Queues one run on the stream of this thread, in the order of the program's inputs and outputs.

        Raises:
            UsageError: the session is closed.
            UnavailableError: cuDNN fails.
        """
        arrays = {"input": inputs, "output": outputs}
        with self._lock, self._gpu.entered():
            if self._handle is None:
                raise UsageError("the session is closed")
            self._handle.set_stream(self._gpu.stream.handle)
            for number, step in enumerate(self._program.steps):
                pack = self._packs[number] or self._pack(self._handle, number, arrays)
                self._execute(self._handle, step, pack)

    def close(self) -> None:
        """Frees what the session holds; a second call does nothing."""
        with self._lock, self._gpu.entered():
            handle, self._handle, self._call = self._handle, None, None
            self._packs, self._plans, self._memory = [], [], {}
            if handle is not None:
                handle.close()

    def _execute(self, handle: Handle, step: ProgramStep, pack: Pack) -> None:
        try:
            handle.execute(self._plans[step.plan], pack)
        except CudnnError as err:
            raise UnavailableError(str(err), where=f"{self.device}: {step.makes}") from err

    def _fixed_pack(self, number: int) -> Pack | None:
        """Returns the memory of a step that is the same for every call, None where it is not."""
        if any(binding.kind in ("input", "output") for binding in self._program.steps[number].bindings):
            return None
        assert self._handle is not None
        return self._pack(self._handle, number, {})

    def _pack(self, handle: Handle, number: int, arrays: Arrays) -> Pack:
        bindings, scalars = self._program.steps[number].bindings, self._scalars[number]
        uids = [binding.uid for binding in bindings] + [uid for uid, _ in scalars]
        pointers = [self._address(binding, arrays) for binding in bindings]
        pointers += [ctypes.addressof(number) for _, number in scalars]
        return handle.pack(uids, pointers, self._memory["workspace"].ptr)

    def _address(self, binding: Binding, arrays: Arrays) -> int:
        if binding.kind in arrays:
            return arrays[binding.kind][binding.index].ptr + binding.offset
        return self._memory[binding.kind].ptr + binding.offset

    def _aligned(self, array: DeviceArray) -> DeviceArray:
        """Returns the array where it starts as the plans ask for, else a copy that does."""
        if array.ptr % ALIGNMENT == 0:
            return array
        aligned = self._gpu.empty(array.shape, array.dtype.name)
        aligned.write(array)
        return aligned

    def _place_constants(self, file: memoryview) -> None:
        """Copies the constants to their places on the device."""
        try:
            arrays = load(bytes(file))
        except SafetensorError as err:
            raise BundleError(f"{CONSTANTS_FILE}: {err}") from err
        for name, offset, size in self._program.constants:
            data = arrays[name].reshape(-1).view(np.uint8) if name in arrays else np.zeros(0, np.uint8)
            if data.nbytes != size:
                raise BundleError(f"{CONSTANTS_FILE} has {data.nbytes} bytes of {name!r}, expected {size}")
            DeviceArray(self._memory["constant"], (size,), np.dtype(np.uint8), offset).write(data)


def _large_enough(found: Allocation | None, gpu: Device, num_bytes: int) -> Allocation:
    return found if found is not None and found.num_bytes >= num_bytes else Allocation(gpu, num_bytes)


def _opened(library: Library, gpu: Device) -> Handle:
    try:
        return Handle(library)
    except CudnnError as err:
        raise UnavailableError(f"cuDNN cannot use the GPU: {err}", where=gpu.name) from err


def _loaded(handle: Handle, program: Program, file: memoryview, gpu: Device) -> list[LoadedPlan]:
    if any(offset + size > len(file) for offset, size in program.plans):
        raise BundleError(f"{PLANS_FILE} has {len(file)} bytes; a plan reaches outside")
    try:
        return [handle.load(bytes(file[offset : offset + size])) for offset, size in program.plans]
    except CudnnError as err:
        raise UnavailableError(
            f"the plans were made for {program.gpu}, cuDNN does not load them on {gpu.gpu_name}: {err}",
            where=gpu.name,
            hint="compile for this device: `nndeploy probe -o box.toml` on it, then --target box.toml",
        ) from err


def _number_of(device_name: str) -> int:
    if device_name in ("cpu", "cuda"):  # nobody asked for one GPU of several
        return 0
    number = gpu_number(device_name)
    if number is None:
        raise UnavailableError(f"cuDNN runs on NVIDIA GPUs, not on {device_name!r}")
    return number
