# SPDX-License-Identifier: Apache-2.0
"""Races of calls: who takes turns, who is run once, and what the figures are."""

import contextlib
import itertools
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from nndeploy.jobs.measuring import FIRST_CALLS, ROUNDS, RunDelay, Timed, _figure, _stretch, raced, raced_apart
from nndeploy.values.types import Value


class Runner:
    """A call that takes `ms` and counts itself."""

    def __init__(self, ms: float, log: list[str], name: str) -> None:
        self.ms, self.log, self.name = ms, log, name

    def __call__(self, _sample: Mapping[str, Value]) -> None:
        self.log.append(self.name)
        time.sleep(self.ms / 1e3)


def test_calls_take_turns_and_the_figure_is_the_time_of_a_call() -> None:
    log: list[str] = []
    times = raced([Runner(5.0, log, "a"), Runner(5.5, log, "b")], [{}], 0.014).ms
    assert times[0][0] == pytest.approx(5.0, rel=0.3)
    assert times[1][0] > times[0][0]
    turns = _turns(log)
    assert turns == ["a", "b"] * (len(turns) // 2)
    assert len(turns) == 2 * (1 + FIRST_CALLS + ROUNDS)


def _turns(log: list[str]) -> list[str]:
    return [name for i, name in enumerate(log) if i == 0 or log[i - 1] != name]


def test_who_is_behind_after_some_rounds_takes_no_further_turns() -> None:
    log: list[str] = []
    times = raced([Runner(10.0, log, "a"), Runner(17.0, log, "behind"), Runner(10.0, log, "b")], [{}], 0.014).ms
    assert _turns(log).count("behind") < 1 + FIRST_CALLS + ROUNDS // 2
    assert times[1][0] == pytest.approx(17.0, rel=0.3)
    assert _turns(log).count("a") == 1 + FIRST_CALLS + ROUNDS


def test_large_bundles_are_loaded_one_after_the_other_twice_and_those_behind_once() -> None:
    log: list[str] = []

    @contextlib.contextmanager
    def load(runner: Runner) -> Iterator[Runner]:
        log.append(f"load {runner.name}")
        yield runner
        log.append("close")

    runners = [Runner(5.0, [], "a"), Runner(30.0, [], "slow"), Runner(5.0, [], "b")]
    found = raced_apart([partial(load, runner) for runner in runners], [{}], 0.014)
    assert log == ["load a", "close", "load slow", "close", "load b", "close", "load b", "close", "load a", "close"]
    assert [times[0] for times in found.ms] == [pytest.approx(ms, rel=0.3) for ms in (5.0, 30.0, 5.0)]


def test_hopeless_call_is_run_a_few_times_and_no_more() -> None:
    log: list[str] = []
    times = raced([Runner(20.0, log, "slow"), Runner(1.0, log, "fast"), Runner(1.0, log, "as fast")], [{}], 0.014).ms
    assert log.count("slow") == 1 + FIRST_CALLS
    assert times[0][0] >= 20.0
    assert log.count("fast") > 2 * ROUNDS - 1


def test_call_whose_first_turns_are_disturbed_is_not_hopeless() -> None:
    disturbed = itertools.chain([0.03] * FIRST_CALLS, itertools.repeat(0.0))
    log: list[str] = []

    def call(_sample: Mapping[str, Value]) -> None:
        time.sleep(0.001 + next(disturbed))

    times = raced([call, Runner(1.0, log, "other")], [{}], 0.014).ms
    assert times[0][0] < 10.0
    assert log.count("other") > 1 + FIRST_CALLS


def test_each_sample_is_measured() -> None:
    sizes = {"short": 1.0, "long": 3.0}

    def call(sample: Mapping[str, Value]) -> None:
        time.sleep(sizes[str(sample["size"])] / 1e3)

    ((short, long),) = raced([call], [{"size": "short"}, {"size": "long"}], 0.02).ms
    assert short < long


def test_items_at_once_are_counted_together() -> None:
    ((ms,),) = raced([lambda _sample: time.sleep(0.004)], [{}], 0.1, inflight=4).ms
    assert ms < 3.0


def test_calls_that_were_disturbed_do_not_count() -> None:
    longer = itertools.cycle([0.0, 0.02, 0.0])
    calls = [lambda _sample: time.sleep(0.002 + next(longer))] * 2
    for (ms,) in raced(calls, [{}], 0.0).ms:
        assert ms < 8.0


@pytest.mark.parametrize(("share", "taken_off"), [(0.0, 0.0), (0.25, 0.25), (3.0, 0.5)])
def test_what_threads_waited_for_a_processor_is_no_part_of_a_call(monkeypatch, share, taken_off) -> None:
    """Of several threads that wait at once no more than half the time is taken off."""
    now = itertools.count(0, 1_000_000)  # each look at the clock takes a millisecond
    monkeypatch.setattr(time, "perf_counter_ns", lambda: next(now))
    with contextlib.ExitStack() as files:
        delay = RunDelay(files)
        waited = itertools.count(0, int(share * 1_000_000))
        monkeypatch.setattr(RunDelay, "ns", lambda _delay: next(waited))
        assert _stretch(delay, lambda: None) == (1.0 - taken_off, taken_off)


def test_calls_that_waited_less_count_alone() -> None:
    timed = [Timed(1.0, 0.5)] * 20 + [Timed(4.0, 0.01), Timed(2.0, 0.02), Timed(3.0)]
    assert _figure(timed) == 1.0
    assert _figure(timed[12:]) == 2.0


def test_the_kernel_is_asked_for_each_thread() -> None:
    with contextlib.ExitStack() as files, ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        before = RunDelay(files).ns()
        assert len([*Path("/proc/self/task").iterdir()]) > 1
        assert 0 < before <= RunDelay(files).ns()
