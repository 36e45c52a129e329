# SPDX-License-Identifier: Apache-2.0
"""Many independent steps in one program, each array in memory of its own: for tests of the C kernels.

In this process (`Program.run`) inputs and constants lie between margins of NaN, so that what is read outside them
shows in the result; lanes beyond the last channel of an input are NaN too. Outputs and each worker's scratch begin as
NaN, so that what is not written shows, and lie between margins of a known byte, which nobody may touch. Elsewhere
(`request_of`, c/driver.c) each array is an allocation of its own: for sanitizers and for other machines.
"""

import ctypes
import math
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from native_models import Array
from nndeploy_native.emit import sources_of, step_sources
from nndeploy_native.isa import Isa
from nndeploy_native.library import FLAGS, HEADERS, library_from_source
from nndeploy_native.packing import to_bf16
from nndeploy_native.session import _Call
from nndeploy_native.size_table import SizeTable
from nndeploy_native.steps.step import Call, Machine, NativeStep
from nndeploy_native.tensors import Tensor, padded

from nndeploy.files.shared_object import library_from_bytes

MARGIN = 4096
PATTERN = 0xA5
DRIVER = Path(__file__).with_name("driver.c")
_C_TYPES = {"float32": "float", "int32": "int32_t", "uint16": "uint16_t"}


@dataclass(frozen=True, eq=False)
class Case:
    """A step, what it is made for, the values that it reads (N, C, H, W), and what NumPy makes of them in float64.

    `changes` replaces members of its struct: what otherwise only large sizes bring about.
    """

    name: str
    step: NativeStep
    machine: Machine
    values: Mapping[str, Array]
    wanted: Array
    changes: Mapping[str, int] = field(default_factory=dict)

    def call(self) -> Call:
        """Returns the call, with the changes that fit its struct."""
        call = self.step.call(self.machine)
        changes = {key: value for key, value in self.changes.items() if key in call.fields}
        return replace(call, fields={**call.fields, **changes})

    def tolerance(self) -> float:
        """Returns the largest difference: of sums of up to 2000 products, or of numbers of 8 bits.

        Sums of bfloat16 that are taken in parts are rounded each time.
        """
        scale = max(1.0, float(np.abs(self.wanted).max()))
        return (5e-6 if self.machine.isa.precision == "fp32" else 0.02) * scale


class Program:
    """The C source of some cases, and the memory that it works on."""

    def __init__(self, cases: Sequence[Case]) -> None:
        """Emits the source; nothing is compiled yet."""
        self.cases = cases
        self.isa = cases[0].machine.isa
        self.inputs: list[Array] = []
        self.outputs: list[tuple[tuple[int, ...], Any]] = []
        self.calls = [case.call() for case in cases]
        self._places: dict[str, str] = {}
        for number, case in enumerate(cases):
            self._add(number, case)
        calls, table = [_renamed(call, n) for n, call in enumerate(self.calls)], SizeTable({})
        (self.source,) = sources_of(calls, step_sources(calls, self._place_of, table), table)
        self.scratch_bytes = max((call.scratch_bytes for call in self.calls), default=0)

    def run(self, folder: Path, workers: Sequence[int]) -> list[list[Array]]:
        """Returns the outputs in the order of ONNX for each number of workers; checks all margins."""
        library = library_from_bytes(library_from_source(self.source, self.isa, folder))
        library.nnd_start.restype, library.nnd_stop.argtypes = ctypes.c_void_p, (ctypes.c_void_p,)
        library.nnd_run.argtypes, library.nnd_run.restype = (ctypes.c_void_p, ctypes.c_void_p), None
        inputs = [_between_nans(one, aligned=one.ndim != 4) for one in self.inputs]
        return [self._run_once(library, inputs, count) for count in workers]

    def _run_once(self, library: ctypes.CDLL, inputs: list[Array], workers: int) -> list[Array]:
        before = [one.base.copy() for one in inputs if one.base is not None]
        stride = padded(self.scratch_bytes, 64) + MARGIN
        scratch, outputs = _between_patterns(workers * stride), []
        for worker in range(workers):
            scratch[worker * stride + padded(self.scratch_bytes, 64) : (worker + 1) * stride] = PATTERN
        for shape, dtype in self.outputs:
            raw = _between_patterns(math.prod(shape) * np.dtype(dtype).itemsize, aligned=len(shape) != 4)
            outputs.append(raw)
        call = _Call(_pointers(inputs), _pointers(outputs), None, None, scratch.ctypes.data, stride)
        pool = library.nnd_start(workers) if workers > 1 else None
        library.nnd_run(ctypes.byref(call), pool)
        if pool:
            library.nnd_stop(pool)
        for one, old in zip((one for one in inputs if one.base is not None), before, strict=True):
            assert np.array_equal(one.base, old), "an input or constant was written"
        for worker in range(workers):
            rest = scratch[worker * stride + padded(self.scratch_bytes, 64) : (worker + 1) * stride]
            assert (rest == PATTERN).all(), f"worker {worker} wrote beyond its scratch"
        for case, raw in zip(self.cases, outputs, strict=True):
            assert _margins_hold(raw), f"{case.name}: wrote outside its output"
        assert _margins_hold(scratch), "a worker wrote outside the scratch"
        return self.in_order(outputs)

    def in_order(self, outputs: Sequence[Array]) -> list[Array]:
        """Returns the bytes of the outputs as arrays in the order of ONNX."""
        found = []
        for call, (shape, dtype), raw in zip(self.calls, self.outputs, outputs, strict=True):
            memory = raw.view(dtype).reshape(shape)
            found.append(planar(memory, call.output.shape) if call.output.is_blocked else memory)
        return found

    def check(self, found: Sequence[Array]) -> None:
        """Compares the outputs with what NumPy says."""
        for case, one in zip(self.cases, found, strict=True):
            assert np.isfinite(one).all(), f"{case.name}: read outside its inputs, or left something out"
            difference = float(np.abs(one - case.wanted).max())
            assert difference <= case.tolerance(), f"{case.name}: {difference} > {case.tolerance()}"

    def _add(self, number: int, case: Case) -> None:
        for tensor in {tensor.name: tensor for tensor in case.step.inputs}.values():
            values = case.values[tensor.name]
            self._put(f"{number}.{tensor.name}", self._in_memory(values, tensor), self._kind(tensor))
        for argument in self.calls[number].arguments:
            if isinstance(argument, np.ndarray):
                self._put(f"{id(argument)}", argument.reshape(-1), _C_TYPES[argument.dtype.name])
        output = case.step.output
        self._places[f"{number}.{output.name}"] = f"({self._kind(output)} *)call->outputs[{number}]"
        self.outputs.append((output.memory_shape(self.isa.lanes), self._dtype(output)))

    def _put(self, name: str, memory: Array, kind: str) -> None:
        self._places[name] = f"(const {kind} *)call->inputs[{len(self.inputs)}]"
        self.inputs.append(memory)

    def _place_of(self, one: Tensor | Array) -> str:
        return self._places[one.name if isinstance(one, Tensor) else str(id(one))]

    def _kind(self, tensor: Tensor) -> str:
        return "nnd_elem" if tensor.is_blocked else "float"

    def _dtype(self, tensor: Tensor) -> Any:
        return np.uint16 if tensor.is_blocked and self.isa.precision == "bf16" else np.float32

    def _in_memory(self, values: Array, tensor: Tensor) -> Array:
        if not tensor.is_blocked:
            return np.ascontiguousarray(values, np.float32)
        memory = blocked(values, self.isa.lanes)
        return to_bf16(memory) if self.isa.precision == "bf16" else memory


def _renamed(call: Call, number: int) -> Call:
    """Returns the call with the number of its case before the roots: cases may use the same names."""

    def renamed(one: Any) -> Any:
        return replace(one, name=f"{number}.{one.name}") if isinstance(one, Tensor) else one

    return replace(call, output=renamed(call.output), arguments=tuple(map(renamed, call.arguments)))


def blocked(array: Array, lanes: int) -> Array:
    """Returns (N, C, H, W) as (N, ceil(C / lanes), H, W, lanes); NaN in the lanes beyond the last channel."""
    batch, channels, height, width = array.shape
    full = np.full((batch, padded(channels, lanes), height, width), np.nan, np.float32)
    full[:, :channels] = array
    return np.ascontiguousarray(full.reshape(batch, -1, lanes, height, width).transpose(0, 1, 3, 4, 2))


def planar(memory: Array, shape: tuple[int, ...]) -> Array:
    """Returns the channels of a blocked memory, float32 or the bits of bfloat16, as (N, C, H, W) in float32."""
    floats = memory.view(ml_dtypes.bfloat16).astype(np.float32) if memory.dtype == np.uint16 else memory
    return np.moveaxis(floats, -1, 2).reshape(shape[0], -1, *shape[2:])[:, : shape[1]]


def request_of(program: Program, workers: int) -> bytes:
    """Returns what driver.c reads: sizes, then the inputs and constants, each to be an allocation of its own."""
    sizes = [one.nbytes for one in program.inputs]
    results = [math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in program.outputs]
    return request(workers, sizes, results, 0, 0, padded(program.scratch_bytes, 64), program.inputs)


def request(
    workers: int, inputs: Sequence[int], outputs: Sequence[int], constants: int, arena: int, scratch: int,
    data: Sequence[Array],
) -> bytes:  # fmt: skip
    """Returns the file that driver.c reads: numbers of 64 bits, then the data of inputs and constants."""
    head = np.array([workers, len(inputs), len(outputs), constants, arena, scratch, *inputs, *outputs], np.int64)
    return head.tobytes() + b"".join(np.ascontiguousarray(one).tobytes() for one in data)


def outputs_from(program: Program, result: bytes) -> list[Array]:
    """Returns the outputs from the file that driver.c writes."""
    sizes = [math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in program.outputs]
    bounds = np.cumsum([0, *sizes])
    assert len(result) == bounds[-1]
    raw = np.frombuffer(result, np.uint8)
    return program.in_order([raw[first:last] for first, last in pairwise(bounds)])


def run_driver(driver: Sequence[str], program: Program, folder: Path, workers: int) -> list[Array]:
    """Returns the outputs that kernels.so of `folder` computes in a driver; an error of it is one of the test."""
    (folder / "request").write_bytes(request_of(program, workers))
    run_command([*driver, "./kernels.so", "request", "result"], folder)
    return outputs_from(program, (folder / "result").read_bytes())


def run_command(command: Sequence[str], folder: Path) -> None:
    """Runs a command in a folder; fails with what it wrote."""
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "ZIG_LOCAL_CACHE_DIR": str(folder / "zig-cache")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{Path(command[0]).name} ended with {done.returncode}: {done.stderr[:2000]}"


def zig(isa: Isa, *arguments: str, without: Sequence[str] = ()) -> list[str]:
    """Returns the command that compiles for an instruction set with the flags of libraries, but those `without`."""
    flags = [flag for flag in FLAGS if flag not in without]
    bf16 = ["-DNND_BF16"] if isa.precision == "bf16" else []
    command = [sys.executable, "-m", "ziglang", "cc", "-target", isa.zig_target, f"-mcpu={isa.zig_cpu}"]
    return [*command, *flags, *bf16, "-I", str(HEADERS), *arguments]


def _pointers(arrays: Sequence[Array]) -> Any:
    return (ctypes.c_void_p * max(1, len(arrays)))(*(array.ctypes.data for array in arrays))


def _between_nans(array: Array, *, aligned: bool) -> Array:
    """Returns a copy between margins of NaN (of both types): at a cache line, or at any float."""
    raw = np.full((array.nbytes + 2 * MARGIN + 64) // 4 + 1, 0x7FC07FC0, np.uint32).view(np.uint8)
    inner = raw[_start(raw, aligned) :][: array.nbytes]
    inner[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return inner


def _between_patterns(size: int, *, aligned: bool = True) -> Array:
    """Returns `size` bytes of NaN between margins of the pattern."""
    raw = np.full(size + 2 * MARGIN + 64, PATTERN, np.uint8)
    inner = raw[_start(raw, aligned) :][:size]
    inner[:] = np.resize(np.array([0xC0, 0x7F], np.uint8), size)
    return inner


def _start(raw: Array, aligned: bool) -> int:
    return MARGIN + -(raw.ctypes.data + MARGIN) % 64 + (0 if aligned else 4)


def _margins_hold(inner: Array) -> bool:
    raw = inner.base
    assert raw is not None
    before = inner.ctypes.data - raw.ctypes.data
    return bool((raw[:before] == PATTERN).all() and (raw[before + inner.size :] == PATTERN).all())
