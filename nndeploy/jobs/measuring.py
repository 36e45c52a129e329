# SPDX-License-Identifier: Apache-2.0
"""Bundles raced on one machine: each is loaded once, and they take turns, so that slow drifts fall on all of them.

    for each sample: ROUNDS times: for each bundle: one call that is not counted, then calls for its share of the time

The figure is the lower quartile of all calls: whatever else works on the machine only makes calls longer, and some are
left alone. Who is hopeless in the best of `FIRST_CALLS` that find their memory warm, and take turns too, is not run
again; his figure is that call's.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from nndeploy.values.types import Value

ROUNDS = 15
FEWEST_ROUNDS = 3
FIRST_CALLS = 3
SLOW_SECONDS = 0.1
"""A call of this length is long beside what disturbs it: fewer rounds tell as much."""
HOPELESS = 4.0
"""Times the fastest."""

Call = Callable[[Mapping[str, Value]], object]
Timer = Callable[[Callable[[], object], float], list[float]]
"""(what to run, for how many seconds; once at least) -> milliseconds."""


def raced(
    calls: Sequence[Call], samples: Sequence[Mapping[str, Value]], seconds: float, inflight: int = 1
) -> list[list[float]]:
    """Returns for each of `calls` the milliseconds on each sample: of a call, or an item where `inflight` are at once.

    `seconds` is what each call may take on all samples together, but for the fewest rounds.
    """
    timer = _ms_of_calls if inflight == 1 else partial(_ms_an_item, inflight=inflight)
    by_sample = [_raced_on(calls, sample, seconds / len(samples), timer) for sample in samples]
    return [[times[i] for times in by_sample] for i in range(len(calls))]


def _raced_on(calls: Sequence[Call], sample: Mapping[str, Value], seconds: float, timer: Timer) -> list[float]:
    runs = [partial(call, sample) for call in calls]
    first = _first_ms(runs)
    hopeful = [i for i, ms in enumerate(first) if ms <= HOPELESS * min(first)]
    if len(hopeful) == 1 < len(calls):
        return first
    num_rounds = FEWEST_ROUNDS if min(first) > SLOW_SECONDS * 1e3 else ROUNDS
    figures: dict[int, list[float]] = {i: [] for i in hopeful}
    for _ in range(num_rounds):
        for i in hopeful:
            runs[i]()
            figures[i] += timer(runs[i], seconds / num_rounds)
    return [_lower_quartile(figures[i]) if i in figures else ms for i, ms in enumerate(first)]


def _lower_quartile(figures: Sequence[float]) -> float:
    return sorted(figures)[len(figures) // 4]


def _first_ms(runs: Sequence[Callable[[], object]]) -> list[float]:
    """Returns the least of the first calls; of turns that lie apart hardly all are disturbed."""
    for run in runs:
        run()
    turns = [[_timed_ms(run) for run in runs] for _ in range(FIRST_CALLS)]
    return [min(times) for times in zip(*turns, strict=True)]


def _timed_ms(run: Callable[[], object]) -> float:
    start = time.perf_counter_ns()
    run()
    return (time.perf_counter_ns() - start) / 1e6


def _ms_of_calls(run: Callable[[], object], seconds: float) -> list[float]:
    end = time.perf_counter() + seconds
    times = [_timed_ms(run)]
    while time.perf_counter() < end:
        times.append(_timed_ms(run))
    return times


def _ms_an_item(run: Callable[[], object], seconds: float, inflight: int) -> list[float]:
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
    return [(time.perf_counter_ns() - start) / 1e6 / items]
