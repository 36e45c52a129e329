# SPDX-License-Identifier: Apache-2.0
"""The ideal of a stream: its slowest stage alone, without waits for cores that others have."""

import pytest

from nndeploy.cli.views.stream_figures import Ideal, Share, ideal_of, share_of
from nndeploy.stream.engine.engine import CORES
from nndeploy.stream.engine.workers import StageFigures


@pytest.mark.parametrize(("shares", "ideal"), [
    ({"a": Share(0.8), "b": Share(0.5), "cores": Share(0.6)}, Ideal("a", 80.0, 0.8)),
    ({"a": Share(0.8, 0.5), "b": Share(0.5, 0.0), "cores": Share(0.4, 0.9)}, Ideal("b", 50.0, 0.5)),
    ({"a": Share(0.8, 0.5), "b": Share(0.5, 0.2), "cores": Share(0.4, 0.9)}, Ideal("cores", 40.0, 0.4)),
])  # fmt: skip
def test_the_ideal_is_the_slowest_stage_alone_by_its_own_time(shares, ideal) -> None:
    found = ideal_of(shares, 1.0, 10)
    assert found is not None
    assert (found.stage, found.ms, found.share) == (ideal.stage, pytest.approx(ideal.ms), pytest.approx(ideal.share))


def test_a_stream_without_items_has_no_ideal() -> None:
    assert ideal_of({"cores": Share(0.0)}, 1.0, 0) is None


def stage(busy_ns, core_wait_ns, name="s0") -> StageFigures:
    return StageFigures(name, 2, 1, busy_ns, core_wait_ns=core_wait_ns)


def test_shares_are_of_the_workers_and_waits_for_cores_of_the_time() -> None:
    assert share_of(stage(10**9, 10**8), 1.0) == (0.5, 0.05)
    assert share_of(stage(10**9, 10**8, CORES), 1.0) == (0.5, 0.1)
    assert share_of(stage(10**10, 10**10, CORES), 1.0) == (1.0, 1.0)  # several threads may wait at once
    assert share_of(stage(10**9, None), 1.0) == (0.5, None)


def test_shares_are_of_the_time_since_the_last_figures() -> None:
    assert share_of(stage(10**9, 10**8), 1.0, stage(6 * 10**8, 6 * 10**7)) == (0.2, 0.02)
    assert share_of(stage(10**9, None), 1.0, stage(6 * 10**8, None)) == (0.2, None)
