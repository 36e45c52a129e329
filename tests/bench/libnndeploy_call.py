# SPDX-License-Identifier: Apache-2.0
"""A bundle run by libnndeploy, the C library, as a C program calls it: no copies of inputs, outputs where they lie.

The calls pass through ctypes, which takes some microseconds of each.
"""

import ctypes
import platform
import sys
from pathlib import Path
from typing import Any

import nndeploy_kernels
import numpy as np
from figures import ROOT
from interleaved import Array, EngineRefusedError, Inputs

sys.path.append(str(ROOT / "tests"))

from c_runtime import Error, Tensor, array_of, library_at, output_names, tensor_of


class Call:
    """A call of a bundle with these inputs; `run()` is what is timed, `outputs()` copies what it left."""

    def __init__(self, bundle: str, inputs: Inputs, threads: int) -> None:
        folder = Path(nndeploy_kernels.__file__).parent / "lib" / f"runtime-{platform.machine()}"
        self._lib, self._error = library_at(folder / "libnndeploy.so"), Error()
        program = self._lib.nnd_open(bundle.encode(), ctypes.byref(ctypes.c_int(threads)), ctypes.byref(self._error))
        self._checked(program)
        self._call = ctypes.c_void_p(self._lib.nnd_call_new(ctypes.c_void_p(program), ctypes.byref(self._error)))
        self._checked(self._call)
        self._names = [name.encode() for name in output_names(self._lib, ctypes.c_void_p(program))]
        self._arrays = [np.array(array, order="C") for array in inputs.values()]
        self._given = [(name.encode(), tensor_of(array)) for name, array in zip(inputs, self._arrays, strict=True)]
        self._taken = [Tensor() for _ in self._names]

    def run(self) -> None:
        lib, call, error = self._lib, self._call, ctypes.byref(self._error)
        for name, tensor in self._given:
            self._checked(lib.nnd_set_input(call, name, ctypes.byref(tensor), error))
        self._checked(lib.nnd_run(call, error))
        for name, tensor in zip(self._names, self._taken, strict=True):
            self._checked(lib.nnd_get_output(call, name, ctypes.byref(tensor), error))

    def outputs(self) -> list[Array]:
        return [array_of(tensor) for tensor in self._taken]

    def _checked(self, fine: Any) -> None:
        if not fine:
            raise EngineRefusedError(self._error.text.decode())
