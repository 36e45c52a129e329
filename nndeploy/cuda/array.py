# SPDX-License-Identifier: Apache-2.0
"""Arrays in device memory: who owns the bytes, views of them, copies to and from the host, DLPack.

Law: an allocation is freed, in stream order, when its last array is dropped; a view keeps it alive. Arrays are dense
and row-major.
"""

import math
import weakref
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from nndeploy.cuda.dlpack import dlpack_capsule
from nndeploy.errors import InputError, UsageError

DLPACK_CUDA = 2
_NO_SYNCHRONIZATION = -1


class ArrayDevice(Protocol):
    """What arrays need of the device that holds them; `nndeploy.cuda.devices.Device` says what each does."""

    name: str
    ordinal: int

    @property
    def stream(self) -> Any:
        """The stream that this thread's work goes to."""

    def allocate(self, num_bytes: int) -> int:
        """Returns the address of new memory."""

    def free(self, ptr: int, stream: Any) -> None:
        """Frees memory in the order of a stream."""

    def copy(self, target: "DeviceArray", source: "DeviceArray") -> None:
        """Copies an array to another on the device."""

    def upload(self, target: "DeviceArray", values: "np.ndarray[Any, Any]") -> None:
        """Copies values of the host to an array."""

    def download(self, array: "DeviceArray") -> "np.ndarray[Any, Any]":
        """Returns a copy on the host."""

    def synchronize(self) -> None:
        """Waits until all work that was queued so far is done."""


class Allocation:
    """Bytes of device memory, freed when the object is dropped. `ptr` is 0 where `num_bytes` is 0."""

    __slots__ = ("__weakref__", "device", "num_bytes", "ptr")

    def __init__(self, device: ArrayDevice, num_bytes: int) -> None:
        self.device = device
        self.num_bytes = num_bytes
        self.ptr = device.allocate(num_bytes) if num_bytes else 0
        if self.ptr:
            weakref.finalize(self, device.free, self.ptr, device.stream).atexit = False


class DeviceArray:
    """An array of `shape` and `dtype` at address `ptr` of `device`; dense and row-major, `nbytes` long."""

    __slots__ = ("_allocation", "dtype", "ptr", "shape")

    def __init__(
        self, allocation: Allocation, shape: Sequence[int], dtype: np.dtype[Any], offset_bytes: int = 0
    ) -> None:
        self._allocation = allocation
        self.shape = tuple(int(size) for size in shape)
        self.dtype = dtype
        self.ptr = allocation.ptr + offset_bytes
        if offset_bytes < 0 or offset_bytes + self.nbytes > allocation.num_bytes:
            raise UsageError(f"an array of {self.nbytes} bytes at {offset_bytes} is outside its memory")

    @property
    def device(self) -> ArrayDevice:
        """The device that holds the bytes."""
        return self._allocation.device

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The number of bytes."""
        return self.size * self.dtype.itemsize

    def __repr__(self) -> str:
        return f"DeviceArray({self.dtype.name}{list(self.shape)} on {self.device.name})"

    def reshape(self, shape: Sequence[int]) -> "DeviceArray":
        """Returns the same bytes under another shape.

        Raises:
            UsageError: the shapes differ in their number of elements.
        """
        if math.prod(shape) != self.size:
            raise UsageError(f"cannot see an array of shape {self.shape} as {tuple(shape)}")
        return DeviceArray(self._allocation, shape, self.dtype, self.ptr - self._allocation.ptr)

    def rows(self, begin: int, end: int) -> "DeviceArray":
        """Returns what lies from `begin` to before `end` on the first axis: the same bytes, no copy.

        Raises:
            UsageError: there are not so many.
        """
        shape, row_bytes = (end - begin, *self.shape[1:]), math.prod(self.shape[1:]) * self.dtype.itemsize
        offset = self.ptr - self._allocation.ptr + begin * row_bytes
        return DeviceArray(self._allocation, shape, self.dtype, offset)

    def write(self, source: "np.ndarray[Any, Any] | DeviceArray") -> None:
        """Overwrites the array with values of the same shape and dtype, from the host or from this device.

        A host array may be changed at once: its bytes were staged.

        Raises:
            InputError: the shape, the dtype or the device differ.
        """
        if source.shape != self.shape or source.dtype != self.dtype:
            raise InputError(
                f"expected {self.dtype.name}{list(self.shape)}, got {source.dtype.name}{list(source.shape)}",
                where=self.device.name,
            )
        if isinstance(source, DeviceArray):
            self.device.copy(self, source)
        else:
            self.device.upload(self, source)

    def numpy(self) -> "np.ndarray[Any, Any]":
        """Returns a copy on the host; waits for the work that makes the values."""
        return self.device.download(self)

    def __dlpack_device__(self) -> tuple[int, int]:
        return DLPACK_CUDA, self.device.ordinal

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,  # an unversioned capsule serves every consumer
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """Returns a capsule of the array, whose bytes stay alive until the consumer is done.

        Raises:
            BufferError: a copy or another device is asked for, or DLPack has no such dtype.

        Source: Python array API standard 2024.12, `array.__dlpack__`.
        """
        if copy or (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()):
            raise BufferError(f"{self!r} can only be exchanged where it is, without a copy")
        if stream != _NO_SYNCHRONIZATION:
            self.device.synchronize()  # whatever stream the consumer uses, the values are there
        return dlpack_capsule(self, self.ptr, self.shape, self.dtype, self.__dlpack_device__())
