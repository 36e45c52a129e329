# SPDX-License-Identifier: Apache-2.0
"""Work of fixed sizes, recorded as a CUDA graph over arrays that it keeps, and run with values of a caller.

Launching a graph costs microseconds where queueing each of its kernels costs several. What a graph reads and writes is
fixed, so values are copied in and results copied out, in the order of the device's stream.

Source: CUDA C++ Programming Guide, CUDA Graphs.
"""

from collections.abc import Callable, Mapping

import numpy as np

from nndeploy.cuda.array import DeviceArray
from nndeploy.cuda.devices import Device
from nndeploy.values.types import Value


class CapturedCall:
    """A graph with the arrays that it reads (`inputs`) and writes (`outputs`), by name."""

    def __init__(
        self,
        device: Device,
        inputs: Mapping[str, DeviceArray],
        outputs: Mapping[str, DeviceArray],
        work: Callable[[], object],
        runs_before: int = 0,
    ) -> None:
        """Records what `work` queues; it must neither allocate nor wait, and use the given arrays.

        With `runs_before` that many runs queue it as it is, before one records it: what runs once is never recorded.

        Raises:
            CudaError: the work cannot be captured.
        """
        self._device = device
        self._inputs = inputs
        self._outputs = outputs
        self._work = work
        self._runs_before = runs_before
        self._graph = None if runs_before else device.capture(work)

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """Returns fresh arrays with the results; an input is an array of the host or of any GPU.

        Raises:
            InputError: an input has another shape or type than the array that it goes to.
        """
        for name, own in self._inputs.items():
            value = inputs[name]
            if isinstance(value, DeviceArray):
                own.write(value if value.device is self._device else value.numpy())
            else:
                own.write(np.asarray(value))
        self._queue()
        return {name: self._copied(own) for name, own in self._outputs.items()}

    def _queue(self) -> None:
        if self._runs_before:
            self._runs_before -= 1
            self._work()
            return
        if self._graph is None:
            self._graph = self._device.capture(self._work)
        self._graph.launch()

    def _copied(self, own: DeviceArray) -> DeviceArray:
        copy = self._device.empty(own.shape, own.dtype.name)
        copy.write(own)
        return copy
