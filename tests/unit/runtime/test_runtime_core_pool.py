# SPDX-License-Identifier: Apache-2.0
"""Pools of cores: each has its share, of one NUMA node where that goes, and stays on its nodes, not on its cores."""

import os
import threading
from ctypes import CDLL
from pathlib import Path

import pytest

from nndeploy.errors import UnavailableError
from nndeploy.runtime import core_pool
from nndeploy.runtime.core_pool import CorePool, PoolShare, SeparateCores, pool_shares


@pytest.fixture
def two_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with two NUMA nodes of four cores each, whose numbers alternate in pairs."""
    for node, cores in enumerate(("0-1,4-5", "2-3,6,7")):
        (tmp_path / f"node{node}").mkdir()
        (tmp_path / f"node{node}" / "cpulist").write_text(f"{cores}\n")
    monkeypatch.setattr(core_pool, "NODES", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))


LEFT, RIGHT = (0, 1, 4, 5), (2, 3, 6, 7)


@pytest.mark.parametrize(("names", "shares"), [
    (["cpu", "cuda:0"], {}),
    (["cpu:0"], {"cpu:0": PoolShare(8)}),
    (["cpu:1", "cpu:0"], {"cpu:0": PoolShare(4, LEFT), "cpu:1": PoolShare(4, RIGHT)}),
    (["cpu:1"], {"cpu:1": PoolShare(4, RIGHT)}),
    (["cpu:0", "cpu:1", "cpu:2"], {"cpu:0": PoolShare(2, LEFT), "cpu:1": PoolShare(3), "cpu:2": PoolShare(3, RIGHT)}),
    (["cpu:3"], {"cpu:3": PoolShare(2, RIGHT)}),
], ids=str)  # fmt: skip
def test_each_pool_has_its_share_and_stays_on_its_nodes(
    two_nodes: None, names: list[str], shares: dict[str, PoolShare]
) -> None:
    assert pool_shares(names) == shares


def test_a_pool_on_a_machine_with_one_node_is_bound_to_no_core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_pool, "NODES", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(5)))
    assert pool_shares(["cpu:0", "cpu:1"]) == {"cpu:0": PoolShare(2), "cpu:1": PoolShare(3)}


def test_there_are_no_more_pools_than_cores(two_nodes: None) -> None:
    with pytest.raises(
        UnavailableError, match="there is no device cpu:8: this process has 8 cores, too few for 9 pools"
    ):
        pool_shares(["cpu:8"])


@pytest.mark.parametrize("is_bound", [True, False])
def test_what_runs_in_a_pool_may_use_the_cores_of_its_nodes_and_its_errors_come_out(is_bound: bool) -> None:
    every = os.sched_getaffinity(0)
    cores = (max(every),) if is_bound else ()
    pool = CorePool("cpu:0", PoolShare(1, cores))
    try:
        assert pool.run(os.sched_getaffinity, 0) == (set(cores) if is_bound else every)
        assert (pool.run(threading.get_ident) == threading.get_ident()) is not is_bound
        with pytest.raises(ZeroDivisionError):
            pool.run(divmod, 1, 0)
    finally:
        pool.close()
    assert os.sched_getaffinity(0) == every


TRIES = 20


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_who_computes_beside_another_begins_on_another_core_and_is_not_bound_to_it() -> None:
    cores, current, usable = SeparateCores(), CDLL(None).sched_getcpu, os.sched_getaffinity(0)
    core, is_inside, is_over = min(usable), threading.Event(), threading.Event()

    def begin_on_the_core() -> None:
        os.sched_setaffinity(0, {core})
        os.sched_setaffinity(0, usable)

    def stay_there() -> None:
        os.sched_setaffinity(0, {core})
        with cores:
            is_inside.set()
            is_over.wait(60)

    def found() -> int:
        begin_on_the_core()
        with cores:
            assert os.sched_getaffinity(0) == usable
            return int(current())

    other = threading.Thread(target=stay_there)
    other.start()
    assert is_inside.wait(60)
    try:
        begun = [found() for _ in range(TRIES)]
    finally:
        is_over.set()
        other.join()
        os.sched_setaffinity(0, usable)
    assert sum(one != core for one in begun) > TRIES // 2  # the system may move a thread any time
    begin_on_the_core()
    with cores:
        assert set(cores._core_of) == {threading.get_ident()}


def test_who_may_use_one_core_alone_stays_there_beside_another() -> None:
    cores, usable = SeparateCores(), os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core := min(usable)})
    try:
        cores._core_of[-1] = core
        with cores:
            assert os.sched_getaffinity(0) == {core}
    finally:
        os.sched_setaffinity(0, usable)
