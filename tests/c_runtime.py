# SPDX-License-Identifier: Apache-2.0
"""The C library that runs bundles (`nndeploy.h`), by ctypes: what it says of a bundle, and what it computes."""

import ctypes
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

DTYPES = tuple(map(np.dtype, ("float32", "int32", "int64", "bool", "uint8", "int8", "float16", "float64")))
"""Those of nnd_dtype in its order, texts left out."""


class RuntimeRefusalError(Exception):
    """An error of the library: its code and its line."""

    def __init__(self, error: "Error") -> None:
        self.code, self.text = int(error.code), error.text.decode()
        super().__init__(self.text)


class Error(ctypes.Structure):
    _fields_ = (("code", ctypes.c_int), ("text", ctypes.c_char * 400))


class Tensor(ctypes.Structure):
    _fields_ = (
        ("dtype", ctypes.c_int), ("rank", ctypes.c_int),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("data", ctypes.c_void_p),
    )  # fmt: skip


class Info(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_int),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
    )  # fmt: skip


def library_at(path: Path) -> ctypes.CDLL:
    """Returns the library of a file."""
    library = ctypes.CDLL(str(path))
    for name in ("nnd_open", "nnd_open_memory", "nnd_call_new", "nnd_input", "nnd_output"):
        getattr(library, name).restype = ctypes.c_void_p
    return library


def output_names(library: ctypes.CDLL, program: ctypes.c_void_p) -> list[str]:
    """Returns the names of a program's outputs."""
    numbers = range(library.nnd_num_outputs(program))
    return [Info.from_address(library.nnd_output(program, number)).name.decode() for number in numbers]


def tensor_of(array: Any) -> Tensor:
    """Returns an array as the library takes it, where it lies."""
    shape = (ctypes.c_int64 * max(1, array.ndim))(*array.shape)
    return Tensor(DTYPES.index(array.dtype), array.ndim, shape, array.ctypes.data)


def array_of(tensor: Tensor) -> Any:
    """Returns a copy of what the library gave."""
    shape, dtype = tuple(tensor.shape[: tensor.rank]), DTYPES[tensor.dtype]
    num_bytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    data = ctypes.string_at(tensor.data, num_bytes) if num_bytes else b""
    return np.frombuffer(data, dtype).reshape(shape)


class CRuntime:
    """The library."""

    def __init__(self, path: Path) -> None:
        self._library = library_at(path)

    def run(self, data: bytes, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the outputs of a bundle on some inputs, with one thread.

        Raises:
            RuntimeRefusalError: the library refuses the bundle or an input.
        """
        (outputs,) = self.runs(data, [inputs])
        return outputs

    def runs(
        self, data: bytes, each: Iterable[Mapping[str, Any]], carried: Mapping[str, str] | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yields the outputs of the runs of one call.

        From the second run on an input of `carried` is the memory of that output of the run before.

        Raises:
            RuntimeRefusalError: as `run`.
        """
        library, error, options = self._library, Error(), ctypes.c_int(1)
        program = library.nnd_open_memory(data, ctypes.c_int64(len(data)), ctypes.byref(options), ctypes.byref(error))
        if not program:
            raise RuntimeRefusalError(error)
        program = ctypes.c_void_p(program)
        call = ctypes.c_void_p(library.nnd_call_new(program, ctypes.byref(error)))
        try:
            for number, inputs in enumerate(each):
                arrays = {name: np.ascontiguousarray(array) for name, array in inputs.items()}
                for name, array in arrays.items():
                    self._give(call, name, array)
                for name, output in (carried or {}).items() if number else ():
                    value = self._tensor(call, output)
                    done = library.nnd_set_input(call, name.encode(), ctypes.byref(value), ctypes.byref(error))
                    self._must(done, error)
                self._must(library.nnd_run(call, ctypes.byref(error)), error)
                yield {name: array_of(self._tensor(call, name)) for name in output_names(library, program)}
        finally:
            library.nnd_call_free(call)
            library.nnd_close(program)

    def _give(self, call: ctypes.c_void_p, name: str, array: Any) -> None:
        error, value = Error(), tensor_of(array)
        done = self._library.nnd_set_input(call, name.encode(), ctypes.byref(value), ctypes.byref(error))
        self._must(done, error)

    def _tensor(self, call: ctypes.c_void_p, name: str) -> Tensor:
        error, value = Error(), Tensor()
        done = self._library.nnd_get_output(call, name.encode(), ctypes.byref(value), ctypes.byref(error))
        self._must(done, error)
        return value

    @staticmethod
    def _must(done: int, error: Error) -> None:
        if not done:
            raise RuntimeRefusalError(error)
