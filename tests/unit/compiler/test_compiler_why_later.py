# SPDX-License-Identifier: Apache-2.0
"""Why a backend that takes a node did not get it: in figures, if placements were compared."""

from types import SimpleNamespace

import pytest

from nndeploy.bundle.report import Candidate
from nndeploy.compiler.chains.why_later import FUSED, why_later
from nndeploy.partition.placement import Placement
from nndeploy.plugin.interface import Support

TAKES = {"node": Support(True)}


def placed(*order: str, pinned: tuple[str, ...] = ()) -> Placement:
    """Returns the placement of a node that the backend b has, of those asked in an order."""
    return Placement(SimpleNamespace(), dict.fromkeys(order, TAKES), {"node": "b"}, frozenset(pinned))


def candidate(name: str, predicted_ms: float, median_ms: float | None = None) -> Candidate:
    return Candidate(name, median_ms, name == "b", (), predicted_ms)


@pytest.mark.parametrize(("candidates", "told"), [
    ((candidate("b", 0.008), candidate("a", 0.037)), "slower: 0.037 ms predicted, b 0.008"),
    ((candidate("b", 2, 0.5), candidate("a", 1, 0.9)), "slower: 0.9 ms measured, b 0.5"),
    ((candidate("b", 2, 0.5), candidate("a", 3)), "slower: 3 ms predicted, b 2"),
    ((candidate("b", 2), candidate("a first", 5), candidate("a, as exported", 3)), "slower: 3 ms predicted, b 2"),
    ((candidate("b", 1.0, 0.5), candidate("a", 1.0, 0.49)), "no faster: 0.49 ms measured, b 0.5"),
    ((candidate("b", 1.0), candidate("ab", 5)), "b is asked first in the placement that was chosen"),
    ((), "b is asked first in the placement that was chosen"),
])  # fmt: skip
def test_placements_that_lost_are_told_in_figures(candidates: tuple[Candidate, ...], told: str) -> None:
    assert why_later(placed("b", "a"), "node", "a", candidates, ()) == told


def test_a_pin_and_a_fusion_come_before_figures() -> None:
    candidates = (candidate("b", 0.008), candidate("a", 0.037))
    assert why_later(placed("a", "b", pinned=("node",)), "node", "a", candidates, [("n*", "b")]) == "pinned to b"
    assert why_later(placed("a", "b"), "node", "a", candidates, ()) == FUSED
    assert why_later(placed("a", "b", pinned=("node",)), "node", "a", candidates, ()).startswith("slower")
