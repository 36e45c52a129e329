# SPDX-License-Identifier: Apache-2.0
"""Bundles raced on one machine: each is loaded once, and they take turns, so that slow drifts fall on all of them.

    for each sample: ROUNDS times: for each bundle: one call that is not counted, then calls for its share of the time

The figure is the median over the rounds. Who is hopeless in the better of two calls that find their memory warm is not
run again; his figure is that call's. Where a call has one thread for itself a round's figure is the mean of its calls
without the time that this process waited for a core, which Linux tells of each thread: others may work on the machine
meanwhile. Elsewhere it is their median.
"""

import contextlib
import statistics
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from nndeploy.value_types import Value

ROUNDS = 7
FEWEST_ROUNDS = 3
SLOW_SECONDS = 0.1
"""A call of this length is long beside what disturbs it: fewer rounds tell as much."""
HOPELESS = 4.0
"""Times the fastest."""

Call = Callable[[Mapping[str, Value]], object]
Timer = Callable[[Callable[[], object], float], float]
"""(what to run, for how many seconds; once at least) -> milliseconds."""


def raced(
    calls: Sequence[Call],
    samples: Sequence[Mapping[str, Value]],
    seconds: float,
    *,
    inflight: int = 1,
    threads: int = 1,
) -> list[list[float]]:
    """Returns for each of `calls` the milliseconds on each sample: of a call, or an item where `inflight` are at once.

    `seconds` is what each call may take on all samples together, but for the fewest rounds; `threads` are those that
    it has inside.
    """
    timer = partial(_ms_an_item, inflight=inflight) if inflight > 1 else _alone_ms if threads == 1 else _median_ms
    by_sample = [_raced_on(calls, sample, seconds / len(samples), timer) for sample in samples]
    return [[times[i] for times in by_sample] for i in range(len(calls))]


def _raced_on(
    calls: Sequence[Call],
    sample: Mapping[str, Value],
    seconds: float,
    timer: Timer,
) -> list[float]:
    runs = [partial(call, sample) for call in calls]
    first = [_warm_ms(run, timer) for run in runs]
    hopeful = [i for i, ms in enumerate(first) if ms <= HOPELESS * min(first)]
    if len(hopeful) == 1 < len(calls):
        return first
    num_rounds = FEWEST_ROUNDS if min(first) > SLOW_SECONDS * 1e3 else ROUNDS
    figures: dict[int, list[float]] = {i: [] for i in hopeful}
    for _ in range(num_rounds):
        for i in hopeful:
            runs[i]()
            figures[i].append(timer(runs[i], seconds / num_rounds))
    return [statistics.median(figures[i]) if i in figures else ms for i, ms in enumerate(first)]


def _alone_ms(run: Callable[[], object], seconds: float) -> float:
    """Returns the mean of calls that have one thread, without the time that they waited for a core."""
    waited, start = _waited_ns(), time.perf_counter_ns()
    end, count, now = start + int(seconds * 1e9), 0, start
    while not count or now < end:
        run()
        count += 1
        now = time.perf_counter_ns()
    took = now - start
    return max(took - (_waited_ns() - waited), took // 4) / 1e6 / count


def _waited_ns() -> int:
    """Returns for how long the threads of this process were ready and had no core; 0 where Linux does not tell."""
    total = 0
    for task in Path("/proc/self/task").glob("*/schedstat"):
        with contextlib.suppress(OSError, IndexError, ValueError):  # a thread may have ended
            total += int(task.read_text().split()[1])
    return total


def _warm_ms(run: Callable[[], object], timer: Timer) -> float:
    run()
    return min(timer(run, 0.0) for _ in range(2))


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
