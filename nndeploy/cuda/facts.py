# SPDX-License-Identifier: Apache-2.0
"""What the CUDA driver says of this machine: whether CUDA can be used, and facts about each GPU.

`nndeploy.target` makes its `Gpu` values from `gpu_facts`. Nothing is allocated on a GPU. Law: no exception; where
there is no GPU `gpu_facts` is empty, `cuda_unavailable` says why, and `why_no_cuda` also whether anything mends it.

Source: cuDNN backend API, the fields of CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, and the device attributes that
libcudnn itself asks for to fill them. PCI Code and ID Assignment Specification, base class 03h: display controllers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from nndeploy.cuda.current_driver import NoDriverError, current_driver
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


_PCI_DEVICES = Path("/sys/bus/pci/devices")
_NVIDIA, _DISPLAY = "0x10de", "0x03"


@dataclass(frozen=True, slots=True)
class NoCuda:
    """Why no CUDA device can be used here, one line, and what mends it.

    `lacks_gpu`: this machine has no NVIDIA GPU, so nothing mends it and `hint` is "".
    """

    reason: str
    hint: str = ""
    lacks_gpu: bool = False


def why_no_cuda() -> NoCuda | None:
    """Returns why no CUDA device can be used here, or None when one can."""
    try:
        count = current_driver().device_count()
    except NoDriverError as err:
        return NoCuda(err.what, err.hint) if _is_nvidia_gpu_on_bus() else NoCuda(err.what, lacks_gpu=True)
    except UnavailableError as err:
        return NoCuda(err.what, err.hint)
    return None if count else NoCuda("there is an NVIDIA driver but no GPU", lacks_gpu=True)


def cuda_unavailable() -> str:
    """Returns why no CUDA device can be used here, one line, or "" when one can."""
    why = why_no_cuda()
    return why.reason if why is not None else ""


@cache
def _is_nvidia_gpu_on_bus() -> bool:
    """Returns whether the PCI bus has a display controller of NVIDIA's, with or without a driver for it."""
    try:
        return any(
            (device / "vendor").read_text().strip() == _NVIDIA and (device / "class").read_text().startswith(_DISPLAY)
            for device in _PCI_DEVICES.iterdir()
        )
    except OSError:
        return False


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
