# SPDX-License-Identifier: Apache-2.0
"""The ideal of a stream: its slowest stage alone, without waits for cores that others have."""

import pytest

from nndeploy.cli.views.stream_figures import Ideal, Share, ideal_of, share_of


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


def test_shares_are_of_the_workers_and_waits_for_cores_of_the_time() -> None:
    assert share_of(10**9, 10**8, 2, 1.0, is_cores=False) == (0.5, 0.05)
    assert share_of(10**9, 10**8, 2, 1.0, is_cores=True) == (0.5, 0.1)
    assert share_of(10**10, 10**10, 2, 1.0, is_cores=True) == (1.0, 1.0)  # several threads may wait at once
    assert share_of(10**9, None, 2, 1.0, is_cores=False) == (0.5, None)
