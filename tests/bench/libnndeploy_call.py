# SPDX-License-Identifier: Apache-2.0
"""A bundle run by libnndeploy, the C library, as a C program calls it: no copies of inputs, outputs where they lie.

The calls pass through ctypes, which takes some microseconds of each.
"""

import ctypes
import platform
from pathlib import Path
from typing import Any

import numpy as np
from interleaved import Array, EngineRefusedError, Inputs

DTYPES = ("float32", "int32", "int64", "bool", "uint8", "int8", "float16", "float64")
"""Names of nnd_dtype in its order, texts left out."""


class _Error(ctypes.Structure):
    _fields_ = (("code", ctypes.c_int), ("text", ctypes.c_char * 400))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("dtype", ctypes.c_int), ("rank", ctypes.c_int), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("data", ctypes.c_void_p),
    )  # fmt: skip


class Call:
    """A call of a bundle with these inputs; `run()` is what is timed, `outputs()` copies what it left."""

    def __init__(self, bundle: str, inputs: Inputs, threads: int) -> None:
        import nndeploy_kernels

        folder = Path(nndeploy_kernels.__file__).parent / "lib" / f"runtime-{platform.machine()}"
        self._lib, self._error = ctypes.CDLL(str(folder / "libnndeploy.so")), _Error()
        for name in ("nnd_open", "nnd_call_new", "nnd_output"):
            getattr(self._lib, name).restype = ctypes.c_void_p
        program = self._lib.nnd_open(bundle.encode(), ctypes.byref(ctypes.c_int(threads)), ctypes.byref(self._error))
        self._checked(program)
        self._call = ctypes.c_void_p(self._lib.nnd_call_new(ctypes.c_void_p(program), ctypes.byref(self._error)))
        self._checked(self._call)
        count = self._lib.nnd_num_outputs(ctypes.c_void_p(program))
        infos = [self._lib.nnd_output(ctypes.c_void_p(program), number) for number in range(count)]
        self._names = [ctypes.cast(info, ctypes.POINTER(ctypes.c_char_p))[0] for info in infos]
        self._arrays = [np.array(array, order="C") for array in inputs.values()]
        self._given = [(name.encode(), _tensor(array)) for name, array in zip(inputs, self._arrays, strict=True)]
        self._taken = [_Tensor() for _ in infos]

    def run(self) -> None:
        lib, call, error = self._lib, self._call, ctypes.byref(self._error)
        for name, tensor in self._given:
            self._checked(lib.nnd_set_input(call, name, ctypes.byref(tensor), error))
        self._checked(lib.nnd_run(call, error))
        for name, tensor in zip(self._names, self._taken, strict=True):
            self._checked(lib.nnd_get_output(call, name, ctypes.byref(tensor), error))

    def outputs(self) -> list[Array]:
        return [_array(tensor) for tensor in self._taken]

    def _checked(self, fine: Any) -> None:
        if not fine:
            raise EngineRefusedError(self._error.text.decode())


def _tensor(array: Array) -> _Tensor:
    shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    return _Tensor(DTYPES.index(str(array.dtype)), array.ndim, shape, array.ctypes.data)


def _array(tensor: _Tensor) -> Array:
    dtype, shape = np.dtype(DTYPES[tensor.dtype]), tuple(tensor.shape[: tensor.rank])
    count = int(np.prod(shape, dtype=np.int64))
    return np.frombuffer(ctypes.string_at(tensor.data, count * dtype.itemsize), dtype).reshape(shape).copy()
