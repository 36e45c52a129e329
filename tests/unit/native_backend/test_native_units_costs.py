# SPDX-License-Identifier: Apache-2.0
"""Measured costs on the disk: what comes back is what was kept or nothing, whoever writes, dies or damages."""

import random
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from native_models import needs_zig, runnable_isas
from nndeploy_native.units import cost_cache
from nndeploy_native.units.compile_units import build_units
from nndeploy_native.units.cost_cache import CostCache, costs_key
from nndeploy_native.units.runtime import UnitLibrary

from nndeploy.target.target import host_target

COUNT = 270
COSTS = tuple(float(number % 7) for number in range(COUNT))
WRITER = """
import sys
from pathlib import Path
from nndeploy_native.units.cost_cache import CostCache
cache = CostCache(Path(sys.argv[1]), bytes(32), 270)
while True:
    cache.store([float(number % 7) for number in range(270)])
    assert cache.load() in ((), tuple(float(number % 7) for number in range(270)))
"""


def cache_in(folder: Path, number: int = 0) -> CostCache:
    return CostCache(folder / "cache", number.to_bytes(32, "little"), COUNT)


def test_a_second_process_takes_what_the_first_measured(tmp_path: Path) -> None:
    needs_zig()
    data = build_units(runnable_isas()[0], tmp_path)
    first, second = UnitLibrary(data), UnitLibrary(data)
    assert first.measure_costs(tmp_path / "cache")
    assert not second.measure_costs(tmp_path / "cache")
    assert list(first.costs) == list(second.costs)


def test_anything_wrong_in_a_file_drops_it(tmp_path: Path) -> None:
    cache = cache_in(tmp_path)
    assert cache.load() == ()
    assert cache.store(COSTS)
    data = cache.path.read_bytes()
    assert cache.load() == COSTS
    for number in range(len(data)):
        changed = bytearray(data)
        changed[number] ^= 1 + number % 255
        cache.path.write_bytes(changed)
        assert cache.load() == ()
        assert not cache.path.exists()
    for wrong in (data[:-1], data + b"\0", data[:10]):
        cache.path.write_bytes(wrong)
        assert cache.load() == ()


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -1.0])
def test_costs_that_cannot_be_are_dropped(bad: float, tmp_path: Path) -> None:
    cache = cache_in(tmp_path)
    for costs in ((bad, *COSTS[1:]), (0.0,) * COUNT):
        cache.store(costs)
        assert cache.load() == ()


def test_the_key_knows_all_that_costs_depend_on() -> None:
    host = host_target()
    keys = {
        costs_key(b"library", host),
        costs_key(b"other", host),
        costs_key(b"library", replace(host, cpu_features=("sse",))),
        costs_key(b"library", replace(host, name="other")),
        costs_key(b"library", replace(host, caches=(("L2", 1),))),
    }
    assert len(keys) == 5


def test_costs_of_something_else_are_not_taken(tmp_path: Path) -> None:
    cache_in(tmp_path, 1).store(COSTS)
    cache_in(tmp_path, 1).path.rename(cache_in(tmp_path, 2).path)
    assert cache_in(tmp_path, 2).load() == ()


def test_files_are_bounded_and_what_killed_writers_left_goes(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(cost_cache, "MAX_FILES", 3)
    (tmp_path / "cache").mkdir(mode=0o700)
    (tmp_path / "cache" / ".costs-left").write_bytes(b"half")
    for number in range(8):
        assert cache_in(tmp_path, number).store(COSTS)
        assert len(list((tmp_path / "cache").iterdir())) <= 3
    assert cache_in(tmp_path, 7).load() == COSTS


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "cache").write_bytes(b"a file")
    assert not cache_in(tmp_path).store(COSTS)
    assert cache_in(tmp_path).load() == ()


def test_processes_that_are_killed_leave_nothing_wrong(tmp_path: Path) -> None:
    dice, cache = random.Random(6), CostCache(tmp_path, bytes(32), COUNT)  # noqa: S311 - no secret
    for _ in range(3):
        running = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)]) for _ in range(2)]
        while not cache.path.exists():
            time.sleep(0.01)
        time.sleep(0.1 * dice.random())
        for one in running:
            one.kill()
            assert one.wait() < 0
        assert cache.load() == COSTS
    assert cache.store(COSTS)
    assert [path.name for path in tmp_path.iterdir()] == [cache.path.name]
