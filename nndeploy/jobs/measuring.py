# SPDX-License-Identifier: Apache-2.0
"""Bundles raced on one machine: all are loaded, and take turns, so that slow drifts fall on all of them.

    for each sample: ROUNDS times: for each bundle: one call that is not counted, then calls for its share of the time

A call's time is that on the clock less what the threads of this process waited for processors that others had, which
Linux counts (Documentation/scheduler/sched-stats.rst). The figure is the lower quartile of the calls that waited least:
whatever else works on the machine only makes calls longer, and some are left alone. Who is hopeless in the best of
`FIRST_CALLS` that find their memory warm, and take turns too, is not run again; his figure is that call's. Who is
`BEHIND` after some rounds takes no further turns. Long calls have fewer rounds: as many as the time is enough for.
"""

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from nndeploy.sandbox.memory import give_memory_back
from nndeploy.target.run_delay import RunDelay
from nndeploy.values.types import Value

ROUNDS, FEW_ROUNDS = 15, 5
FEWEST_ROUNDS = 3
FIRST_CALLS = 3
SLOW_SECONDS = 0.1
"""A call of this length is long beside what disturbs it: the fewest rounds tell as much."""
STRETCH_NS = 200_000
"""Ten times what the kernel takes to say how long the threads of an engine waited."""
UNDISTURBED = 0.02
"""Share of the time: who waited no longer for a processor is as good as alone."""
MOST_WAITED = 0.5
"""What threads waited together counts more than once: so much at most is taken off."""
HOPELESS = 2.0
BEHIND = {FEWEST_ROUNDS: 1.3, 5: 1.2, 8: 1.1}
"""Times the fastest at the first calls, and after so many rounds: who takes longer is not run again."""

Call = Callable[[Mapping[str, Value]], object]
Load = Callable[[], contextlib.AbstractContextManager[Call]]
Timer = Callable[[Callable[[], object], float], list["Timed"]]
"""(what to run, for how many seconds; once at least) -> what was timed."""


class Timed(NamedTuple):
    """Calls that were timed together: the milliseconds of each, and the share of the time that threads waited."""

    ms: float
    waited: float = 0.0


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
        alone = partial(_calls, delay)
        timer = alone if inflight == 1 else partial(_items, inflight=inflight)
        start, before = time.perf_counter_ns(), delay.ns()
        by_sample = [_raced_on(calls, sample, seconds / len(samples), alone, timer) for sample in samples]
        waited = delay.share(before, time.perf_counter_ns() - start, 1.0)
    return Measured([[times[i] for times in by_sample] for i in range(len(calls))], waited)


def raced_apart(
    loads: Sequence[Load], samples: Sequence[Mapping[str, Value]], seconds: float, inflight: int = 1
) -> Measured:
    """Returns the same of bundles that are too large to be in memory together: each is loaded twice, for half the time.

    Who is `BEHIND` the first time is not loaded again.
    """
    found: dict[int, list[Measured]] = {}
    for i in (*range(len(loads)), *reversed(range(len(loads)))):
        if i in found and found[i][0].ms[0][0] > BEHIND[FEWEST_ROUNDS] * min(one[0].ms[0][0] for one in found.values()):
            continue
        with loads[i]() as call:
            found.setdefault(i, []).append(raced([call], samples, seconds / 2, inflight))
        del call  # or its weights would stay until the next is loaded
        give_memory_back()
    each = [found[i] for i in range(len(loads))]
    ms = [[min(times) for times in zip(*(one.ms[0] for one in both), strict=True)] for both in each]
    return Measured(ms, max(one.waited for both in each for one in both))


def _raced_on(
    calls: Sequence[Call], sample: Mapping[str, Value], seconds: float, alone: Timer, timer: Timer
) -> list[float]:
    runs = [partial(call, sample) for call in calls]
    first = _first_ms(runs, alone)
    hopeful = [i for i, ms in enumerate(first) if ms <= HOPELESS * min(first)]
    if len(hopeful) == 1 < len(calls):
        return first
    num_rounds = _num_rounds(min(first) / 1e3, seconds)
    timed: dict[int, list[Timed]] = {i: [] for i in hopeful}
    for done in range(num_rounds):
        if done >= FEWEST_ROUNDS:
            hopeful = _not_behind(hopeful, timed, done)
        if len(hopeful) == 1 < len(calls):
            break
        for i in hopeful:
            end = time.perf_counter() + seconds / num_rounds
            runs[i]()
            timed[i] += timer(runs[i], max(0.0, end - time.perf_counter()))
    return [_figure(timed[i]) if i in timed else ms for i, ms in enumerate(first)]


def _num_rounds(call_seconds: float, seconds: float) -> int:
    """Returns how many turns of two calls there is time for."""
    if call_seconds > SLOW_SECONDS:
        return FEWEST_ROUNDS
    return min(max(FEW_ROUNDS, int(seconds / (2 * call_seconds))), ROUNDS) if call_seconds else ROUNDS


def _not_behind(racing: Sequence[int], timed: Mapping[int, Sequence[Timed]], num_rounds: int) -> list[int]:
    figures = {i: _figure(timed[i]) for i in racing}
    most = min(factor for after, factor in BEHIND.items() if num_rounds >= after)
    return [i for i, figure in figures.items() if figure <= most * min(figures.values())]


def _figure(timed: Sequence[Timed]) -> float:
    """Returns the lower quartile of what was undisturbed, or of the quarter that was so most."""
    limit = max(_lower_quartile([one.waited for one in timed]), UNDISTURBED)
    return _lower_quartile([one.ms for one in timed if one.waited <= limit])


def _lower_quartile(figures: Sequence[float]) -> float:
    return sorted(figures)[len(figures) // 4]


def _first_ms(runs: Sequence[Callable[[], object]], alone: Timer) -> list[float]:
    """Returns the least of the first calls; of turns that lie apart hardly all are disturbed."""
    turns = [[alone(run, 0)[0].ms for run in runs] for _ in range(FIRST_CALLS)]
    return [min(times) for times in zip(*turns, strict=True)]


def _calls(delay: RunDelay, run: Callable[[], object], seconds: float) -> list[Timed]:
    """Returns what as many calls took as end in time, one at least."""
    timed: list[Timed] = []
    begun = now = time.perf_counter()
    while not timed or now + (now - begun) / len(timed) <= begun + seconds:
        timed.append(_stretch(delay, run))
        now = time.perf_counter()
    return timed


def _stretch(delay: RunDelay, run: Callable[[], object]) -> Timed:
    """Returns the time of a call, or of as many as are worth asking the kernel for."""
    before, start, taken, count = delay.ns(), time.perf_counter_ns(), 0, 0
    while taken < STRETCH_NS:
        run()
        count += 1
        taken = time.perf_counter_ns() - start
    waited = delay.share(before, taken, MOST_WAITED)
    return Timed(taken * (1 - waited) / 1e6 / count, waited)


def _items(run: Callable[[], object], seconds: float, inflight: int) -> list[Timed]:
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
    return [Timed((time.perf_counter_ns() - start) / 1e6 / items)]
