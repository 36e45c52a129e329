# SPDX-License-Identifier: Apache-2.0
"""Memory of outputs that are an input with more behind it: caches of keys and values, of which no past is copied.

The memory of such an output has room behind what is there. A caller who gives the array that he got as the input of the
next call, as every loop of a decoder does, gets the same memory back, one part longer; any other array is copied to
memory of its own first. So does one whose room another call has taken since, or which is full.

Law: what an array holds that was given to a caller never changes; it is read-only, as later ones may share its memory.
"""

import math
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from nndeploy.errors import BundleError
from nndeploy_native.native_memory import ByteArray, address_of, aligned_zeros
from nndeploy_native.plan import DOCUMENT_FILE, DTYPES, GrownOutput, PlanDocument

KEPT_MEMORIES = 2
"""Memories of each output that are kept for later calls, once nobody holds their arrays."""
LEAST_ROOM = 64
"""Places behind what is there in new memory, at least; half of what is there, where that is more."""
_REFERENCES_OF_FREE = 3
"""References to memory that nobody else holds: the list, the loop's variable, the argument."""
_lock = threading.Lock()
"""Held while places are taken: an array may go from one session to another."""

_Given = tuple[ByteArray, int]


class _Memory:
    """Bytes that arrays are made over, which keep it; `length` places along their axis are taken."""

    __slots__ = ("__array_interface__", "data", "length")

    def __init__(self, num_bytes: int) -> None:
        self.data = aligned_zeros(num_bytes)
        self.length = 0
        self.__array_interface__: dict[str, Any] = {}

    def array(self, shape: tuple[int, ...], dtype: "np.dtype[Any]") -> ByteArray:
        """Returns an array that fits into the bytes; its base is this memory."""
        where = (address_of(self.data), False)
        self.__array_interface__ = {"shape": shape, "typestr": dtype.str, "data": where, "version": 3}
        return np.asarray(self)


class _Begun(NamedTuple):
    """A whole array with room along an axis, of which `length` places are an output."""

    whole: ByteArray
    axis: int
    length: int


class CachesOfCall(NamedTuple):
    """How much room the caches of a call have along their axes, and what they are by the number of the output.

    Whether `go_on`: they lie in the memory of the inputs.
    """

    room: int
    begun: dict[int, _Begun]
    go_on: bool

    def output(self, number: int, shape: tuple[int, ...]) -> _Given:
        """Returns an output as the caller gets it, and the address of its memory.

        Raises:
            BundleError: `shape`, which the plan writes, is not that of the memory.
        """
        whole, axis, length = self.begun[number]
        if whole.shape != shape:
            raise BundleError(f"{DOCUMENT_FILE} says another shape of what grows than the plan")
        view = whole[(slice(None),) * axis + (slice(length),)]
        view.flags.writeable = False
        return view, address_of(whole)


class CacheMemories:
    """The outputs of one session that grow; several threads may ask at once."""

    def __init__(self, document: PlanDocument, symbol: Callable[[int, Sequence[tuple[int, ...]]], int]) -> None:
        """`symbol(number, shapes)` tells a symbol of the document for the shapes of the inputs."""
        self._grown, self._symbol = document.grown, symbol
        self._dtypes = [np.dtype(DTYPES[document.outputs[one.output].element]) for one in document.grown]
        self._kept: list[list[_Memory]] = [[] for _ in document.grown]

    def taken(self, inputs: list[_Given], *, anew: bool = False) -> tuple[list[_Given], CachesOfCall]:
        """Returns the inputs of a call with their addresses, as kernels take them, and its caches.

        Those are in memory of their own where all is to begin `anew`.

        Raises:
            OtherSizesError: the shapes of the inputs are not those of the plan.
        """
        shapes = [array.shape for array, _ in inputs]
        pasts = [inputs[one.input][0] for one in self._grown]
        lengths = [
            one.length(shapes[one.input][one.axis], 0 if one.symbol is None else self._symbol(one.symbol, shapes))
            for one in self._grown
        ]
        with _lock:
            wholes = None if anew else self._continued(pasts, lengths)
            go_on = wholes is not None
            if wholes is None:
                inputs = [_dense(given) for given in inputs]
                room = max(lengths)
                room += max(LEAST_ROOM, room // 2)
                wholes = [self._fresh(number, past, room) for number, past in enumerate(pasts)]
            for whole, length in zip(wholes, lengths, strict=True):
                _memory_of(whole).length = length
        begun = {
            one.output: _Begun(whole, one.axis, length)
            for one, whole, length in zip(self._grown, wholes, lengths, strict=True)
        }
        return inputs, CachesOfCall(wholes[0].shape[self._grown[0].axis], begun, go_on)

    def _continued(self, pasts: Sequence[ByteArray], lengths: Sequence[int]) -> list[ByteArray] | None:
        """Returns the arrays that the inputs begin, where all have room behind them that is not taken."""
        wholes = [_whole_of(past, one) for one, past in zip(self._grown, pasts, strict=True)]
        rooms = {
            None if whole is None else whole.shape[one.axis] for one, whole in zip(self._grown, wholes, strict=True)
        }
        (room, *others) = rooms
        if others or room is None or max(lengths) > room or len({id(whole) for whole in wholes}) < len(wholes):
            return None
        return [whole for whole in wholes if whole is not None]

    def _fresh(self, number: int, past: ByteArray, room: int) -> ByteArray:
        """Returns memory that nobody holds, for an array like `past` with so much room."""
        axis, dtype = self._grown[number].axis, self._dtypes[number]
        shape = (*past.shape[:axis], room, *past.shape[axis + 1 :])
        num_bytes = math.prod(shape) * dtype.itemsize
        kept = self._kept[number]
        for memory in kept:
            if sys.getrefcount(memory) == _REFERENCES_OF_FREE and memory.data.size >= num_bytes:
                return memory.array(shape, dtype)
        memory = _Memory(num_bytes)
        kept.append(memory)
        del kept[:-KEPT_MEMORIES]
        return memory.array(shape, dtype)


def _memory_of(whole: ByteArray) -> _Memory:
    """Returns the memory that a whole array lies in."""
    assert isinstance(whole.base, _Memory), "it was made over it"
    return whole.base


def _dense(given: _Given) -> _Given:
    """Returns an input whose elements follow each other."""
    array, _ = given
    if array.flags.c_contiguous:
        return given
    dense = np.ascontiguousarray(array)
    return dense, address_of(dense)


def _whole_of(past: ByteArray, grown: GrownOutput) -> "ByteArray | None":
    """Returns the array with room of which an input is all that is taken; None where it is another."""
    whole = past.base
    if not isinstance(whole, np.ndarray) or not isinstance(whole.base, _Memory) or whole.ndim != past.ndim:
        return None
    axis = grown.axis
    is_begin = (
        address_of(past) == address_of(whole)
        and past.dtype == whole.dtype
        and past.strides == whole.strides
        and past.shape[:axis] == whole.shape[:axis]
        and past.shape[axis + 1 :] == whole.shape[axis + 1 :]
        and past.shape[axis] == whole.base.length
    )
    return whole if is_begin else None
