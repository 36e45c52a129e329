# SPDX-License-Identifier: Apache-2.0
"""One GPU of this machine: its memory, its stream, its modules, kernels and graphs.

Backends' sessions come in through `device(index)`. Several threads may use a device: each call makes the device's
context current first. Law: all work of a thread goes to `Device.stream`, in order; that is one stream for all unless a
program borrowed its own and the thread is `on` it. A thread that captures a graph has a stream of its own for that
time, so the others are not recorded.
"""

import ctypes
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np

from nndeploy.cuda.array import Allocation, DeviceArray
from nndeploy.cuda.current_driver import current_driver
from nndeploy.cuda.driver import CudaError, Dim3, Driver
from nndeploy.cuda.facts import compute_capability, cuda_unavailable
from nndeploy.cuda.staging import PIECE_BYTES, PinnedPool
from nndeploy.errors import InputError, UnavailableError, UsageError
from nndeploy.values.types import Value, numpy_dtype

SHARED_BYTES_UNASKED = 48 * 1024
"""Dynamic shared memory that a kernel may use without opting in. Source: CUDA C++ Programming Guide, 16.x."""

KernelArg: TypeAlias = "DeviceArray | np.generic | None"
"""An array (its address), a numpy scalar (its bytes) or None (a null pointer)."""


class Stream:
    """A queue of work of one device; `handle` is its CUstream."""

    __slots__ = ("device", "handle")

    def __init__(self, device: "Device", handle: int) -> None:
        self.device = device
        self.handle = handle

    def synchronize(self) -> None:
        """Waits until all work that was queued so far is done."""
        with self.device.entered() as driver:
            driver.synchronize(self.handle)


class Device:
    """A GPU; `device(index)` hands it out.

    `ordinal` is its CUDA device number, `name` "cuda:<ordinal>", `compute_capability` for example "8.9".
    """

    def __init__(self, driver: Driver, ordinal: int) -> None:
        self.ordinal = ordinal
        self.name = f"cuda:{ordinal}"
        self._driver = driver
        self._context = driver.open_context(ordinal)
        self.gpu_name = driver.device_name(ordinal)
        self.compute_capability = compute_capability(driver, ordinal)
        self._main_stream = Stream(self, driver.create_stream())
        self._idle_streams: list[Stream] = []
        self._staging = PinnedPool(driver)
        self._thread = threading.local()
        self._num_captures = 0
        self._freed_during_capture: list[tuple[int, Stream]] = []
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"Device({self.name}: {self.gpu_name}, compute capability {self.compute_capability})"

    @property
    def stream(self) -> Stream:
        """The stream that this thread's work goes to."""
        own: Stream | None = getattr(self._thread, "stream", None)
        return own or self._main_stream

    def borrow_stream(self) -> Stream:
        """Returns a stream that nobody else has, until `give_back_stream`.

        Raises:
            CudaError: the device has no room for another.
        """
        with self._lock:
            if self._idle_streams:
                return self._idle_streams.pop()
        with self.entered() as driver:
            return Stream(self, driver.create_stream())

    def give_back_stream(self, stream: Stream) -> None:
        """Takes a borrowed stream back; it is kept, because memory may still be freed in its order."""
        with self._lock:
            self._idle_streams.append(stream)

    @contextmanager
    def on(self, stream: Stream) -> Iterator[None]:
        """Makes `stream` the one that this thread's work goes to."""
        before = getattr(self._thread, "stream", None)
        self._thread.stream = stream
        try:
            yield
        finally:
            self._thread.stream = before

    @contextmanager
    def entered(self) -> Iterator[Driver]:
        """Makes the device current for this thread; a `CudaError` that comes up names the device."""
        try:
            self._driver.make_current(self._context)
            yield self._driver
        except CudaError as err:
            err.where = err.where or self.name
            raise

    def empty(self, shape: Sequence[int], dtype: str) -> DeviceArray:
        """Returns a new array whose values are not set.

        Raises:
            CudaError: the memory is full.
            InputError: values of this type cannot be on a GPU.
        """
        found = _device_dtype(numpy_dtype(dtype))
        num_bytes = found.itemsize * int(np.prod(shape, dtype=np.int64))
        return DeviceArray(Allocation(self, num_bytes), shape, found)

    def to_device(self, values: "np.ndarray[Any, Any]") -> DeviceArray:
        """Returns a new array with `values`, which may be changed at once.

        Raises:
            CudaError: the memory is full.
            InputError: values of this type cannot be on a GPU.
        """
        found = DeviceArray(Allocation(self, values.nbytes), values.shape, _device_dtype(values.dtype))
        found.write(values)
        return found

    def array_of(self, value: Value) -> DeviceArray:
        """Returns `value` itself where it is an array of this device, else a copy of it here.

        Raises:
            CudaError: the memory is full.
            InputError: values of this type cannot be on a GPU.
        """
        if isinstance(value, DeviceArray):
            return value if value.device is self else self.to_device(value.numpy())
        return self.to_device(np.asarray(value))

    def upload(self, target: DeviceArray, values: "np.ndarray[Any, Any]") -> None:
        """Queues a copy of `values`, through a page-locked buffer, to `target` of the same shape and dtype."""
        dense = np.ascontiguousarray(values)
        with self.entered() as driver:
            for start, num_bytes in _pieces(target.nbytes):
                buffer = self._staging.take(num_bytes)
                ctypes.memmove(buffer.ptr, dense.ctypes.data + start, num_bytes)
                driver.copy_to_device(target.ptr + start, buffer.ptr, num_bytes, self.stream.handle)
                self._staging.give_back(buffer, self.stream.handle)

    def download(self, source: DeviceArray) -> "np.ndarray[Any, Any]":
        """Returns a copy of `source` on the host, when the work before it is done."""
        found = np.empty(source.shape, source.dtype)
        with self.entered() as driver:
            for start, num_bytes in _pieces(source.nbytes):
                buffer = self._staging.take(num_bytes)
                driver.copy_to_host(buffer.ptr, source.ptr + start, num_bytes, self.stream.handle)
                driver.synchronize(self.stream.handle)
                ctypes.memmove(found.ctypes.data + start, buffer.ptr, num_bytes)
                self._staging.give_back(buffer, self.stream.handle)
        return found

    def copy(self, target: DeviceArray, source: DeviceArray) -> None:
        """Queues a copy between two arrays of this device with the same number of bytes.

        Raises:
            InputError: an array is on another device, or the sizes differ.
        """
        if target.device is not self or source.device is not self or target.nbytes != source.nbytes:
            raise InputError(f"cannot copy {source!r} to {target!r}", where=self.name)
        if target.nbytes:
            with self.entered() as driver:
                driver.copy_on_device(target.ptr, source.ptr, source.nbytes, self.stream.handle)

    def load_module(self, cubin: bytes) -> "Module":
        """Returns the module of a cubin for this device's compute capability.

        Raises:
            CudaError: it is no cubin, or one for another GPU.
        """
        with self.entered() as driver:
            return Module(self, driver.load_module(cubin))

    def capture(self, work: Callable[[], object]) -> "Graph":
        """Returns the graph of what `work` queues on this thread's stream; nothing of it runs now.

        `work` must neither allocate nor wait; the arrays it uses must outlive the graph.

        Raises:
            CudaError: the work cannot be captured.
        """
        with self.entered() as driver:
            stream = Stream(self, driver.create_stream())
            try:
                with self._capturing(stream):
                    return Graph(self, _captured(driver, stream.handle, work))
            finally:
                driver.destroy_stream(stream.handle)

    def synchronize(self) -> None:
        """Waits until all work on this thread's stream is done."""
        self.stream.synchronize()

    def allocate(self, num_bytes: int) -> int:
        """Returns the address of new memory, usable by work queued from now on; `Allocation` frees it."""
        with self.entered() as driver:
            return driver.allocate(num_bytes, self.stream.handle)

    def free(self, ptr: int, stream: Stream) -> None:
        """Frees memory in stream order: work that was queued before still has it.

        It runs when an array is dropped, in any thread and at any time, so it waits for the end of a capture, and an
        error is not raised: the device is lost then, and the next call on it says so.
        """
        with self._lock:
            if self._num_captures:
                self._freed_during_capture.append((ptr, stream))
                return
        self.quietly(lambda driver: driver.free(ptr, stream.handle))

    def quietly(self, release: Callable[[Driver], None]) -> None:
        """Runs a release from a finalizer, where no error can be raised to anyone."""
        try:
            with self.entered() as driver:
                release(driver)
        except CudaError:
            return

    @contextmanager
    def _capturing(self, stream: Stream) -> Iterator[None]:
        """Makes `stream` the one of this thread; what is dropped meanwhile is freed afterwards."""
        with self._lock:
            self._num_captures += 1
        try:
            with self.on(stream):
                yield
        finally:
            with self._lock:
                self._num_captures -= 1
                dropped, self._freed_during_capture = self._freed_during_capture, []
            for ptr, own_stream in dropped:
                self.free(ptr, own_stream)


class Module:
    """Loaded device code; it is unloaded when the module and its kernels are dropped."""

    def __init__(self, device: Device, handle: int) -> None:
        self.device = device
        self._handle = handle
        weakref.finalize(self, device.quietly, lambda driver: driver.unload_module(handle)).atexit = False

    def kernel(self, name: str) -> "Kernel":
        """Returns the kernel called `name`.

        Raises:
            CudaError: the module has no such kernel.
        """
        with self.device.entered() as driver:
            return Kernel(self, name, driver.function(self._handle, name))


class Kernel:
    """A function of a module that runs on the device."""

    def __init__(self, module: Module, name: str, handle: int) -> None:
        self.module = module
        self.name = name
        self._handle = handle
        self._allowed_shared_bytes = SHARED_BYTES_UNASKED

    def launch(self, grid: Dim3, block: Dim3, shared_bytes: int, args: Sequence[KernelArg]) -> None:
        """Queues one run of the kernel; the arrays must live until it is queued, and stay unfreed by other streams.

        Raises:
            CudaError: the device refuses the launch.
            UsageError: an argument is neither a device array nor a numpy scalar nor None.
        """
        device = self.module.device
        packed = [packed_argument(arg) for arg in args]
        with device.entered() as driver:
            if shared_bytes > self._allowed_shared_bytes:
                driver.allow_shared_bytes(self._handle, shared_bytes)
                self._allowed_shared_bytes = shared_bytes
            driver.launch(self._handle, grid, block, shared_bytes, device.stream.handle, packed)


class Graph:
    """Recorded work of one device that is launched as one; what it reads and writes is fixed."""

    def __init__(self, device: Device, handle: int) -> None:
        self.device = device
        self._handle = handle
        weakref.finalize(self, device.quietly, lambda driver: driver.destroy_graph(handle)).atexit = False

    def launch(self) -> None:
        """Queues the recorded work on this thread's stream."""
        with self.device.entered() as driver:
            driver.launch_graph(self._handle, self.device.stream.handle)


def packed_argument(arg: KernelArg) -> bytes:
    """Returns the bytes of a kernel's parameter.

    Raises:
        UsageError: a Python number, whose width nobody can know, or something else.
    """
    if isinstance(arg, DeviceArray):
        return np.uint64(arg.ptr).tobytes()
    if isinstance(arg, np.generic):
        return arg.tobytes()
    if arg is None:
        return np.uint64(0).tobytes()
    raise UsageError(f"not a kernel argument: {arg!r:.40}", hint="a DeviceArray, a numpy scalar or None")


_devices: dict[tuple[Driver, int], Device] = {}
_devices_lock = threading.Lock()


def device(index: int = 0) -> Device:
    """Returns the GPU with CUDA device number `index`; always the same object.

    Raises:
        UnavailableError: CUDA cannot be used here, or there is no such GPU.
    """
    if why := cuda_unavailable():
        raise UnavailableError(why, where=f"cuda:{index}")
    driver = current_driver()
    if not 0 <= index < (num_gpus := driver.device_count()):
        raise UnavailableError(f"there is no such GPU, this machine has {num_gpus}", where=f"cuda:{index}")
    with _devices_lock:
        if (driver, index) not in _devices:
            _devices[driver, index] = Device(driver, index)
        return _devices[driver, index]


def spelled_device(name: str) -> str:
    """Returns the name of a device as we spell it: in small letters, and the first GPU where it is just a GPU."""
    small = name.strip().lower()
    return "cuda:0" if small in ("gpu", "cuda") else small


def gpu_number(name: str) -> int | None:
    """Returns the CUDA device number in "cuda:N", None where `name` is anything else."""
    kind, _, number = name.partition(":")
    return int(number) if kind == "cuda" and number.isascii() and number.isdigit() else None


def _captured(driver: Driver, stream: int, work: Callable[[], object]) -> int:
    """Returns the graph of what `work` queues; an error in `work` ends the capture and goes on."""
    driver.begin_capture(stream)
    try:
        work()
    except BaseException:
        driver.abandon_capture(stream)
        raise
    return driver.end_capture(stream)


def _pieces(num_bytes: int) -> list[tuple[int, int]]:
    """Returns (start, bytes) of the pieces in which an array goes through page-locked buffers."""
    return [(start, min(PIECE_BYTES, num_bytes - start)) for start in range(0, num_bytes, PIECE_BYTES)]


def _device_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype.kind in "OSUT":
        raise InputError("values of type string cannot be on a GPU")
    return dtype
