# SPDX-License-Identifier: Apache-2.0
"""Bundles raced on one machine: each is loaded once, and they take turns, so that slow drifts fall on all of them.

    for each sample: ROUNDS times: for each bundle: one call that is not counted, then calls for its share of the time

The figure is the median over the rounds of the medians inside them. Who is hopeless in the first call that finds its
memory warm is not run again; his figure is that call's.
"""

import statistics
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from nndeploy.value_types import Value

ROUNDS = 7
FEWEST_ROUNDS = 3
SLOW_SECONDS = 0.1
"""A call of this length is long beside what disturbs it: fewer rounds tell as much."""
HOPELESS = 4.0
"""Times the fastest."""

Call = Callable[[Mapping[str, Value]], object]


def raced(
    calls: Sequence[Call], samples: Sequence[Mapping[str, Value]], seconds: float, inflight: int
) -> list[list[float]]:
    """Returns for each of `calls` the milliseconds on each sample: of a call, or an item where `inflight` are at once.

    `seconds` is what each call may take on all samples together, but for the fewest rounds.
    """
    by_sample = [_raced_on(calls, sample, seconds / len(samples), inflight) for sample in samples]
    return [[times[i] for times in by_sample] for i in range(len(calls))]


def _raced_on(calls: Sequence[Call], sample: Mapping[str, Value], seconds: float, inflight: int) -> list[float]:
    runs = [partial(call, sample) for call in calls]
    first = [_second_call_ms(run) for run in runs]
    hopeful = [i for i, ms in enumerate(first) if ms <= HOPELESS * min(first)]
    if len(hopeful) == 1 < len(calls):
        return first
    num_rounds = FEWEST_ROUNDS if min(first) > SLOW_SECONDS * 1e3 else ROUNDS
    medians: dict[int, list[float]] = {i: [] for i in hopeful}
    for _ in range(num_rounds):
        for i in hopeful:
            runs[i]()
            share = seconds / num_rounds
            medians[i].append(_median_ms(runs[i], share) if inflight == 1 else _ms_an_item(runs[i], share, inflight))
    return [statistics.median(medians[i]) if i in medians else ms for i, ms in enumerate(first)]


def _second_call_ms(run: Callable[[], object]) -> float:
    run()
    return _timed_ms(run)


def _timed_ms(run: Callable[[], object]) -> float:
    start = time.perf_counter_ns()
    run()
    return (time.perf_counter_ns() - start) / 1e6


def _median_ms(run: Callable[[], object], seconds: float) -> float:
    end = time.perf_counter() + seconds
    times = [_timed_ms(run)]
    while time.perf_counter() < end:
        times.append(_timed_ms(run))
    return statistics.median(times)


def _ms_an_item(run: Callable[[], object], seconds: float, inflight: int) -> float:
    stop = threading.Event()

    def work() -> int:
        count = 0
        while not count or not stop.is_set():
            run()
            count += 1
        return count

    start = time.perf_counter_ns()
    with ThreadPoolExecutor(inflight) as pool:
        futures = [pool.submit(work) for _ in range(inflight)]
        time.sleep(seconds)
        stop.set()
        items = sum(future.result() for future in futures)
    return (time.perf_counter_ns() - start) / 1e6 / items
