# SPDX-License-Identifier: Apache-2.0
"""Values that pass between two processes through memory that both have, in the form that they have in a bundle.

One writes, then says how many bytes; the other reads. Where values are tensors of the types and shapes of the time
before, the bytes are copied to the places of then, and it says `AS_BEFORE`. Law: whoever wrote may write again, or be
taken over, and the reader is neither misled nor ended: it copies before it looks, and the memory never becomes smaller.
"""

import fcntl
import mmap
import os
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from nndeploy.bundle.values import decode_values, encode_values
from nndeploy.errors import BundleError, DataError
from nndeploy.runtime.chain import copied
from nndeploy.values.types import Value

AS_BEFORE = 0
"""In place of the number of bytes: values of the same names, types and shapes, laid out as before."""
_PIECE_BYTES = 1 << 30
_Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


class SharedValues:
    """Memory of its own (memfd) with the values of one call; it grows to the largest."""

    def __init__(self, descriptor: int | None = None) -> None:
        """Makes memory, or takes that with a descriptor which another process made."""
        if descriptor is None:
            descriptor = os.memfd_create("nndeploy-values", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        self.descriptor = descriptor
        self._places: dict[str, _Array] = {}

    def write(self, values: Mapping[str, Value]) -> int:
        """Puts values there; returns what the reader is to be told."""
        places = self._places
        if places and _fit(values, places):
            for name, place in places.items():
                place[...] = values[name]
            return AS_BEFORE
        data = memoryview(encode_values(values))
        done = 0
        while done < len(data):
            done += os.pwrite(self.descriptor, data[done : done + _PIECE_BYTES], done)
        self._places = self._places_of(decode_values(data), data)
        return len(data)

    def read(self, told: int, *, is_trusted: bool = False) -> dict[str, Value]:
        """Returns the values that are there, in memory of the caller's own.

        Of a writer that is trusted they may lie where they are, until the next call.

        Raises:
            DataError: there are none.
        """
        if told == AS_BEFORE and self._places:
            return dict(self._places) if is_trusted else {name: _taken(place) for name, place in self._places.items()}
        if not 0 <= told <= os.fstat(self.descriptor).st_size:
            raise DataError(f"there are no {told} bytes of values")
        data = bytearray(told)
        target, done = memoryview(data), 0
        while done < told:
            done += os.preadv(self.descriptor, [target[done : done + _PIECE_BYTES]], done)
        try:
            values = decode_values(target)
        except BundleError as err:
            raise DataError(f"malformed values: {err.what}") from err
        self._places = self._places_of(values, target)
        return values if is_trusted else {name: copied(value) for name, value in values.items()}

    def forget(self) -> None:
        """Lays the next values out anew: the other process is another one."""
        self._places = {}

    def close(self) -> None:
        """Lets go of the memory; a second call does nothing."""
        self.forget()
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _places_of(self, values: Mapping[str, Value], data: memoryview) -> dict[str, _Array]:
        """Returns where decoded values lie in the memory, none where not all of them are tensors of numbers."""
        arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray) and value.size}
        if len(arrays) != len(values) or any(array.dtype.hasobject for array in arrays.values()):
            return {}
        memory = np.frombuffer(mmap.mmap(self.descriptor, len(data)), np.uint8)
        start = _address(np.frombuffer(data, np.uint8))
        ends = ((name, array, _address(array) - start) for name, array in arrays.items())
        return {
            name: memory[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
            for name, array, begin in ends
        }


def _fit(values: Mapping[str, Value], places: Mapping[str, _Array]) -> bool:
    if len(values) != len(places):
        return False
    for name, place in places.items():
        value = values.get(name)
        if not isinstance(value, np.ndarray) or value.dtype != place.dtype or value.shape != place.shape:
            return False
    return True


def _taken(place: _Array) -> _Array:
    copy = place.copy()
    return copy.view(np.uint8) != 0 if copy.dtype == np.bool_ else copy  # who wrote may have put anything there


def _address(array: _Array) -> int:
    return int(array.__array_interface__["data"][0])
