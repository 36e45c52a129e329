# SPDX-License-Identifier: Apache-2.0
"""Work of fixed sizes, recorded once as a CUDA graph over arrays that it keeps, and run with values of a caller.

Launching a graph costs microseconds where queueing each of its kernels costs several. What a graph reads and writes is
fixed, so values are copied in and results copied out, in the order of the device's stream.

Source: CUDA C++ Programming Guide, CUDA Graphs.
"""

from collections.abc import Callable, Mapping

import numpy as np

from nndeploy.cuda.array import DeviceArray
from nndeploy.cuda.devices import Device
from nndeploy.value_types import Value


class CapturedCall:
    """A graph with the arrays that it reads (`inputs`) and writes (`outputs`), by name."""

    def __init__(
        self,
        device: Device,
        inputs: Mapping[str, DeviceArray],
        outputs: Mapping[str, DeviceArray],
        work: Callable[[], object],
    ) -> None:
        """Records what `work` queues; it must neither allocate nor wait, and use the given arrays.

        Raises:
            CudaError: the work cannot be captured.
        """
        self._device = device
        self._inputs = inputs
        self._outputs = outputs
        self._graph = device.capture(work)

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
        self._graph.launch()
        return {name: self._copied(own) for name, own in self._outputs.items()}

    def _copied(self, own: DeviceArray) -> DeviceArray:
        copy = self._device.empty(own.shape, own.dtype.name)
        copy.write(own)
        return copy
