# SPDX-License-Identifier: Apache-2.0
"""Pools of cores: disjoint, of one NUMA node where that goes, and threads that stay on them."""

import os
from pathlib import Path

import pytest

from nndeploy.errors import UnavailableError
from nndeploy.runtime import core_pool
from nndeploy.runtime.core_pool import CorePool, pool_cores


@pytest.fixture
def two_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with two NUMA nodes of four cores each, whose numbers alternate in pairs."""
    for node, cores in enumerate(("0-1,4-5", "2-3,6,7")):
        (tmp_path / f"node{node}").mkdir()
        (tmp_path / f"node{node}" / "cpulist").write_text(f"{cores}\n")
    monkeypatch.setattr(core_pool, "NODES", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))


@pytest.mark.parametrize(("names", "cores"), [
    (["cpu", "cuda:0"], {}),
    (["cpu:0"], {"cpu:0": (0, 1, 4, 5, 2, 3, 6, 7)}),
    (["cpu:1", "cpu:0"], {"cpu:0": (0, 1, 4, 5), "cpu:1": (2, 3, 6, 7)}),
    (["cpu:1"], {"cpu:1": (2, 3, 6, 7)}),
    (["cpu:0", "cpu:1", "cpu:2"], {"cpu:0": (0, 1), "cpu:1": (4, 5, 2), "cpu:2": (3, 6, 7)}),
], ids=str)  # fmt: skip
def test_each_pool_has_its_share_by_node(two_nodes: None, names: list[str], cores: dict[str, tuple[int, ...]]) -> None:
    assert pool_cores(names) == cores


def test_there_are_no_more_pools_than_cores(two_nodes: None) -> None:
    with pytest.raises(
        UnavailableError, match="there is no device cpu:8: this process has 8 cores, too few for 9 pools"
    ):
        pool_cores(["cpu:8"])


def test_what_runs_in_a_pool_may_use_its_cores_alone_and_its_errors_come_out() -> None:
    core = max(os.sched_getaffinity(0))
    pool = CorePool("cpu:0", (core,))
    try:
        assert pool.run(os.sched_getaffinity, 0) == {core}
        with pytest.raises(ZeroDivisionError):
            pool.run(divmod, 1, 0)
    finally:
        pool.close()
