# SPDX-License-Identifier: Apache-2.0
"""Weights beside a model, given to a session so that they stay in memory once.

The library uses weights where they are, and packs most of them anew. Those of a bundle lie in private pages that are
the session's alone. What can be lent, is: the library gets a tensor over these bytes, and forgets it when it needs them
no more. Once the session is there, the pages of all that was forgotten are given back. Nothing is lent of weights that
are mapped from a file, as in a compile: the system takes such pages back by itself.

Law: no page is given back that the library may still read.
"""

import math
import weakref
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from nndeploy.files.given_back import give_back, give_heap_back
from nndeploy.plugin.interface import BundledFiles
from nndeploy_onnxruntime.library import onnxruntime
from nndeploy_onnxruntime.model_fields import (
    DATA_TYPE,
    DIMS,
    ENTRY_KEY,
    ENTRY_VALUE,
    EXTERNAL_DATA,
    GRAPH,
    GRAPH_OUTPUT,
    INITIALIZER,
    NODE,
    OP_TYPE,
    TENSOR_NAME,
    VALUE_NAME,
    fields,
    first,
    inputs_of,
    numbers,
    read_by_bodies,
)

WEIGHTS_FILE = "weights.bin"

_LENDING_VERSIONS = ((1, 31),)
"""Releases of the library that were seen to ask for a lent tensor until the session is there, and never later.

What is documented is that it must stay as long as the session. With other releases nothing is lent.
"""
_READERS = frozenset(
    {
        *("Conv", "FusedConv", "ConvTranspose", "FusedGemm", "FusedMatMul", "Gather", "Gemm", "GRU", "LSTM", "MatMul"),
        *("ConvInteger", "DequantizeLinear", "DynamicQuantizeMatMul", "MatMulInteger", "MatMulIntegerToFloat"),
        *("MatMulNBits", "QGemm", "QLinearConv", "QLinearMatMul", "RNN"),
    }
)
"""Operators of whose constants the library's optimiser makes new ones under new names, if any.

A lent tensor stands for whatever bears its name: of one that was changed under its name, the session would read what it
was before.
"""
_NUMPY_TYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 10: "float16",
    11: "float64", 12: "uint32", 13: "uint64",
}  # fmt: skip
"""Number in TensorProto.DataType -> type of what can be lent."""


class Constant(NamedTuple):
    """A constant in the file of weights; `dtype` is "" where numpy or DLPack lacks its type."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int

    def is_lendable(self) -> bool:
        """Returns whether its bytes are those of an array, at a place where an array may begin."""
        if not self.dtype:
            return False
        size = np.dtype(self.dtype).itemsize
        return 0 < math.prod(self.shape) * size == self.end - self.begin and self.begin % size == 0


class GivenWeights:
    """The weights of one session, if the artifact has some."""

    def __init__(self, files: Mapping[str, memoryview]) -> None:
        """Takes the weights of an artifact."""
        self.names = [WEIGHTS_FILE] if WEIGHTS_FILE in files else []
        self._is_own = isinstance(files, BundledFiles)
        take = files.taken if isinstance(files, BundledFiles) else files.__getitem__
        self._memory = [take(name) for name in self.names]
        self.num_bytes = sum(map(len, self._memory))
        self._lent: list[_Lent] = []

    def lend(self, model: bytes) -> None:
        """Lends what can be lent to a session over `model`, which has passed the gate."""
        if self._is_own and self._memory and _is_lending_known():
            self._lent = [_Lent(one, self._memory[0]) for one in lendable(model, self.num_bytes)]

    def add_to(self, options: Any) -> None:
        """Gives the weights to a session that is about to be made with `options`."""
        if not self._memory:
            return
        options.add_session_config_entry("session.use_external_initializer_file_buffers_directly", "1")
        options.add_external_initializers_from_files_in_memory(self.names, self._memory, [self.num_bytes])
        for one in self._lent:
            options.add_initializer(one.constant.name, one.tensor)

    def let_go(self) -> object:
        """Gives back what the session, which is there, does not use; returns what must stay as long as it."""
        lent, self._lent = self._lent, []
        for one in lent:
            one.tensor = None
        for one in lent:
            if one.array() is None:
                give_back(self._memory[0], one.constant.begin, one.constant.end)
        if lent:
            give_heap_back()
        return self._memory


class _Lent:
    """A constant that is lent: the library's tensor over its bytes, until that is forgotten here."""

    def __init__(self, constant: Constant, memory: memoryview) -> None:
        self.constant = constant
        array = np.frombuffer(memory[constant.begin : constant.end], constant.dtype).reshape(constant.shape)
        self.tensor: Any = onnxruntime().OrtValue.from_dlpack(array)
        self.array = weakref.ref(array)


def lendable(model: bytes, num_bytes: int) -> list[Constant]:
    """Returns the constants of a model that lie in a file of so many bytes and are read by `_READERS` alone.

    Where two constants share bytes there are none.
    """
    graph, constants, others = first(model, GRAPH), list[Constant](), set[str]()
    for number, _, content in fields(graph):
        if number == INITIALIZER and (constant := _constant(content, num_bytes)) is not None:
            constants.append(constant)
        elif number == GRAPH_OUTPUT:
            others.add(first(content, VALUE_NAME).decode())
        elif number == NODE and first(content, OP_TYPE).decode() not in _READERS:
            others.update(name.decode() for name in (*inputs_of(content), *read_by_bodies(content)))
    constants.sort(key=lambda one: one.begin)
    if any(later.begin < one.end for one, later in pairwise(constants)):
        return []
    return [one for one in constants if one.is_lendable() and one.name not in others]


def _constant(tensor: bytes, num_bytes: int) -> Constant | None:
    """Returns a constant as it lies in the file of so many bytes; None of one in the model."""
    entries = [content for number, _, content in fields(tensor) if number == EXTERNAL_DATA]
    place = {first(entry, ENTRY_KEY): first(entry, ENTRY_VALUE) for entry in entries}
    if not place:
        return None
    offset, length = place.get(b"offset", b"0"), place.get(b"length", b"")
    begin, end = 0, num_bytes  # where nothing, or no number, says otherwise
    if offset.isdigit() and length.isdigit():
        begin, end = int(offset), min(int(offset) + int(length), num_bytes)
    dtype = next((_NUMPY_TYPES[one] for one in numbers(tensor, DATA_TYPE) if one in _NUMPY_TYPES), "")
    return Constant(first(tensor, TENSOR_NAME).decode(), dtype, tuple(numbers(tensor, DIMS)), begin, end)


def _is_lending_known() -> bool:
    major, minor = onnxruntime().__version__.split(".")[:2]
    return (int(major), int(minor)) in _LENDING_VERSIONS
