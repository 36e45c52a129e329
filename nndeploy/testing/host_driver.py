# SPDX-License-Identifier: Apache-2.0
"""A CUDA driver without CUDA, for tests: device memory is host memory, copies are memcpy, launches are recorded.

`injected_driver(HostDriver())` puts it where the real driver would be. It is stricter than the real one: fresh memory
holds 0xA5 bytes, a copy beyond an allocation, a double free or a call without a current context is a `CudaError`.
`run_kernel` may stand in for the GPU: it gets each launch when it would run. Law: nothing here is asynchronous.
"""

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from nndeploy.cuda.driver import CudaError, Dim3

GARBAGE = 0xA5


@dataclass(frozen=True, slots=True)
class HostGpu:
    """What a pretended GPU says of itself; `attributes` by the names that `Driver.attribute` takes."""

    name: str = "Pretended GPU"
    memory_bytes: int = 1 << 30
    attributes: Mapping[str, int] = field(
        default_factory=lambda: {
            "COMPUTE_CAPABILITY_MAJOR": 8,
            "COMPUTE_CAPABILITY_MINOR": 9,
            "MEMORY_POOLS_SUPPORTED": 1,
        }
    )


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of a kernel; `args` are the parameters' bytes."""

    kernel: str
    grid: Dim3
    block: Dim3
    shared_bytes: int
    args: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Copy:
    """One copy: `kind` is "to device", "to host" or "on device", `ordinal` the GPU whose memory it reads or writes."""

    kind: str
    ordinal: int
    num_bytes: int


class HostDriver:
    """`nndeploy.cuda.driver.Driver` on the host.

    What happened can be read: `launches`, `copies` (those of captured graphs at each launch), `live_bytes`,
    `live_pinned`, `num_synchronized`, `allowed_shared_bytes`. Memory is that of the GPU whose context is current.
    While `finish_events` is False no recorded event is done, as if the GPU were still busy.
    """

    def __init__(
        self, gpus: Sequence[HostGpu] = (HostGpu(),), run_kernel: Callable[[Launch], None] | None = None
    ) -> None:
        self.gpus = tuple(gpus)
        self.launches: list[Launch] = []
        self.copies: list[Copy] = []
        self.allowed_shared_bytes: dict[str, int] = {}
        self.num_synchronized = 0
        self.finish_events = True
        self._run_kernel = run_kernel
        self._handles = count(1)
        self._memory: dict[int, ctypes.Array[ctypes.c_char]] = {}
        self._owner: dict[int, int] = {}  # by address: the GPU that has it
        self._pinned: dict[int, ctypes.Array[ctypes.c_char]] = {}
        self._modules: dict[int, bytes] = {}
        self._functions: dict[int, str] = {}
        self._graphs: dict[int, list[Callable[[], object]]] = {}
        self._captures: dict[int, list[Callable[[], object]]] = {}
        self._recorded: dict[int, bool] = {}  # by event: is it pending
        self._thread = threading.local()

    @property
    def live_bytes(self) -> int:
        """Bytes of device memory that were allocated and not yet freed."""
        return sum(len(buffer) for buffer in self._memory.values())

    @property
    def live_pinned(self) -> int:
        """Page-locked buffers that were allocated and not yet freed."""
        return len(self._pinned)

    @property
    def live_modules(self) -> int:
        """Modules that were loaded and not yet unloaded."""
        return len(self._modules)

    @property
    def live_graphs(self) -> int:
        """Graphs that were instantiated and not yet destroyed."""
        return len(self._graphs)

    def device_count(self) -> int:
        return len(self.gpus)

    def driver_version(self) -> int:
        return 13000

    def device_name(self, ordinal: int) -> str:
        return self.gpus[ordinal].name

    def device_memory_bytes(self, ordinal: int) -> int:
        return self.gpus[ordinal].memory_bytes

    def attribute(self, ordinal: int, name: str) -> int:
        return self.gpus[ordinal].attributes.get(name, 0)

    def open_context(self, ordinal: int) -> int:
        self.make_current(ordinal + 1)
        return ordinal + 1

    def make_current(self, context: int) -> None:
        self._thread.context = context

    def create_stream(self) -> int:
        self._check_context("cuStreamCreate")
        return next(self._handles)

    def destroy_stream(self, stream: int) -> None:
        self._check_context("cuStreamDestroy")
        _check(stream not in self._captures, "cuStreamDestroy", "the stream is being captured")

    def synchronize(self, stream: int) -> None:
        self._check_context("cuStreamSynchronize")
        _check(stream not in self._captures, "cuStreamSynchronize", "the stream is being captured")
        self.num_synchronized += 1

    def allocate(self, num_bytes: int, stream: int) -> int:
        self._check_context("cuMemAllocAsync")
        _check(stream not in self._captures, "cuMemAllocAsync", "the stream is being captured")
        _check(num_bytes > 0, "cuMemAllocAsync", "invalid argument")
        ordinal = self._thread.context - 1
        taken = sum(len(buffer) for pointer, buffer in self._memory.items() if self._owner[pointer] == ordinal)
        _check(num_bytes <= self.gpus[ordinal].memory_bytes - taken, "cuMemAllocAsync", "out of memory")
        pointer = _new_buffer(self._memory, num_bytes)
        self._owner[pointer] = ordinal
        return pointer

    def free(self, pointer: int, stream: int) -> None:
        self._check_context("cuMemFreeAsync")
        _check(stream not in self._captures, "cuMemFreeAsync", "the stream is being captured")
        _check(self._memory.pop(pointer, None) is not None, "cuMemFreeAsync", "not allocated, or freed before")

    def allocate_pinned(self, num_bytes: int) -> int:
        self._check_context("cuMemHostAlloc")
        return _new_buffer(self._pinned, num_bytes)

    def free_pinned(self, pointer: int) -> None:
        _check(self._pinned.pop(pointer, None) is not None, "cuMemFreeHost", "not allocated, or freed before")

    def copy_to_device(self, device: int, host: int, num_bytes: int, stream: int) -> None:
        self._check_context("cuMemcpyHtoDAsync")
        self._check_inside(device, num_bytes, "cuMemcpyHtoDAsync")
        self._queue_copy(stream, "to device", device, host, num_bytes)

    def copy_to_host(self, host: int, device: int, num_bytes: int, stream: int) -> None:
        self._check_context("cuMemcpyDtoHAsync")
        self._check_inside(device, num_bytes, "cuMemcpyDtoHAsync")
        self._queue_copy(stream, "to host", host, device, num_bytes)

    def copy_on_device(self, target: int, source: int, num_bytes: int, stream: int) -> None:
        self._check_context("cuMemcpyDtoDAsync")
        self._check_inside(target, num_bytes, "cuMemcpyDtoDAsync")
        self._check_inside(source, num_bytes, "cuMemcpyDtoDAsync")
        self._queue_copy(stream, "on device", target, source, num_bytes)

    def create_event(self) -> int:
        self._check_context("cuEventCreate")
        event = next(self._handles)
        self._recorded[event] = False
        return event

    def record_event(self, event: int, stream: int) -> None:
        self._check_context("cuEventRecord")
        _check(stream not in self._captures, "cuEventRecord", "the stream is being captured")
        self._recorded[event] = True

    def is_event_done(self, event: int) -> bool:
        if self.finish_events:
            self._recorded[event] = False
        return not self._recorded[event]

    def wait_event(self, event: int) -> None:
        self._check_context("cuEventSynchronize")
        self._recorded[event] = False

    def destroy_event(self, event: int) -> None:
        _check(self._recorded.pop(event, None) is not None, "cuEventDestroy", "invalid handle")

    def load_module(self, image: bytes) -> int:
        self._check_context("cuModuleLoadData")
        _check(bool(image), "cuModuleLoadData", "invalid image")
        module = next(self._handles)
        self._modules[module] = image
        return module

    def unload_module(self, module: int) -> None:
        self._check_context("cuModuleUnload")
        _check(self._modules.pop(module, None) is not None, "cuModuleUnload", "invalid handle")

    def function(self, module: int, name: str) -> int:
        self._check_context("cuModuleGetFunction")
        _check(name.encode() in self._modules[module], "cuModuleGetFunction", "named symbol not found")
        function = next(self._handles)
        self._functions[function] = name
        return function

    def allow_shared_bytes(self, function: int, num_bytes: int) -> None:
        self._check_context("cuFuncSetAttribute")
        self.allowed_shared_bytes[self._functions[function]] = num_bytes

    def launch(
        self, function: int, grid: Dim3, block: Dim3, shared_bytes: int, stream: int, args: Sequence[bytes]
    ) -> None:
        self._check_context("cuLaunchKernel")
        _check(all(n > 0 for n in (*grid, *block)), "cuLaunchKernel", "invalid argument")
        launch = Launch(self._functions[function], grid, block, shared_bytes, tuple(args))
        self.queue(stream, lambda: self._execute(launch))

    def begin_capture(self, stream: int) -> None:
        self._check_context("cuStreamBeginCapture")
        _check(stream not in self._captures, "cuStreamBeginCapture", "the stream is being captured")
        self._captures[stream] = []

    def end_capture(self, stream: int) -> int:
        self._check_context("cuStreamEndCapture")
        graph = next(self._handles)
        self._graphs[graph] = self._captures.pop(stream)
        return graph

    def abandon_capture(self, stream: int) -> None:
        self._captures.pop(stream, None)

    def is_capturing(self, stream: int) -> bool:
        """Whether what is queued on a stream is recorded."""
        return stream in self._captures

    def launch_graph(self, graph: int, stream: int) -> None:
        self._check_context("cuGraphLaunch")
        for step in self._graphs[graph]:
            self.queue(stream, step)

    def destroy_graph(self, graph: int) -> None:
        self._check_context("cuGraphExecDestroy")
        _check(self._graphs.pop(graph, None) is not None, "cuGraphExecDestroy", "invalid handle")

    def queue(self, stream: int, step: Callable[[], object]) -> None:
        """Runs a step, or records it where the stream is being captured; what stands for a library's kernels too."""
        if stream in self._captures:
            self._captures[stream].append(step)
        else:
            step()

    def _queue_copy(self, stream: int, kind: str, target: int, source: int, num_bytes: int) -> None:
        """Copies, in the order of a stream, within the memory of the GPU whose context is current."""
        copy = Copy(kind, self._thread.context - 1, num_bytes)

        def step() -> None:
            self.copies.append(copy)
            ctypes.memmove(target, source, num_bytes)

        self.queue(stream, step)

    def _execute(self, launch: Launch) -> None:
        self.launches.append(launch)
        if self._run_kernel is not None:
            self._run_kernel(launch)

    def _check_context(self, call: str) -> None:
        _check(getattr(self._thread, "context", 0) > 0, call, "invalid device context")

    def _check_inside(self, pointer: int, num_bytes: int, call: str) -> None:
        inside = any(
            start <= pointer and pointer + num_bytes <= start + len(buffer)
            for start, buffer in list(self._memory.items())
            if self._owner[start] == self._thread.context - 1
        )
        _check(inside, call, "outside every allocation of this GPU")


def _new_buffer(buffers: dict[int, ctypes.Array[ctypes.c_char]], num_bytes: int) -> int:
    """Returns the address of fresh memory full of garbage, kept alive in `buffers`."""
    buffer = ctypes.create_string_buffer(num_bytes)
    ctypes.memset(buffer, GARBAGE, num_bytes)
    buffers[ctypes.addressof(buffer)] = buffer
    return ctypes.addressof(buffer)


def _check(holds: bool, call: str, said: str) -> None:
    if not holds:
        raise CudaError(f"{call} failed: {said}")
