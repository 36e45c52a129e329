# SPDX-License-Identifier: Apache-2.0
"""The stream of a GPU that one program's work goes to, in order; other programs on that GPU have others."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from nndeploy.cuda import device
from nndeploy.runtime.chain import ChainStep, on_host
from nndeploy.values.types import Value


class GpuStream:
    """A GPU by its name ("cuda:0") and a stream of it, borrowed until `close`."""

    def __init__(self, gpu: str) -> None:
        """Borrows a stream.

        Raises:
            UnavailableError: CUDA cannot be used here, or there is no such GPU.
        """
        self._gpu = device(int(gpu.partition(":")[2]))
        self._stream = self._gpu.borrow_stream()

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Makes this thread's work on the GPU go to the stream."""
        with self._gpu.on(self._stream):
            yield

    def on_host(self, values: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the values with those on the GPU copied to the host."""
        with self.entered():
            return on_host(values, values)

    def wait(self) -> None:
        """Waits until all work that was queued so far is done."""
        self._stream.synchronize()

    def close(self) -> None:
        """Waits for the work and gives the stream back."""
        self._stream.synchronize()
        self._gpu.give_back_stream(self._stream)


class GpuStreamStep:
    """A step whose work on the GPU, and whose copies from there, go to the program's stream."""

    def __init__(self, step: ChainStep, gpu_stream: GpuStream) -> None:
        self.inputs, self.outputs = step.inputs, step.outputs
        self._step = step
        self._gpu_stream = gpu_stream

    def __call__(self, values: Mapping[str, Value]) -> Mapping[str, Value]:
        """Returns the outputs of the submodel; `values` holds at least its inputs."""
        with self._gpu_stream.entered():
            return self._step(values)
