# SPDX-License-Identifier: Apache-2.0
"""Races of calls: who takes turns, who is run once, and what the figures are."""

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from nndeploy.jobs import measuring
from nndeploy.jobs.measuring import (
    FIRST_CALLS,
    ROUNDS,
    Call,
    Timed,
    _figure,
    _stretch,
    raced,
    raced_apart,
)
from nndeploy.target.run_delay import RunDelay


class Clock:
    """Takes the place of the module `time`: it goes on where somebody sleeps, and nothing else takes time."""

    def __init__(self) -> None:
        self.ns = 0

    def sleep(self, seconds: float) -> None:
        self.ns += round(seconds * 1e9)

    def perf_counter_ns(self) -> int:
        return self.ns

    def perf_counter(self) -> float:
        return self.ns / 1e9


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(measuring, "time", made)
    monkeypatch.setattr(RunDelay, "ns", lambda _delay: 0)
    return made


@pytest.fixture
def runner(clock: Clock) -> Callable[..., Call]:
    """Returns a function that makes a call, which takes so many milliseconds and writes its name into a log."""

    def make(ms: float, log: list[str], name: str) -> Call:
        return lambda _sample: (log.append(name), clock.sleep(ms / 1e3))

    return make


def test_calls_take_turns_and_the_figure_is_the_time_of_a_call(runner) -> None:
    log: list[str] = []
    assert raced([runner(1.0, log, "a"), runner(1.09, log, "b")], [{}], 0.045).ms == [[1.0], [1.09]]
    assert _turns(log) == ["a", "b"] * (1 + FIRST_CALLS + ROUNDS)


def _turns(log: list[str]) -> list[str]:
    return [name for i, name in enumerate(log) if i == 0 or log[i - 1] != name]


@pytest.mark.parametrize(("ms", "num_rounds"), [(1.7, 3), (1.25, 5), (1.15, 8), (1.09, ROUNDS)])
def test_who_is_behind_after_some_rounds_takes_no_further_turns(runner, ms: float, num_rounds: int) -> None:
    log: list[str] = []
    racing = [runner(1.0, log, "a"), runner(ms, log, "behind"), runner(1.0, log, "b")]
    assert raced(racing, [{}], 0.045).ms == [[1.0], [ms], [1.0]]
    assert _turns(log).count("behind") == 1 + FIRST_CALLS + num_rounds
    assert _turns(log).count("a") == 1 + FIRST_CALLS + ROUNDS


@pytest.mark.parametrize(("ms", "num_rounds"), [(1.0, 15), (10.0, 7), (50.0, 5), (101.0, 3)])
def test_long_calls_have_the_rounds_that_there_is_time_for(runner, ms: float, num_rounds: int) -> None:
    log: list[str] = []
    raced([runner(ms, log, "a"), runner(ms, log, "b")], [{}], 0.14)
    assert _turns(log) == ["a", "b"] * (1 + FIRST_CALLS + num_rounds)
    if ms == 10.0:
        assert log.count("a") == 1 + FIRST_CALLS + 2 * num_rounds


def test_large_bundles_are_loaded_one_after_the_other_twice_and_those_behind_once(runner) -> None:
    log: list[str] = []

    @contextlib.contextmanager
    def load(name: str, ms: float) -> Iterator[Call]:
        log.append(f"load {name}")
        yield runner(ms, [], name)
        log.append("close")

    loads = [partial(load, name, ms) for name, ms in (("a", 5.0), ("slow", 30.0), ("b", 5.0))]
    assert raced_apart(loads, [{}], 0.014).ms == [[5.0], [30.0], [5.0]]
    assert log == ["load a", "close", "load slow", "close", "load b", "close", "load b", "close", "load a", "close"]


def test_hopeless_call_is_run_a_few_times_and_no_more(runner) -> None:
    log: list[str] = []
    times = raced([runner(20.0, log, "slow"), runner(1.0, log, "fast"), runner(1.0, log, "as fast")], [{}], 0.03).ms
    assert log.count("slow") == 1 + FIRST_CALLS
    assert times == [[20.0], [1.0], [1.0]]
    assert log.count("fast") == log.count("as fast") == 1 + FIRST_CALLS + 2 * ROUNDS


def test_call_whose_first_turns_are_disturbed_is_not_hopeless(clock, runner) -> None:
    disturbed = itertools.chain([0.03] * FIRST_CALLS, itertools.repeat(0.0))
    log: list[str] = []
    times = raced([lambda _sample: clock.sleep(0.001 + next(disturbed)), runner(1.0, log, "other")], [{}], 0.014).ms
    assert times == [[1.0], [1.0]]
    assert log.count("other") > 1 + FIRST_CALLS


def test_each_sample_is_measured(clock) -> None:
    assert raced([lambda sample: clock.sleep(sample["ms"] / 1e3)], [{"ms": 1.0}, {"ms": 3.0}], 0.02).ms == [[1.0, 3.0]]


def test_calls_that_were_disturbed_do_not_count(clock) -> None:
    longer = itertools.cycle([0.0, 0.02, 0.0])
    assert raced([lambda _sample: clock.sleep(0.002 + next(longer))] * 2, [{}], 0.0).ms == [[2.0], [2.0]]


def test_items_at_once_are_counted_together() -> None:
    ((ms,),) = raced([lambda _sample: time.sleep(0.004)], [{}], 0.1, inflight=4).ms
    assert ms < 3.0


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
