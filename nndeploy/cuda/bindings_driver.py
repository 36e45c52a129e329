# SPDX-License-Identifier: Apache-2.0
"""The real CUDA driver, called through NVIDIA's cuda-bindings.

The only module that imports `cuda.bindings`, which versions 12 and 13 both serve. Law: a result other than success
becomes a `CudaError` that names the call and the driver's own words.

Source: cuda-bindings, module `cuda.bindings.driver`: each function returns (CUresult, *values).
"""

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from cuda.bindings import driver as cu

from nndeploy.cuda.driver import CudaError, Dim3

_KEEP_ALL_BYTES = 2**64 - 1


class BindingsDriver:
    """`nndeploy.cuda.driver.Driver` over cuda-bindings."""

    def __init__(self) -> None:
        self._initialised = False
        self._has_pools: dict[int, bool] = {}  # by context

    def device_count(self) -> int:
        if not self._initialised:
            (status,) = cu.cuInit(0)
            if status == cu.CUresult.CUDA_ERROR_NO_DEVICE:
                return 0
            _raise_unless_success(status, "cuInit")
            self._initialised = True
        return int(_call(cu.cuDeviceGetCount))

    def driver_version(self) -> int:
        return int(_call(cu.cuDriverGetVersion))

    def device_name(self, ordinal: int) -> str:
        name: bytes = _call(cu.cuDeviceGetName, 256, self._device(ordinal))
        return name.split(b"\0")[0].decode("utf-8", "replace")

    def device_memory_bytes(self, ordinal: int) -> int:
        return int(_call(cu.cuDeviceTotalMem, self._device(ordinal)))

    def attribute(self, ordinal: int, name: str) -> int:
        known = getattr(cu.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}", None)
        if known is None:  # an older cuda-bindings
            return 0
        status, value = cu.cuDeviceGetAttribute(known, self._device(ordinal))
        return int(value) if status == cu.CUresult.CUDA_SUCCESS else 0

    def open_context(self, ordinal: int) -> int:
        device = self._device(ordinal)
        context = int(_call(cu.cuDevicePrimaryCtxRetain, device))
        self._has_pools[context] = self.attribute(ordinal, "MEMORY_POOLS_SUPPORTED") != 0
        self.make_current(context)
        if self._has_pools[context]:
            pool = _call(cu.cuDeviceGetDefaultMemPool, device)
            threshold = cu.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
            _call(cu.cuMemPoolSetAttribute, pool, threshold, cu.cuuint64_t(_KEEP_ALL_BYTES))
        return context

    def make_current(self, context: int) -> None:
        _call(cu.cuCtxSetCurrent, context)

    def create_stream(self) -> int:
        return int(_call(cu.cuStreamCreate, cu.CUstream_flags.CU_STREAM_NON_BLOCKING.value))

    def destroy_stream(self, stream: int) -> None:
        _call(cu.cuStreamDestroy, stream)

    def synchronize(self, stream: int) -> None:
        _call(cu.cuStreamSynchronize, stream)

    def allocate(self, num_bytes: int, stream: int) -> int:
        if self._pools_here():
            return int(_call(cu.cuMemAllocAsync, num_bytes, stream))
        return int(_call(cu.cuMemAlloc, num_bytes))

    def free(self, pointer: int, stream: int) -> None:
        if self._pools_here():
            _call(cu.cuMemFreeAsync, pointer, stream)
        else:
            _call(cu.cuMemFree, pointer)

    def allocate_pinned(self, num_bytes: int) -> int:
        return int(_call(cu.cuMemHostAlloc, num_bytes, 0))

    def free_pinned(self, pointer: int) -> None:
        _call(cu.cuMemFreeHost, pointer)

    def copy_to_device(self, device: int, host: int, num_bytes: int, stream: int) -> None:
        _call(cu.cuMemcpyHtoDAsync, device, host, num_bytes, stream)

    def copy_to_host(self, host: int, device: int, num_bytes: int, stream: int) -> None:
        _call(cu.cuMemcpyDtoHAsync, host, device, num_bytes, stream)

    def copy_on_device(self, target: int, source: int, num_bytes: int, stream: int) -> None:
        _call(cu.cuMemcpyDtoDAsync, target, source, num_bytes, stream)

    def create_event(self) -> int:
        return int(_call(cu.cuEventCreate, cu.CUevent_flags.CU_EVENT_DISABLE_TIMING.value))

    def record_event(self, event: int, stream: int) -> None:
        _call(cu.cuEventRecord, event, stream)

    def is_event_done(self, event: int) -> bool:
        (status,) = cu.cuEventQuery(event)
        if status == cu.CUresult.CUDA_ERROR_NOT_READY:
            return False
        _raise_unless_success(status, "cuEventQuery")
        return True

    def wait_event(self, event: int) -> None:
        _call(cu.cuEventSynchronize, event)

    def destroy_event(self, event: int) -> None:
        _call(cu.cuEventDestroy, event)

    def load_module(self, image: bytes) -> int:
        return int(_call(cu.cuModuleLoadData, image))

    def unload_module(self, module: int) -> None:
        _call(cu.cuModuleUnload, module)

    def function(self, module: int, name: str) -> int:
        return int(_call(cu.cuModuleGetFunction, module, name.encode()))

    def allow_shared_bytes(self, function: int, num_bytes: int) -> None:
        attribute = cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        _call(cu.cuFuncSetAttribute, function, attribute, num_bytes)

    def launch(
        self, function: int, grid: Dim3, block: Dim3, shared_bytes: int, stream: int, args: Sequence[bytes]
    ) -> None:
        buffers = [ctypes.create_string_buffer(arg, len(arg)) for arg in args]
        pointers = (ctypes.c_void_p * len(buffers))(*(ctypes.addressof(buffer) for buffer in buffers))
        _call(cu.cuLaunchKernel, function, *grid, *block, shared_bytes, stream, ctypes.addressof(pointers), 0)

    def begin_capture(self, stream: int) -> None:
        _call(cu.cuStreamBeginCapture, stream, cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)

    def end_capture(self, stream: int) -> int:
        graph = _call(cu.cuStreamEndCapture, stream)
        try:
            return int(_call(cu.cuGraphInstantiate, graph, 0))
        finally:
            _call(cu.cuGraphDestroy, graph)

    def abandon_capture(self, stream: int) -> None:
        status, graph = cu.cuStreamEndCapture(stream)
        if status == cu.CUresult.CUDA_SUCCESS:
            cu.cuGraphDestroy(graph)

    def launch_graph(self, graph: int, stream: int) -> None:
        _call(cu.cuGraphLaunch, graph, stream)

    def destroy_graph(self, graph: int) -> None:
        _call(cu.cuGraphExecDestroy, graph)

    def _device(self, ordinal: int) -> Any:
        self.device_count()
        return _call(cu.cuDeviceGet, ordinal)

    def _pools_here(self) -> bool:
        return self._has_pools.get(int(_call(cu.cuCtxGetCurrent)), False)


def _call(function: Callable[..., tuple[Any, ...]], *args: Any) -> Any:
    """Returns the value of a driver call, None where it has none.

    Raises:
        CudaError: the result is not CUDA_SUCCESS.
    """
    status, *values = function(*args)
    _raise_unless_success(status, function.__name__)
    return values[0] if values else None


def _raise_unless_success(status: Any, call: str) -> None:
    if status == cu.CUresult.CUDA_SUCCESS:
        return
    _, words = cu.cuGetErrorString(status)
    said = words.decode() if isinstance(words, bytes) else "unknown error"
    raise CudaError(f"{call} failed: {getattr(status, 'name', status)}: {said}", hint=_HINTS.get(int(status), ""))


_HINTS = {
    2: "the GPU's memory is full: smaller batches, or another --device",
    209: "the bundle has no code for this GPU: compile with --target for it",
    700: "a kernel read or wrote outside its memory: please report the model",
    999: "the GPU is in a bad state: see nvidia-smi",
}
