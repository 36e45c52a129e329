# SPDX-License-Identifier: Apache-2.0
"""What the tuner of `native` chooses for a plan that is run through the kernel library, by processor time.

Comes in: a plan and its inputs. Goes out: a choice for each step, as `nndeploy tune` would keep it: the same race, with
runs of one thread. Alternatives give the bits of the rule.
"""

import ctypes
import math
import re
import time
from collections.abc import Sequence

import numpy as np
from interleaved import Array
from kernel_library import made_table
from nndeploy_native.native_memory import ALIGNMENT, aligned_zeros
from nndeploy_native.step_choices import StepChoice, StepFacts
from nndeploy_native.steps.step import NativeStep
from nndeploy_native.tensors import Tensor
from nndeploy_native.tuning import Race, RaceOptions
from plan_calls import HOST, CallOfLibrary, Options, aligned, opened, plan_of

L2_BYTES = dict(HOST.caches).get("l2", 1 << 20)
_BUFFER = re.compile(r", buffer \d+ bytes")


def tuned_choices(
    lib: ctypes.CDLL, steps: Sequence[NativeStep], inputs: Sequence[Tensor], output: Tensor, fed: Sequence[Array],
    out: Array, seconds: float,
) -> tuple[StepChoice, ...]:  # fmt: skip
    """Returns how each step is done after so many seconds of processor time, during which `out` is written."""
    plan, raw = plan_of(steps, inputs, [output])
    weights = aligned(np.frombuffer(raw, np.uint8))
    model, table = opened(lib, plan, weights.ctypes.data, weights.nbytes, Options(L2_BYTES, 0, 1), fed)
    lib.nnd_table_free(table)
    tuning = _Tuning(lib, model, [step.written().operator for step in steps], fed, out)
    try:
        race = Race(tuning.facts_of, len(steps), RaceOptions(seconds, 1, L2_BYTES, 0, time.process_time))
        while not race.is_done:
            race.told(tuning.timed(race.next_choices(), race.memory))
        return race.found().choices
    finally:
        tuning.close()


class _Tuning:
    """A model whose steps are done in one way after another; it keeps a table for each."""

    def __init__(self, lib: ctypes.CDLL, model: int, kernels: Sequence[str], fed: Sequence[Array], out: Array) -> None:
        self._lib, self._model, self._kernels, self._fed = lib, model, kernels, fed
        self._tables: dict[tuple[StepChoice, ...], int] = {}
        self._memories: list[tuple[int, Array]] = []
        self._given = (ctypes.c_void_p * len(fed))(*(one.ctypes.data for one in fed))
        self._taken = ctypes.c_void_p(out.ctypes.data)

    def facts_of(self, choices: Sequence[StepChoice]) -> list[StepFacts]:
        """Returns what the steps are like with choices."""
        table, found = ctypes.c_void_p(self._table(tuple(choices))), list[StepFacts]()
        for step, kernel in enumerate(self._kernels):
            text, numbers = ctypes.create_string_buffer(400), (ctypes.c_int64 * 10)()
            self._lib.nnd_table_describe(table, ctypes.c_int64(step), text, ctypes.c_int64(len(text)))
            count = self._lib.nnd_table_step_shape(table, ctypes.c_int64(step), numbers)
            shown = _BUFFER.sub("", text.value.decode())
            found.append(StepFacts(kernel, shown, 4 * math.prod(numbers[2:count])))
        return found

    def timed(self, choices: tuple[StepChoice, ...], memory: int) -> list[int]:
        """Returns the nanoseconds of each step of a run; runs of one `memory` have the same arena."""
        table, times = self._table(choices), np.zeros(len(self._kernels), np.int64)
        scratch = self._lib.nnd_table_scratch_bytes(table)
        arena = -(-self._lib.nnd_table_arena_bytes(table) // ALIGNMENT) * ALIGNMENT
        if not self._memories or self._memories[-1][0] != memory or self._memories[-1][1].nbytes < arena + scratch:
            self._memories = [*self._memories[-1:], (memory, aligned_zeros(arena + scratch))]  # which lies elsewhere
        at = self._memories[-1][1].ctypes.data
        ends = (ctypes.addressof(self._given), ctypes.addressof(self._taken))
        call = CallOfLibrary(*ends, at, at + arena, scratch, None, step_ns=times.ctypes.data)
        self._lib.nnd_run(table, ctypes.addressof(call), None)
        return [int(ns) for ns in times]

    def close(self) -> None:
        """Frees the tables and the model."""
        for table in self._tables.values():
            self._lib.nnd_table_free(table)
        self._lib.nnd_model_close(self._model)

    def _table(self, choices: tuple[StepChoice, ...]) -> int:
        if choices not in self._tables:
            self._tables[choices] = made_table(self._lib, self._model, self._fed, choices=choices)
        return self._tables[choices]
