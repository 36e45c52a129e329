# SPDX-License-Identifier: Apache-2.0
"""Percentiles by nearest rank."""

import itertools
import sys

import pytest

from nndeploy.runtime.latency import Latencies


def test_percentiles_are_durations_that_happened() -> None:
    found = Latencies(n * 1_000_000 for n in range(100, 0, -1)).percentiles_ms()
    assert found == {"p50": 50.0, "p90": 90.0, "p99": 99.0}


def test_one_call_is_every_percentile() -> None:
    latencies = Latencies()
    latencies.add(2_500_000)
    assert latencies.percentiles_ms() == {"p50": 2.5, "p90": 2.5, "p99": 2.5}
    assert len(latencies) == 1
    assert latencies.to_json() == [2_500_000]


def test_no_call_has_no_percentiles() -> None:
    assert Latencies().percentiles_ms() == {}


def test_of_very_many_an_even_sample_is_kept() -> None:
    latencies = Latencies(most=100)
    for duration in range(1, 100_001):
        latencies.add(duration * 1_000_000)
    assert 50 <= len(latencies) <= 101
    for name, value in latencies.percentiles_ms().items():
        assert value == pytest.approx(int(name[1:]) * 1000, rel=0.05)


def test_once_full_no_more_memory_is_taken() -> None:
    latencies = Latencies(most=1000)
    for i in range(1001):
        latencies.add(i)
    size = sys.getsizeof(latencies._places)
    for i in range(1001, 50_000):
        latencies.add(i)
        assert sys.getsizeof(latencies._places) == size
    kept = latencies.to_json()
    steps = {later - one for one, later in itertools.pairwise(kept)}
    assert (kept[0], len(steps)) == (0, 1)
    assert 500 <= len(kept) <= 1000
