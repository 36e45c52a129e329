# SPDX-License-Identifier: Apache-2.0
"""Timing in turns, peaks and floors, and comparison: the arithmetic of the figures."""

import itertools

import numpy as np
import pytest
from gpucheck.agreement import agreement
from gpucheck.kernel_models import problems
from gpucheck.peaks import peaks_of
from gpucheck.timing import Contestant, medians_ms

H200 = {
    "multiProcessorCount": 132, "smClockRateKHz": 1_980_000, "memClockRateKHz": 3_201_000, "memoryBusWidth": 6144,
    "l2CacheSize": 60 << 20,
}  # fmt: skip
T4 = {"multiProcessorCount": 40, "smClockRateKHz": 1_590_000, "memClockRateKHz": 5_001_000, "memoryBusWidth": 256}


class Clock:
    """A clock that only contestants move on."""

    def __init__(self) -> None:
        self.now = 0

    def read(self) -> int:
        return self.now

    def work(self, ns: int) -> Contestant:
        def call() -> None:
            self.now += ns

        return Contestant(call)


def test_the_median_of_each_contestant_is_found() -> None:
    clock = Clock()
    found = medians_ms({"fast": clock.work(10_000), "slow": clock.work(7_000_000)}, 1.0, clock.read)
    assert found == {"fast": pytest.approx(0.01), "slow": pytest.approx(7.0)}


def test_waiting_counts_and_contestants_take_turns() -> None:
    clock, order = Clock(), []

    def contestant(name: str) -> Contestant:
        def wait() -> None:
            order.append(name)
            clock.now += 2_000_000

        return Contestant(lambda: None, wait)

    found = medians_ms({"a": contestant("a"), "b": contestant("b")}, 0.05, clock.read)
    assert found["a"] > 0
    turns = [name for name, _ in itertools.groupby(order)]
    assert turns[-6:] == ["a", "b"] * 3


def test_peaks_are_those_of_the_datasheets() -> None:
    h200, t4 = peaks_of("9.0", H200), peaks_of("7.5", T4)
    assert h200.bytes_per_s == pytest.approx(4.9e12, rel=0.02)
    assert h200.float16_per_s == pytest.approx(989e12 * 1.98 / 1.83, rel=0.02)  # at 1.83 GHz in the datasheet
    assert t4.bytes_per_s == pytest.approx(320e9, rel=0.01)
    assert t4.float32_per_s == pytest.approx(8.1e12, rel=0.02)
    assert t4.float16_per_s == pytest.approx(32.6e12, rel=0.02)  # half of the 65 with sums in float16


def test_the_floor_is_the_larger_of_bytes_and_operations() -> None:
    peaks = peaks_of("9.0", H200)
    assert peaks.floor_ms(4.917e9, 0, "float32") == pytest.approx(1.0, rel=0.01)
    assert peaks.floor_ms(1, 1.07e12, "float16") == pytest.approx(1.0, rel=0.01)
    assert peaks_of("9.0", {}).floor_ms(1, 1, "float32") == 0


def test_bytes_and_operations_of_a_separable_block_are_counted() -> None:
    block = problems()["separable v1 b1 112x112x32-64 s1 float32"]
    assert block.num_bytes == 4 * (112 * 112 * (32 + 64) + 32 * 9 + 32 + 32 * 64 + 64)
    assert block.num_operations == 2 * 112 * 112 * 32 * (9 + 64)


def test_agreement_names_what_is_wrong() -> None:
    want = {"y": np.ones(4, np.float32)}
    assert agreement({"y": np.ones(4, np.float32) + np.float32(1e-6)}, want).ok
    wrong = agreement({"y": np.zeros(4, np.float32)}, want)
    assert (wrong.ok, wrong.max_abs) == (False, 1.0)
    assert "output 'y'" in wrong.reason
    assert not agreement({}, want).ok
