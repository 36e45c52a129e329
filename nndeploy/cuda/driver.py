# SPDX-License-Identifier: Apache-2.0
"""The border to the CUDA driver: what this package asks of it, and which driver a process talks to.

`Driver` has one method for each call that is needed, with plain ints for handles and addresses. `BindingsDriver`
(bindings_driver.py) is the real one; `HostDriver` (`nndeploy.testing`) keeps "device" memory on the host, so that
lifetimes, copies and launches can be tested without a GPU. Law: nobody else in nndeploy calls the driver.

Source: CUDA Driver API reference; each method names its call.
"""

from collections.abc import Sequence
from typing import Protocol

from nndeploy.errors import UnavailableError

Dim3 = tuple[int, int, int]


class CudaError(UnavailableError):
    """A call to the CUDA driver failed: no memory, a bad kernel, a device that is lost."""

    code = "cuda"


class Driver(Protocol):
    """The calls of the CUDA driver that nndeploy needs. Handles and addresses are ints, 0 is none.

    Every method but the first five works in the context that `make_current` set for the calling thread, and raises
    `CudaError` when the driver says no.
    """

    def device_count(self) -> int:
        """Calls cuInit and cuDeviceGetCount; returns 0 where cuInit finds no device."""

    def driver_version(self) -> int:
        """Returns 13000 for CUDA 13.0 (cuDriverGetVersion)."""

    def device_name(self, ordinal: int) -> str:
        """Calls cuDeviceGetName."""

    def device_memory_bytes(self, ordinal: int) -> int:
        """Calls cuDeviceTotalMem."""

    def attribute(self, ordinal: int, name: str) -> int:
        """Returns the attribute `CU_DEVICE_ATTRIBUTE_<name>`, 0 where the driver does not know it."""

    def open_context(self, ordinal: int) -> int:
        """Retains the device's primary context and makes it current; its memory pool keeps what it once got."""

    def make_current(self, context: int) -> None:
        """Calls cuCtxSetCurrent, for the calling thread."""

    def create_stream(self) -> int:
        """A stream that does not wait for the default stream."""

    def destroy_stream(self, stream: int) -> None:
        """Calls cuStreamDestroy; work that was queued is still done."""

    def synchronize(self, stream: int) -> None:
        """Calls cuStreamSynchronize."""

    def allocate(self, num_bytes: int, stream: int) -> int:
        """Calls cuMemAllocAsync, or cuMemAlloc on a device without memory pools."""

    def free(self, pointer: int, stream: int) -> None:
        """Calls cuMemFreeAsync or cuMemFree, as `allocate`."""

    def allocate_pinned(self, num_bytes: int) -> int:
        """Page-locked host memory (cuMemHostAlloc)."""

    def free_pinned(self, pointer: int) -> None:
        """Calls cuMemFreeHost."""

    def copy_to_device(self, device: int, host: int, num_bytes: int, stream: int) -> None:
        """Calls cuMemcpyHtoDAsync."""

    def copy_to_host(self, host: int, device: int, num_bytes: int, stream: int) -> None:
        """Calls cuMemcpyDtoHAsync."""

    def copy_on_device(self, target: int, source: int, num_bytes: int, stream: int) -> None:
        """Calls cuMemcpyDtoDAsync."""

    def create_event(self) -> int:
        """An event without timing."""

    def record_event(self, event: int, stream: int) -> None:
        """Calls cuEventRecord."""

    def is_event_done(self, event: int) -> bool:
        """Calls cuEventQuery."""

    def wait_event(self, event: int) -> None:
        """Calls cuEventSynchronize."""

    def destroy_event(self, event: int) -> None:
        """Calls cuEventDestroy."""

    def load_module(self, image: bytes) -> int:
        """Calls cuModuleLoadData."""

    def unload_module(self, module: int) -> None:
        """Calls cuModuleUnload."""

    def function(self, module: int, name: str) -> int:
        """Calls cuModuleGetFunction."""

    def allow_shared_bytes(self, function: int, num_bytes: int) -> None:
        """Lets a kernel use more dynamic shared memory than the 48 KiB that it gets unasked."""

    def launch(
        self, function: int, grid: Dim3, block: Dim3, shared_bytes: int, stream: int, args: Sequence[bytes]
    ) -> None:
        """Calls cuLaunchKernel; `args` are the parameters' bytes, one item for each parameter."""

    def begin_capture(self, stream: int) -> None:
        """From here on the thread's work on the stream is recorded, not run."""

    def end_capture(self, stream: int) -> int:
        """Returns the recorded graph, instantiated and ready to launch."""

    def abandon_capture(self, stream: int) -> None:
        """Ends a capture whose work failed; never raises."""

    def launch_graph(self, graph: int, stream: int) -> None:
        """Calls cuGraphLaunch."""

    def destroy_graph(self, graph: int) -> None:
        """Calls cuGraphExecDestroy."""
