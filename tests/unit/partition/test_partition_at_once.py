# SPDX-License-Identifier: Apache-2.0
"""What can run at once: other devices and places, and on the CPU as many calls as there are cores for their threads."""

from types import SimpleNamespace
from typing import Any

import pytest

from nndeploy.partition.at_once import lanes_of
from nndeploy.partition.cost import Costs

CPU, GPU = SimpleNamespace(name="one", device_kind="cpu"), SimpleNamespace(name="other", device_kind="cuda")
COSTS = Costs({}, {}, 0)


@pytest.mark.parametrize(("backends", "cores", "threads", "count"), [
    ([CPU], 8, None, None), ([CPU], 8, 8, None), ([CPU], 0, 1, None), ([CPU], 1, 1, None),
    ([CPU], 8, 3, 2), ([CPU], 2, 1, 2), ([CPU, GPU], 8, None, 1), ([GPU], 8, None, None),
])  # fmt: skip
def test_calls_run_at_once_where_a_device_or_cores_are_free(
    backends: list[Any], cores: int, threads: int | None, count: int | None
) -> None:
    lanes = lanes_of(backends, COSTS, cores, threads)
    assert (None if lanes is None else lanes.counts["cpu"]) == count


def test_places_are_devices_of_their_own() -> None:
    assert lanes_of([CPU], COSTS, 8, None, has_places=True) is not None
