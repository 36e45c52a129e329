# SPDX-License-Identifier: Apache-2.0
"""A launch of a plan -> a call that queues it: grid, block and arguments are put together once."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from nndeploy import cuda
from nndeploy.cuda.array import Allocation
from nndeploy.values.size import fixed
from nndeploy_triton.plan import Kernel, Launch, Place, grid_of

THREADS_A_WARP = 32

Launcher: TypeAlias = Callable[[], None]


def launcher(loaded: cuda.Kernel, kernel: Kernel, launch: Launch, memories: Mapping[str, Allocation]) -> Launcher:
    """Returns a call without arguments that queues the launch, all of numbers; the memories must outlive it."""
    places, sizes = dict(launch.tensors), {name: fixed(size) for name, size in launch.sizes}
    arguments: list[cuda.DeviceArray | np.generic | None] = [
        _byte_at(memories, places[name]) if kind == "tensor" else np.int32(sizes[name])
        for name, kind in kernel.parameters
    ]
    arguments += [None] * kernel.num_null
    x, y, z = map(fixed, grid_of(kernel, launch))
    grid, block = (x, y, z), (THREADS_A_WARP * kernel.num_warps, 1, 1)
    return lambda: loaded.launch(grid, block, kernel.shared_bytes, arguments)


def _byte_at(memories: Mapping[str, Allocation], place: Place) -> cuda.DeviceArray:
    return cuda.DeviceArray(memories[place.memory], (1,), np.dtype(np.uint8), fixed(place.offset))
