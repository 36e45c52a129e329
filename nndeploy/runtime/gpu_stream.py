# SPDX-License-Identifier: Apache-2.0
"""The streams that one program's work goes to, in order, one on each GPU that it uses; other programs have others."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

from nndeploy.cuda import device
from nndeploy.runtime.chain import Runnable, on_host
from nndeploy.values.types import Value


class GpuStreams:
    """GPUs by name ("cuda:0") and a stream of each, borrowed until `close`."""

    def __init__(self, gpus: Iterable[str]) -> None:
        """Borrows the streams.

        Raises:
            UnavailableError: CUDA cannot be used here, or there is no such GPU.
        """
        devices = [device(int(gpu.partition(":")[2])) for gpu in gpus]
        self.streams = tuple(one.borrow_stream() for one in devices)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Makes this thread's work on each of the GPUs go to its stream."""
        with ExitStack() as stack:
            for stream in self.streams:
                stack.enter_context(stream.device.on(stream))
            yield

    def on_host(self, values: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the values with those on a GPU copied to the host."""
        with self.entered():
            return on_host(values, values)

    def wait(self) -> None:
        """Waits until all work that was queued so far is done."""
        for stream in self.streams:
            stream.synchronize()

    def close(self) -> None:
        """Waits for the work and gives the streams back."""
        for stream in self.streams:
            stream.synchronize()
            stream.device.give_back_stream(stream)


class GpuStreamStep:
    """A step whose work on GPUs, and whose copies from there, go to the program's streams."""

    def __init__(self, step: Runnable, gpu_streams: GpuStreams) -> None:
        self.inputs, self.outputs = step.inputs, step.outputs
        self._step = step
        self._gpu_streams = gpu_streams

    def __call__(self, values: Mapping[str, Value]) -> Mapping[str, Value]:
        """Returns the outputs of the submodel; `values` holds at least its inputs."""
        with self._gpu_streams.entered():
            return self._step(values)
