# SPDX-License-Identifier: Apache-2.0
"""Plans of steps as calls of the kernel library, with nothing of Python between: what a bench of the kernels times."""

import ctypes
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from nndeploy_native.steps.step import NativeStep
from nndeploy_native.tensors import Tensor

sys.path.append(str(Path(__file__).resolve().parents[1]))
from kernel_library import LEVELS_HERE, Options, RefusedError, library, loaded, opened, plan_of
from kernel_library import Call as CallOfLibrary

ALIGNMENT = 64
BEST_LEVEL = LEVELS_HERE[-1].removesuffix("-bf16")
"""The widest level that this machine runs in float32."""

Array = np.ndarray[Any, Any]
Call = Callable[[], Any]


def library_of(level: str, path: Path | None = None) -> ctypes.CDLL:
    """Returns the library of a level, or one that was built elsewhere."""
    return library(level) if path is None else loaded(path)


def aligned(array: Array) -> Array:
    """Returns a copy that begins at a cache line."""
    memory = np.zeros(array.nbytes + ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % ALIGNMENT
    copy = memory[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def plan_call(
    lib: ctypes.CDLL,
    steps: Sequence[NativeStep],
    inputs: Sequence[Tensor],
    output: Tensor,
    fed: Sequence[Array],
    out: Array,
    threads: int = 1,
) -> Call:
    """Returns one run of a plan of float32 steps; what it needs lives as long as it does, its threads for ever.

    Raises:
        SystemExit: the library refuses the plan.
    """
    plan, raw = plan_of(steps, inputs, [output])
    weights = aligned(np.frombuffer(raw, np.uint8))
    options = Options(_l2_bytes(), 0, threads)
    try:
        model, table = opened(lib, plan, weights.ctypes.data, weights.nbytes, options, fed)
    except RefusedError as err:
        sys.exit(str(err))
    pool = lib.nnd_pool_make(ctypes.c_void_p(model), threads) if threads > 1 else None
    scratch_bytes = lib.nnd_table_scratch_bytes(table)
    arena = aligned(np.zeros(lib.nnd_table_arena_bytes(table), np.uint8))
    scratch = aligned(np.zeros(scratch_bytes * threads, np.uint8))
    given = (ctypes.c_void_p * len(fed))(*(one.ctypes.data for one in fed))
    taken = (ctypes.c_void_p * 1)(out.ctypes.data)
    call = CallOfLibrary(
        ctypes.addressof(given), ctypes.addressof(taken), arena.ctypes.data, scratch.ctypes.data, scratch_bytes, None
    )
    at = ctypes.addressof(call)

    def run(_: Any = (weights, arena, scratch, given, taken, call, fed, out)) -> None:
        lib.nnd_run(table, at, pool)

    return run


def _l2_bytes() -> int:
    """Returns the bytes of the second cache, 0 where the system does not say."""
    try:
        return max(0, os.sysconf("SC_LEVEL2_CACHE_SIZE"))
    except (ValueError, OSError):
        return 0
