# SPDX-License-Identifier: Apache-2.0
"""A deserialized engine on one GPU: binds arrays, queues the work, hands out the results.

    inputs -> addresses and sizes -> outputs: allocated by the sizes that follow, or by the engine while it runs where
    they depend on values -> one call that queues everything on the device's stream

An engine without dynamic sizes is captured as a CUDA graph once it has run, with arrays of its own that inputs and
results are copied to and from; launching a graph costs microseconds where queueing each kernel costs tens of them.

Law: nothing here waits for the GPU. Several threads may call; they take turns while they queue.

Source: TensorRT-RTX 1.7, IExecutionContext, IOutputAllocator; CUDA C++ Programming Guide, CUDA Graphs.
"""

import contextlib
import threading
from collections.abc import Callable, Mapping

from nndeploy.cuda import CapturedCall, CudaError, Device, DeviceArray
from nndeploy.errors import DataError, NndeployError, UsageError
from nndeploy.values.types import Value
from nndeploy_tensorrt.artifact_facts import Binding, EngineFacts
from nndeploy_tensorrt.contexts import Contexts
from nndeploy_tensorrt.library import TensorRt
from nndeploy_tensorrt.output_allocator import output_memory
from nndeploy_tensorrt.reason import library_reason

RUNS_BEFORE_CAPTURE = 2
"""The first runs compile kernels and allocate, which a capture must not."""


class Runner:
    """Runs the contexts of one engine; `last_error` gives the library's newest error text."""

    def __init__(
        self, library: TensorRt, contexts: Contexts, facts: EngineFacts, device: Device, last_error: Callable[[], str]
    ) -> None:
        self._contexts: Contexts | None = contexts
        self._facts = facts
        self._device = device
        self._last_error = last_error
        self._lock = threading.Lock()
        self._nowhere = device.empty((256,), "uint8")  # an address for arrays without elements
        self._memory = {
            binding.name: output_memory(library, device, self._nowhere.ptr)
            for binding in facts.outputs
            if binding.is_dynamic
        }
        self._num_runs = 0
        self._captured: CapturedCall | None = None
        self._may_capture = facts.is_static and _is_capturable(contexts.first, device)

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the outputs as device arrays; host arrays among the inputs are copied to the device."""
        with self._lock:
            if self._captured is not None:
                return self._captured.run(inputs)
            given = {binding.name: self._device.array_of(inputs[binding.name]) for binding in self._facts.inputs}
            outputs = self._queue(given)
            self._num_runs += 1
            if self._may_capture and self._num_runs >= RUNS_BEFORE_CAPTURE:
                self._capture(self._opened().first, given)
            return outputs

    def close(self) -> None:
        """Drops the graph and the context; a second call does nothing."""
        with self._lock:
            self._captured = None
            self._memory = {}
            self._contexts = None

    @property
    def num_runs(self) -> int:
        """How often it ran without a graph."""
        return self._num_runs

    def _queue(self, given: Mapping[str, DeviceArray]) -> dict[str, Value]:
        context = self._opened().holding({name: array.shape for name, array in given.items()})
        if context is None:
            shapes = " ".join(f"{name}{list(array.shape)}" for name, array in given.items())
            raise DataError(f"{shapes}: outside the sizes that the engine was built for")
        with self._device.entered():
            for binding in self._facts.inputs:
                self._bind_input(context, binding, given[binding.name])
            arrays = {binding.name: self._bind_output(context, binding) for binding in self._facts.outputs}
            if not context.execute_async_v3(self._device.stream.handle):
                raise self._failure()
            return {binding.name: self._result(binding, arrays[binding.name]) for binding in self._facts.outputs}

    def _opened(self) -> Contexts:
        if self._contexts is None:
            raise UsageError("the session is closed")
        return self._contexts

    def _bind_input(self, context: TensorRt, binding: Binding, array: DeviceArray) -> None:
        fits = (
            context.set_input_shape(binding.name, array.shape) if binding.is_dynamic else binding.shape == array.shape
        )
        if not fits:
            raise DataError(
                f"{list(array.shape)} is outside the sizes that the engine was built for", where=binding.name
            )
        context.set_tensor_address(binding.name, array.ptr or self._nowhere.ptr)

    def _bind_output(self, context: TensorRt, binding: Binding) -> DeviceArray | None:
        """Returns the array that an output goes to, None where the engine allocates it."""
        shape = tuple(context.get_tensor_shape(binding.name)) if binding.is_dynamic else binding.shape
        if -1 in shape:
            self._memory[binding.name].forget()
            context.set_output_allocator(binding.name, self._memory[binding.name])
            return None
        if binding.is_dynamic:
            context.set_output_allocator(binding.name, None)
        array = self._device.empty(shape, binding.dtype)
        context.set_tensor_address(binding.name, array.ptr or self._nowhere.ptr)
        return array

    def _result(self, binding: Binding, array: DeviceArray | None) -> DeviceArray:
        if array is not None:
            return array
        found = self._memory[binding.name].result(binding.dtype)
        self._memory[binding.name].forget()
        return found

    def _failure(self) -> NndeployError:
        """Returns why the work could not be queued: memory that an output could not get, or the library's own error."""
        no_memory = next((memory.error for memory in self._memory.values() if memory.error is not None), None)
        return no_memory or DataError(f"TensorRT failed: {library_reason(self._last_error())}")

    def _capture(self, context: TensorRt, given: Mapping[str, DeviceArray]) -> None:
        """Captures a graph over arrays of its own; an engine that cannot be captured goes on without."""
        self._may_capture = False
        own_inputs = {name: self._device.empty(array.shape, array.dtype.name) for name, array in given.items()}
        own_outputs = {
            binding.name: self._device.empty(binding.shape, binding.dtype) for binding in self._facts.outputs
        }
        for name, array in (*own_inputs.items(), *own_outputs.items()):
            context.set_tensor_address(name, array.ptr or self._nowhere.ptr)

        def queue() -> None:
            if not context.execute_async_v3(self._device.stream.handle):
                raise DataError("the engine cannot be captured")

        with contextlib.suppress(CudaError, DataError):
            self._captured = CapturedCall(self._device, own_inputs, own_outputs, queue)


def _is_capturable(context: TensorRt, device: Device) -> bool:
    """Returns whether the library says that the context can be captured; the classic one is simply tried."""
    asked = getattr(context, "is_stream_capturable", None)
    return asked is None or bool(asked(device.stream.handle))
