# SPDX-License-Identifier: Apache-2.0
"""Groups beside each other: what needs another waits for it, and a device has as many lanes as it has."""

import pytest

from nndeploy.graph.lanes import Lanes, Work

LEFT, RIGHT, JOIN = 0, 1, 2
FORK = {LEFT: [JOIN], RIGHT: [JOIN], JOIN: []}


def end(works: dict[int, Work], after: dict[int, list[int]], **counts: int) -> float:
    return Lanes(lambda node, backend: 0.0, lambda backend: 0.0, {}, counts).end_seconds(works, after)


@pytest.mark.parametrize(("device", "counts", "seconds"), [
    ("cpu", {}, 3 + 4 + 1), ("cpu", {"cpu": 2}, 4 + 1), ("cuda", {}, 4 + 1), ("cuda", {"cuda": 3}, 4 + 1),
])  # fmt: skip
def test_branches_take_the_longer_time_where_there_are_lanes_for_both(
    device: str, counts: dict[str, int], seconds: float
) -> None:
    works = {LEFT: Work("cpu", 3.0), RIGHT: Work(device, 4.0), JOIN: Work("cpu", 1.0)}
    assert end(works, FORK, **counts) == seconds


def test_a_chain_takes_all_its_time_whatever_lanes_there_are() -> None:
    works = {i: Work("cpu" if i % 2 else "cuda", 1.0) for i in range(5)}
    assert end(works, {i: [i + 1] if i < 4 else [] for i in range(5)}, cpu=4) == 5.0


def test_a_group_waits_for_the_last_that_it_needs() -> None:
    works = {LEFT: Work("a", 5.0), RIGHT: Work("b", 1.0), JOIN: Work("b", 1.0)}
    assert end(works, FORK) == 6.0


def test_a_lane_that_is_free_is_taken_by_who_can_begin_first() -> None:
    works = {0: Work("a", 3.0), 1: Work("b", 2.0), 2: Work("b", 2.0)}
    assert end(works, {0: [1], 1: [], 2: []}) == 5.0
