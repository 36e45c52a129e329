# SPDX-License-Identifier: Apache-2.0
"""Plans as calls of the kernel library, with nothing of Python between, and how two calls are raced in one process."""

import ctypes
import statistics
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from figures import ROOT
from interleaved import Array, cpu_seconds
from nndeploy_native.native_memory import ALIGNMENT, aligned_zeros
from nndeploy_native.step_choices import StepChoice
from nndeploy_native.steps.step import NativeStep
from nndeploy_native.tensors import Tensor

sys.path.append(str(ROOT / "tests"))

from kernel_library import HOST, Options, RefusedError, opened, plan_of
from kernel_library import Call as CallOfLibrary

Call = Callable[[], Any]


def raced(calls: Sequence[Call], seconds: float, rounds: int) -> tuple[list[float], float]:
    """Returns the seconds of each call, and the median ratio of the second to the first."""
    times = [max(1, int(seconds / max(1e-9, cpu_seconds(call, 1)))) for call in calls]
    found: list[list[float]] = [[] for _ in calls]
    for number in range(rounds):
        for which in range(len(calls)) if number % 2 else reversed(range(len(calls))):
            calls[which]()  # what the other left in the caches is not this one's business
            found[which].append(cpu_seconds(calls[which], times[which]))
    return [statistics.median(one) for one in found], statistics.median(b / a for a, b in zip(*found, strict=True))


def aligned(array: Array) -> Array:
    copy: Array = aligned_zeros(array.nbytes).view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def plan_call(
    lib: ctypes.CDLL, steps: Sequence[NativeStep], inputs: Sequence[Tensor], output: Tensor, fed: Sequence[Array],
    out: Array, threads: int = 1, constants: Mapping[str, Array] | None = None,
    choices: Sequence[StepChoice] | None = None,
) -> Call:  # fmt: skip
    """Returns one run of a plan, whose steps are done as `choices` say; what it needs lives as long as it does."""
    plan, raw = plan_of(steps, inputs, [output], constants)
    weights = aligned(np.frombuffer(raw, np.uint8))
    options = Options(dict(HOST.caches).get("l2", 0), 0, threads)
    try:
        how = None if choices is None else lambda _: choices
        model, table = opened(lib, plan, weights.ctypes.data, weights.nbytes, options, fed, choices=how)
    except RefusedError as err:
        sys.exit(str(err))
    pool = lib.nnd_pool_make(ctypes.c_void_p(model), threads) if threads > 1 else None
    scratch_bytes = lib.nnd_table_scratch_bytes(table)
    arena_bytes = -(-lib.nnd_table_arena_bytes(table) // ALIGNMENT) * ALIGNMENT
    memory = aligned_zeros(arena_bytes + scratch_bytes * threads)  # in one piece, as sessions have it
    given, taken = (ctypes.c_void_p * len(fed))(*(one.ctypes.data for one in fed)), ctypes.c_void_p(out.ctypes.data)
    ends = (ctypes.addressof(given), ctypes.addressof(taken))
    call = CallOfLibrary(*ends, memory.ctypes.data, memory.ctypes.data + arena_bytes, scratch_bytes, None)
    at = ctypes.addressof(call)

    def run(_: Any = (weights, memory, given, taken, call, fed, out)) -> None:
        lib.nnd_run(table, at, pool)

    weakref.finalize(run, _released, lib, pool, table, model)
    return run


def _released(lib: ctypes.CDLL, pool: int | None, table: int, model: int) -> None:
    if pool:
        lib.nnd_pool_free(pool)
    lib.nnd_table_free(table)
    lib.nnd_model_close(model)
