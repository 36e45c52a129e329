# SPDX-License-Identifier: Apache-2.0
"""Memory for outputs whose sizes depend on values: the engine asks for it while its work is queued.

Law: what one run got belongs to its result; the next run gets memory of its own. No exception crosses the library.

Source: TensorRT-RTX 1.7, IOutputAllocator.
"""

from functools import cache
from typing import Any, Protocol

from nndeploy.cuda import CudaError, Device, DeviceArray
from nndeploy.cuda.array import Allocation
from nndeploy.values.types import numpy_dtype
from nndeploy_tensorrt.library import TensorRt


class OutputMemory(Protocol):
    """The memory of one output, from run to run."""

    error: CudaError | None

    def forget(self) -> None:
        """Gets ready for the next run."""

    def result(self, dtype: str) -> DeviceArray:
        """Returns the output of the last run, with the sizes that it turned out to have."""


def output_memory(library: TensorRt, device: Device, nowhere: int) -> OutputMemory:
    """Returns an allocator in the library's sense; `nowhere` is an address for outputs without elements."""
    made: OutputMemory = _allocator_class(library)(device, nowhere)
    return made


@cache
def _allocator_class(library: TensorRt) -> Any:
    class OutputAllocator(library.IOutputAllocator):  # type: ignore[misc]  # the base class is known at run time only
        def __init__(self, device: Device, nowhere: int) -> None:
            library.IOutputAllocator.__init__(self)
            self._device = device
            self._nowhere = nowhere
            self.forget()

        def forget(self) -> None:
            self.error: CudaError | None = None
            self._memory: Allocation | None = None
            self._shape: tuple[int, ...] = ()

        def result(self, dtype: str) -> DeviceArray:
            memory = self._memory or Allocation(self._device, 0)
            return DeviceArray(memory, self._shape, numpy_dtype(dtype))

        def reallocate_output_async(
            self,
            tensor_name: str,
            memory: int,
            size: int,
            alignment: int,
            stream: int,  # noqa: ARG002
        ) -> int:
            return self.reallocate_output(tensor_name, memory, size, alignment)

        def reallocate_output(self, tensor_name: str, memory: int, size: int, alignment: int) -> int:  # noqa: ARG002
            try:
                self._memory = Allocation(self._device, size)
            except CudaError as err:
                self.error = err
                return 0
            return self._memory.ptr or self._nowhere

        def notify_shape(self, tensor_name: str, shape: Any) -> None:  # noqa: ARG002
            self._shape = tuple(shape)

    return OutputAllocator
