# SPDX-License-Identifier: Apache-2.0
"""What the CUDA driver says of this machine: whether CUDA can be used, and facts about each GPU.

`nndeploy.target` makes its `Gpu` values from `gpu_facts`. Nothing is allocated on a GPU. Law: no exception; where
there is no GPU `gpu_facts` is empty and `cuda_unavailable` says why.

Source: cuDNN backend API, the fields of CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, and the device attributes that
libcudnn itself asks for to fill them.
"""

from collections.abc import Mapping
from typing import Any

from nndeploy.cuda.current_driver import current_driver
from nndeploy.cuda.driver import Driver
from nndeploy.errors import UnavailableError

_DESCRIPTOR_ATTRIBUTES = {
    "regsPerBlock": "MAX_REGISTERS_PER_BLOCK",
    "multiProcessorCount": "MULTIPROCESSOR_COUNT",
    "smClockRateKHz": "CLOCK_RATE",
    "memClockRateKHz": "MEMORY_CLOCK_RATE",
    "memoryBusWidth": "GLOBAL_MEMORY_BUS_WIDTH",
    "l2CacheSize": "L2_CACHE_SIZE",
    "warpSize": "WARP_SIZE",
    "maxSharedMemoryPerBlock": "MAX_SHARED_MEMORY_PER_BLOCK",
    "maxSharedMemoryPerBlockOptin": "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
    "oversizedSharedMemoryPerBlock": "MAX_OVERSIZED_SHARED_MEMORY_PER_BLOCK",
    "reservedSharedMemoryPerBlock": "RESERVED_SHARED_MEMORY_PER_BLOCK",
    "maxRegistersPerSM": "MAX_REGISTERS_PER_MULTIPROCESSOR",
    "pciDeviceId": "PCI_DEVICE_ID",
    "maxCtasPerSM": "MAX_BLOCKS_PER_MULTIPROCESSOR",
    "maxThreadsPerBlock": "MAX_THREADS_PER_BLOCK",
    "maxThreadsPerSM": "MAX_THREADS_PER_MULTIPROCESSOR",
    "isTccDriver": "TCC_DRIVER",
    "supportCoopLaunch": "COOPERATIVE_LAUNCH",
}
"""Key of the descriptor -> device attribute of the driver."""


def cuda_unavailable() -> str:
    """Returns why no CUDA device can be used here, one line, or "" when one can."""
    try:
        count = current_driver().device_count()
    except UnavailableError as err:
        return err.what
    return "" if count else "there is an NVIDIA driver but no GPU"


def gpu_facts() -> tuple[Mapping[str, Any], ...]:
    """Returns for each GPU its `name`, `compute_capability` ("8.9"), `memory_bytes` and `cudnn` descriptor."""
    if cuda_unavailable():
        return ()
    driver = current_driver()
    return tuple(_facts(driver, ordinal) for ordinal in range(driver.device_count()))


def compute_capability(driver: Driver, ordinal: int) -> str:
    """Returns a device's compute capability, as "8.9"."""
    major = driver.attribute(ordinal, "COMPUTE_CAPABILITY_MAJOR")
    return f"{major}.{driver.attribute(ordinal, 'COMPUTE_CAPABILITY_MINOR')}"


def _facts(driver: Driver, ordinal: int) -> dict[str, Any]:
    return {
        "name": driver.device_name(ordinal),
        "compute_capability": compute_capability(driver, ordinal),
        "memory_bytes": driver.device_memory_bytes(ordinal),
        "cudnn": _cudnn_descriptor(driver, ordinal),
    }


def _cudnn_descriptor(driver: Driver, ordinal: int) -> dict[str, Any]:
    """Returns the descriptor of a GPU; `cudaDeviceId` is 0, as it describes a kind of GPU and not its slot."""
    major, _, minor = compute_capability(driver, ordinal).partition(".")
    return {
        "deviceName": driver.device_name(ordinal),
        "deviceVer": 100 * int(major) + 10 * int(minor),
        "driverVer": driver.driver_version(),
        "cudaDeviceId": 0,
        "smCountOrigin": 0,
        "totalGlobalMem": driver.device_memory_bytes(ordinal),
        "maxGridSize": [driver.attribute(ordinal, f"MAX_GRID_DIM_{axis}") for axis in "XYZ"],
        "maxBlockSize": [driver.attribute(ordinal, f"MAX_BLOCK_DIM_{axis}") for axis in "XYZ"],
        **{key: driver.attribute(ordinal, name) for key, name in _DESCRIPTOR_ATTRIBUTES.items()},
    }
