# SPDX-License-Identifier: Apache-2.0
"""Artifact -> running session: the run half of the backend; numpy, ctypes and the library from the bundle.

Several threads may call `run` at once: each takes an arena of its own. Inputs are read where they are, outputs are
written into fresh arrays. Before the library is opened, the machine must show every instruction that it may use.
"""

import ctypes
import math
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np

from nndeploy.errors import BundleError, InputError, UnavailableError, UsageError
from nndeploy.plugin.interface import Json, OpenOptions
from nndeploy.target import host_target, unmet
from nndeploy.value_types import Value
from nndeploy_native.plan import ALIGNMENT, CONSTANTS_FILE, LIBRARY_FILE, PLAN_FILE, Border, Plan, plan_from_json
from nndeploy_native.shared_object import library_from_bytes

_Array: TypeAlias = "np.ndarray[Any, Any]"

FORMAT = 1
_DTYPES = {"fp32": np.float32, "blocked fp32": np.float32, "blocked bf16": np.uint16}


class _Call(ctypes.Structure):
    """struct nnd_call of c/program.h."""

    _fields_ = (
        ("inputs", ctypes.POINTER(ctypes.c_void_p)),
        ("outputs", ctypes.POINTER(ctypes.c_void_p)),
        ("constants", ctypes.c_void_p),
        ("arena", ctypes.c_void_p),
        ("scratch", ctypes.c_void_p),
        ("scratch_bytes", ctypes.c_ssize_t),
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
    if metadata.get("format") != FORMAT:
        raise BundleError(f"an artifact of format {metadata.get('format')!r:.20}; this nndeploy reads {FORMAT}")
    for name in (LIBRARY_FILE, CONSTANTS_FILE, PLAN_FILE):
        if name not in files:
            raise BundleError(f"the artifact has no {name}")
    plan = plan_from_json(bytes(files[PLAN_FILE]))
    _check_machine(metadata)
    if len(files[CONSTANTS_FILE]) != plan.constants_bytes:
        raise BundleError(
            f"{CONSTANTS_FILE} has {len(files[CONSTANTS_FILE])} bytes, the plan says {plan.constants_bytes}"
        )
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
    """One library of kernels with its constants and a pool of threads; arenas are made as callers need them."""

    def __init__(self, plan: Plan, files: Mapping[str, memoryview], num_threads: int) -> None:
        """Loads the library; `files` are kept as long as the session."""
        self._plan = plan
        self._files = files
        self._constants = _aligned_array(np.frombuffer(files[CONSTANTS_FILE], np.uint8))
        self._arenas: list[_Array] = []
        library = library_from_bytes(bytes(files[LIBRARY_FILE]))
        try:
            self._run = library.nnd_run
            self._pool = _Pool(library, num_threads)
        except AttributeError as err:
            raise BundleError(f"{LIBRARY_FILE} lacks a function: {err}") from err
        self._run.argtypes, self._run.restype = (ctypes.POINTER(_Call), ctypes.c_void_p), None
        self._is_open = True

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the value of every output by name.

        Raises:
            InputError: an input has another shape than the submodel.
            UsageError: the session is closed.
        """
        if not self._is_open:
            raise UsageError("the session is closed")
        given = [_input(inputs[border.name], border) for border in self._plan.inputs]
        outputs = {border.name: _output(border) for border in self._plan.outputs}
        arena = self._taken_arena()
        start = arena.ctypes.data
        call = _Call(
            _pointers(given),
            _pointers(list(outputs.values())),
            self._constants.ctypes.data,
            start,
            start + self._plan.arena_bytes,
            self._plan.scratch_bytes,
        )
        with self._pool.taken() as pool:
            self._run(ctypes.byref(call), pool)
        self._arenas.append(arena)
        return dict(outputs)

    def close(self) -> None:
        """Ends the threads and frees the memory; a second call does nothing."""
        self._is_open = False
        self._arenas = []
        self._pool.close()

    def _taken_arena(self) -> _Array:
        try:
            return self._arenas.pop()
        except IndexError:
            return _aligned_zeros(self._plan.arena_bytes + self._pool.num_threads * self._plan.scratch_bytes)


class _Pool:
    """The threads of a session. Whoever finds them taken works alone; a child of a fork has none and starts its own."""

    def __init__(self, library: ctypes.CDLL, num_threads: int) -> None:
        self.num_threads = num_threads
        self._start, self._stop = library.nnd_start, library.nnd_stop
        self._start.argtypes, self._start.restype = (ctypes.c_int,), ctypes.c_void_p
        self._stop.argtypes, self._stop.restype = (ctypes.c_void_p,), None
        self._lock = threading.Lock()
        self._address: int | None = None
        self._process = 0

    @contextmanager
    def taken(self) -> Iterator[int | None]:
        """Gives the address of the pool, None for a caller that works alone."""
        if self.num_threads == 1 or not self._lock.acquire(blocking=False):
            yield None
            return
        try:
            if self._process != os.getpid():
                self._address, self._process = self._start(self.num_threads), os.getpid()
            yield self._address
        finally:
            self._lock.release()

    def close(self) -> None:
        """Ends the threads, once nobody uses them."""
        with self._lock:
            if self._address is not None and self._process == os.getpid():
                self._stop(self._address)
            self._address = None
            self.num_threads = 1


def _input(value: Value, border: Border) -> _Array:
    array = np.require(value, _DTYPES[border.format], ["C", "A"])
    if array.shape != border.shape:
        raise InputError(f"input {border.name!r}: expected {border.shape}, got {array.shape}")
    return _aligned_array(array.reshape(-1).view(np.uint8)) if border.is_blocked else array


def _output(border: Border) -> _Array:
    dtype = np.dtype(_DTYPES[border.format])
    if not border.is_blocked:
        return np.empty(border.shape, dtype)
    return _aligned_zeros(math.prod(border.shape) * dtype.itemsize).view(dtype).reshape(border.shape)


def _pointers(arrays: list[_Array]) -> Any:
    return (ctypes.c_void_p * max(1, len(arrays)))(*(array.ctypes.data for array in arrays))


def _aligned_array(data: _Array) -> _Array:
    """Returns the bytes where they are, or a copy where they do not stand on a cache line."""
    if data.ctypes.data % ALIGNMENT == 0 or not data.size:
        return data
    copy = _aligned_zeros(data.size)
    copy[:] = data
    return copy


def _aligned_zeros(num_bytes: int) -> _Array:
    whole = np.zeros(num_bytes + ALIGNMENT, np.uint8)
    start = -whole.ctypes.data % ALIGNMENT
    return whole[start : start + num_bytes]
