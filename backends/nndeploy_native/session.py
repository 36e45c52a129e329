# SPDX-License-Identifier: Apache-2.0
"""Artifact -> running session: the run half of the backend; numpy, ctypes and the library from the bundle.

Several threads may call `run` at once: each takes an arena of its own. Inputs are read where they are, outputs are
written into fresh arrays. Before the library is opened, the machine must show every instruction that it may use.
"""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from nndeploy.errors import BundleError, InputError, UnavailableError, UsageError
from nndeploy.files.shared_object import exported_version, library_from_bytes
from nndeploy.pacing.item import PACE_VERSION
from nndeploy.plugin.interface import Json, OpenOptions, PacePoint
from nndeploy.target.target import host_target, unmet
from nndeploy.values.types import Value
from nndeploy_native.native_memory import ALIGNMENT, OutputMemory, address_of, aligned_copy, aligned_zeros
from nndeploy_native.plan import (
    CONSTANTS_FILE,
    FORMAT,
    LIBRARY_FILE,
    PLAN_FILE,
    SHAPES_FORMAT,
    Border,
    NativePlan,
    plan_from_json,
)
from nndeploy_native.plan_check import check_plan
from nndeploy_native.shape_tables import ShapeTable, ShapeTables
from nndeploy_native.worker_pool import WorkerPool

_Array: TypeAlias = "np.ndarray[Any, Any]"

_DTYPES = {
    "fp32": np.float32, "int32": np.int32, "int64": np.int64, "blocked fp32": np.float32, "blocked bf16": np.uint16,
}  # fmt: skip


class _Call(ctypes.Structure):
    """struct nnd_call of c/program.h."""

    _fields_ = (
        ("inputs", ctypes.POINTER(ctypes.c_void_p)),
        ("outputs", ctypes.POINTER(ctypes.c_void_p)),
        ("constants", ctypes.c_void_p),
        ("arena", ctypes.c_void_p),
        ("scratch", ctypes.c_void_p),
        ("scratch_bytes", ctypes.c_ssize_t),
        ("sizes", ctypes.c_void_p),
        ("pace", ctypes.c_void_p),
    )


def open_session(
    files: Mapping[str, memoryview], metadata: Mapping[str, Json], options: OpenOptions
) -> "NativeSession":
    """Returns a session over the files of an artifact; they must stay as long as it lives.

    Raises:
        UnavailableError: the device is no CPU, or this CPU lacks an instruction that the library may use.
        BundleError: a file is missing or malformed.
    """
    if options.device != "cpu":
        raise UnavailableError(f"these kernels run on the CPU, not on {options.device!r}")
    if metadata.get("format") not in (FORMAT, SHAPES_FORMAT):
        raise BundleError(
            f"an artifact of format {metadata.get('format')!r:.20}; this nndeploy reads {FORMAT} and {SHAPES_FORMAT}"
        )
    for name in (LIBRARY_FILE, CONSTANTS_FILE, PLAN_FILE):
        if name not in files:
            raise BundleError(f"the artifact has no {name}")
    plan = plan_from_json(bytes(files[PLAN_FILE]))
    check_plan(plan, files, metadata, options)
    _check_machine(metadata)
    return NativeSession(plan, files, options.threads or host_target().num_cores)


def _check_machine(metadata: Mapping[str, Json]) -> None:
    """Refuses a library for another kind of machine before anything of it is mapped: it would end in SIGILL."""
    features = metadata.get("cpu_features")
    if not isinstance(metadata.get("arch"), str) or not isinstance(features, list) or not features:
        raise BundleError("the metadata does not say which instructions the kernels use")
    why = unmet({"arch": metadata["arch"], "cpu_features": [str(one) for one in features]}, host_target())
    if why:
        raise UnavailableError(f"these kernels {why}", hint="compile with --target for this machine")


class NativeSession:
    """One library of kernels with its constants and a pool of threads; slots are made as callers need them."""

    def __init__(self, plan: NativePlan, files: Mapping[str, memoryview], num_threads: int) -> None:
        """Loads the library; `files` are kept as long as the session."""
        self.pace_note = ""
        self._plan = plan
        self._files = files
        constants = np.frombuffer(files[CONSTANTS_FILE], np.uint8)
        self._constants = aligned_copy(constants) if address_of(constants) % ALIGNMENT else constants
        self._inputs = [_Input(border) for border in plan.inputs]
        self._slots: list[_Slot] = []
        library = library_from_bytes(bytes(files[LIBRARY_FILE]))
        try:
            self._run = library.nnd_run
            self._pool = _pool_of(library, num_threads)
            self._tables = ShapeTables(plan, library)
        except AttributeError as err:
            raise BundleError(f"{LIBRARY_FILE} lacks a function: {err}") from err
        self._run.argtypes, self._run.restype = (ctypes.c_void_p, ctypes.c_void_p), None
        self._has_points = exported_version(library, "nnd_points_version") == PACE_VERSION
        self._pace: Callable[[], int] | None = None
        self._is_open = True

    def pace(
        self,
        item: Callable[[], int],
        sample: Mapping[str, Value] | None,  # noqa: ARG002
        wanted: Callable[[str], bool] | None = None,  # noqa: ARG002
    ) -> list[PacePoint]:
        """Lets later runs pass points of the item whose address `item()` gives; returns them: one for each step."""
        if not self._has_points:
            return []
        self._pace = item
        return [
            PacePoint(str(step.get("what", step["kernel"])), is_cut=True, values=(str(step.get("value", "")),))
            for step in self._plan.steps
        ]

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the value of every output by name.

        Raises:
            InputError: an input has another shape than the submodel.
            UsageError: the session is closed.
        """
        if not self._is_open:
            raise UsageError("the session is closed")
        given = [one.given(inputs[one.name]) for one in self._inputs]  # which must live until the end
        table = self._tables.table_for(tuple([array.shape for array, _ in given]))
        slot = self._taken_slot()
        outputs = slot.prepared(given, table)
        if self._pace is not None:
            slot.pace(self._pace())
        pool = self._pool.taken()
        try:
            self._run(slot.address, pool)
        finally:
            self._pool.give_back(pool)
        self._slots.append(slot)
        return outputs

    def close(self) -> None:
        """Ends the threads and frees the memory; a second call does nothing."""
        self._is_open = False
        self._slots = []
        self._pool.close()

    def _taken_slot(self) -> "_Slot":
        try:
            return self._slots.pop()
        except IndexError:
            return _Slot(self._plan, self._constants, self._pool.num_threads)


class _Input:
    """How one input must be. What its type says is looked up once: a call may be a few microseconds in all."""

    __slots__ = ("_dtype", "_is_blocked", "_rank", "_shape", "name")

    def __init__(self, border: Border) -> None:
        self.name = border.name
        self._dtype = np.dtype(_DTYPES[border.format])
        self._shape = border.shape if border.is_fixed else None
        self._rank = len(border.shape)
        self._is_blocked = border.is_blocked

    def given(self, value: Value) -> tuple[_Array, int]:
        """Returns an input as the kernels read it, and its address."""
        array: _Array = np.asarray(value, self._dtype, "C")
        if array.shape != self._shape and (self._shape is not None or array.ndim != self._rank):
            expected = self._shape if self._shape is not None else f"{self._rank} axes"
            raise InputError(f"input {self.name!r}: expected {expected}, got {array.shape}")
        address = address_of(array)
        if self._is_blocked and address % ALIGNMENT:
            array = aligned_copy(array.reshape(-1).view(np.uint8))
            address = address_of(array)
        return array, address


class _Slot:
    """What one caller at a time works with: an arena, the struct of the call, and memory of earlier outputs."""

    def __init__(self, plan: NativePlan, constants: _Array, num_threads: int) -> None:
        self._num_threads = num_threads
        self._arena = aligned_zeros(0)
        self._table: ShapeTable | None = None
        self._inputs = (ctypes.c_void_p * max(1, len(plan.inputs)))()
        self._outputs = (ctypes.c_void_p * max(1, len(plan.outputs)))()
        self._memories = [OutputMemory(border.name, _DTYPES[border.format]) for border in plan.outputs]
        self._call = _Call(self._inputs, self._outputs, address_of(constants))
        self.address = ctypes.addressof(self._call)

    def prepared(self, inputs: Sequence[tuple[_Array, int]], table: ShapeTable) -> dict[str, Value]:
        """Returns the arrays that the call will write; `inputs`, with their addresses, must live until it is made."""
        if table is not self._table:
            self._take(table)
        for number, (_, address) in enumerate(inputs):
            self._inputs[number] = address
        outputs: dict[str, Value] = {}
        for number, memory in enumerate(self._memories):
            outputs[memory.name], self._outputs[number] = memory.taken(table.outputs[number])
        return outputs

    def pace(self, address: int) -> None:
        """Lets the call pass points of the item at `address`, none where it is 0."""
        self._call.pace = address

    def _take(self, table: ShapeTable) -> None:
        """Makes the arena as large as a table asks; it never becomes smaller."""
        needed = table.arena_bytes + self._num_threads * table.scratch_bytes
        if needed > self._arena.size:
            self._arena = aligned_zeros(needed)
        start = address_of(self._arena)
        self._call.arena, self._call.scratch = start, start + table.arena_bytes
        self._call.scratch_bytes = table.scratch_bytes
        self._call.sizes = None if table.sizes is None else ctypes.addressof(table.sizes)
        self._table = table


def _pool_of(library: ctypes.CDLL, num_threads: int) -> WorkerPool:
    library.nnd_start.argtypes, library.nnd_start.restype = (ctypes.c_int,), ctypes.c_void_p
    library.nnd_stop.argtypes, library.nnd_stop.restype = (ctypes.c_void_p,), None
    return WorkerPool(library.nnd_start, library.nnd_stop, num_threads)
