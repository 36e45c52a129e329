# SPDX-License-Identifier: Apache-2.0
"""Artifact -> running session: the run half of the backend; numpy, ctypes and the library from the bundle.

Several threads may call `run` at once: each takes an arena of its own. Inputs are read where they are, outputs are
written into fresh arrays. Before the library is opened, the machine must show every instruction that it may use.
"""

import ctypes
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from nndeploy.errors import BundleError, UnavailableError, UsageError
from nndeploy.plugin.interface import Json, OpenOptions
from nndeploy.target import host_target, unmet
from nndeploy.value_types import Value
from nndeploy_native.plan import ALIGNMENT, CONSTANTS_FILE, LIBRARY_FILE, PLAN_FILE, Plan, plan_from_json
from nndeploy_native.shared_object import library_from_bytes

_Array: TypeAlias = "np.ndarray[Any, Any]"

FORMAT = 1


class _Call(ctypes.Structure):
    """struct nnd_call of c/reference.h."""

    _fields_ = (
        ("inputs", ctypes.POINTER(ctypes.c_void_p)),
        ("outputs", ctypes.POINTER(ctypes.c_void_p)),
        ("constants", ctypes.c_void_p),
        ("arena", ctypes.c_void_p),
        ("num_threads", ctypes.c_long),
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
    return NativeSession(plan, files, options.threads or 1)


def _check_machine(metadata: Mapping[str, Json]) -> None:
    """Refuses a library for another kind of machine before anything of it is mapped: it would end in SIGILL."""
    features = metadata.get("cpu_features")
    if not isinstance(metadata.get("arch"), str) or not isinstance(features, list) or not features:
        raise BundleError("the metadata does not say which instructions the kernels use")
    why = unmet({"arch": metadata["arch"], "cpu_features": [str(one) for one in features]}, host_target())
    if why:
        raise UnavailableError(f"these kernels {why}", hint="compile with --target for this machine")


class NativeSession:
    """One library of kernels with its constants; arenas are made as threads need them."""

    def __init__(self, plan: Plan, files: Mapping[str, memoryview], num_threads: int) -> None:
        """Loads the library; `files` are kept as long as the session."""
        self._plan = plan
        self._files = files
        self._num_threads = num_threads
        self._constants = _aligned_array(np.frombuffer(files[CONSTANTS_FILE], np.uint8))
        self._arenas: list[_Array] = []
        library = library_from_bytes(bytes(files[LIBRARY_FILE]))
        try:
            self._run = library.nnd_run
        except AttributeError as err:
            raise BundleError(f"{LIBRARY_FILE} has no nnd_run") from err
        self._run.argtypes, self._run.restype = (ctypes.POINTER(_Call),), ctypes.c_int
        self._is_open = True

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the value of every output by name.

        Raises:
            InputError: an input has another shape than the submodel.
            UsageError: the session is closed.
        """
        if not self._is_open:
            raise UsageError("the session is closed")
        given = [_input(inputs[border.name], border.name, border.shape) for border in self._plan.inputs]
        outputs = {border.name: np.empty(border.shape, np.float32) for border in self._plan.outputs}
        arena = self._taken_arena()
        call = _Call(
            _pointers(given),
            _pointers(list(outputs.values())),
            self._constants.ctypes.data,
            arena.ctypes.data,
            self._num_threads,
        )
        failed = self._run(ctypes.byref(call))
        self._arenas.append(arena)
        if failed:
            raise UnavailableError(f"the kernels failed with {failed}")
        return dict(outputs)

    def close(self) -> None:
        """Frees the memory; a second call does nothing."""
        self._is_open = False
        self._arenas = []

    def _taken_arena(self) -> _Array:
        try:
            return self._arenas.pop()
        except IndexError:
            return _aligned_zeros(self._plan.arena_bytes)


def _input(value: Value, name: str, shape: tuple[int, ...]) -> _Array:
    array = np.require(value, np.float32, ["C", "A"])
    if array.shape != shape:
        from nndeploy.errors import InputError

        raise InputError(f"input {name!r}: expected {shape}, got {array.shape}")
    return array


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
