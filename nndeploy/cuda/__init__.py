# SPDX-License-Identifier: Apache-2.0
"""Device memory, streams, kernels and graphs of NVIDIA GPUs, through NVIDIA's cuda-bindings; never torch or cupy.

The GPU backends' sessions and the run half stand on it: `cuda_unavailable()` says why there is no GPU, `device(0)` is
the way in. Importing it costs nothing heavy; the driver is loaded when it is first asked. Law: work is asynchronous
and in order on the stream of its device; only `synchronize` and `DeviceArray.numpy` wait.
"""

from nndeploy.cuda.array import DeviceArray
from nndeploy.cuda.captured import CapturedCall
from nndeploy.cuda.devices import Device, Graph, Kernel, Module, Stream, device, gpu_number, spelled_device
from nndeploy.cuda.driver import CudaError
from nndeploy.cuda.facts import cuda_unavailable

__all__ = [
    "CapturedCall", "CudaError", "Device", "DeviceArray", "Graph", "Kernel", "Module", "Stream", "cuda_unavailable",
    "device", "gpu_number", "spelled_device",
]  # fmt: skip
