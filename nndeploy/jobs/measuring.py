# SPDX-License-Identifier: Apache-2.0
"""Bundles raced on one machine: each is loaded once, and they take turns, so that slow drifts fall on all of them.

    for each sample: ROUNDS times: for each bundle: one call that is not counted, then calls for its share of the time

A call's time is that on the clock less what the threads of this process waited for processors that others had, which
Linux counts (Documentation/scheduler/sched-stats.rst), and at least its processor time. The figure is the lower
quartile of all calls: whatever else works on the machine only makes calls longer, and some are left alone. Who is
hopeless in the best of `FIRST_CALLS` that find their memory warm, and take turns too, is not run again; his figure is
that call's.
"""

import contextlib
import itertools
import operator
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

from nndeploy.values.types import Value

ROUNDS = 15
FEWEST_ROUNDS = 3
FIRST_CALLS = 3
SLOW_SECONDS = 0.1
"""A call of this length is long beside what disturbs it: fewer rounds tell as much."""
STRETCH_NS = 200_000
"""Ten times what the kernel takes to say how long the threads of an engine waited."""
HOPELESS = 4.0
"""Times the fastest."""

Call = Callable[[Mapping[str, Value]], object]
Timer = Callable[[Callable[[], object], float], list[float]]
"""(what to run, for how many seconds; once at least) -> milliseconds."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What a race found: for each call its `ms` on each sample, and how busy others kept the machine meanwhile.

    `waited` is the share of the race's time that threads waited for a processor: 0 where nobody else worked, or where
    the kernel does not say.
    """

    ms: Sequence[Sequence[float]]
    waited: float = 0.0


def raced(calls: Sequence[Call], samples: Sequence[Mapping[str, Value]], seconds: float, inflight: int = 1) -> Measured:
    """Returns for each of `calls` the milliseconds on each sample: of a call, or an item where `inflight` are at once.

    `seconds` is what each call may take on all samples together, but for the fewest rounds.
    """
    for sample, call in itertools.product(samples, calls):
        call(sample)  # its threads and its memory are there now
    with contextlib.ExitStack() as files:
        delay = RunDelay(files)
        alone = partial(_ms_of_calls, delay)
        timer = alone if inflight == 1 else partial(_ms_an_item, inflight=inflight)
        start, before = time.perf_counter_ns(), delay.each_ns()
        by_sample = [_raced_on(calls, sample, seconds / len(samples), alone, timer) for sample in samples]
        waited = min(delay.since_ns(before) / (time.perf_counter_ns() - start), 1.0)
    return Measured([[times[i] for times in by_sample] for i in range(len(calls))], waited)


class RunDelay:
    """What the threads that are there when it is made wait for processors."""

    def __init__(self, files: contextlib.ExitStack) -> None:
        """Makes it; the files that it reads are closed with `files`."""
        self._threads = [*_opened(files)]

    def each_ns(self) -> list[int]:
        """Returns the nanoseconds that each has waited so far; none where the kernel does not say."""
        return [_delay_ns(file) for file in self._threads]

    def since_ns(self, before: Sequence[int]) -> int:
        """Returns what they all waited since `before`, one after another; too much where they waited together."""
        return sum(map(operator.sub, self.each_ns(), before))


def _opened(files: contextlib.ExitStack) -> Iterator[BinaryIO]:
    for path in Path("/proc/self/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):
            yield files.enter_context(path.open("rb", buffering=0))


def _delay_ns(file: BinaryIO) -> int:
    try:
        return int(os.pread(file.fileno(), 64, 0).split()[1])
    except (OSError, IndexError):
        return 0  # its thread has ended


def _raced_on(
    calls: Sequence[Call], sample: Mapping[str, Value], seconds: float, alone: Timer, timer: Timer
) -> list[float]:
    runs = [partial(call, sample) for call in calls]
    first = _first_ms(runs, alone)
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


def _first_ms(runs: Sequence[Callable[[], object]], alone: Timer) -> list[float]:
    """Returns the least of the first calls; of turns that lie apart hardly all are disturbed."""
    turns = [[alone(run, 0)[0] for run in runs] for _ in range(FIRST_CALLS)]
    return [min(times) for times in zip(*turns, strict=True)]


def _ms_of_calls(delay: RunDelay, run: Callable[[], object], seconds: float) -> list[float]:
    times: list[float] = []
    end = time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        times.append(_ms_in_a_stretch(delay, run))
    return times


def _ms_in_a_stretch(delay: RunDelay, run: Callable[[], object]) -> float:
    """Returns the milliseconds of a call, of as many as are worth asking the kernel for."""
    before, worked, start, taken, count = delay.each_ns(), time.process_time_ns(), time.perf_counter_ns(), 0, 0
    while taken < STRETCH_NS:
        run()
        count += 1
        taken = time.perf_counter_ns() - start
    worked = time.process_time_ns() - worked
    return min(max(taken - delay.since_ns(before), worked), taken) / 1e6 / count


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
