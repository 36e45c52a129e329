# SPDX-License-Identifier: Apache-2.0
"""Interleaved timing: contestants take turns, so that clocks and neighbours are the same for all.

A turn is a batch of calls that together take at least `BATCH_MS`, then one wait for the GPU; its time by the number of
calls is one measurement. Medians are returned: of calls back to back, not of the latency of one alone.
"""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

BATCH_MS = 3.0
MAX_BATCH = 2000
NUM_WARM = 3
MIN_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Contestant:
    """`call` does the work or queues it, `wait` returns when all queued work is done."""

    call: Callable[[], object]
    wait: Callable[[], object] = lambda: None


def medians_ms(
    contestants: Mapping[str, Contestant], seconds: float, clock_ns: Callable[[], int] = time.perf_counter_ns
) -> dict[str, float]:
    """Returns the median milliseconds of a call for each contestant, measured for about `seconds` in all."""
    batches = {name: _batch_size(one, clock_ns) for name, one in contestants.items()}
    times: dict[str, list[float]] = {name: [] for name in contestants}
    end = clock_ns() + int(seconds * 1e9)
    rounds = 0
    while rounds < MIN_ROUNDS or clock_ns() < end:
        for name, one in contestants.items():
            times[name].append(_ms_a_call(one, batches[name], clock_ns))
        rounds += 1
    return {name: statistics.median(found) for name, found in times.items()}


def _batch_size(one: Contestant, clock_ns: Callable[[], int]) -> int:
    for _ in range(NUM_WARM):
        one.call()
    one.wait()
    ms = max(_ms_a_call(one, 3, clock_ns), 1e-4)
    return max(1, min(MAX_BATCH, round(BATCH_MS / ms)))


def _ms_a_call(one: Contestant, count: int, clock_ns: Callable[[], int]) -> float:
    start = clock_ns()
    for _ in range(count):
        one.call()
    one.wait()
    return (clock_ns() - start) / count / 1e6
