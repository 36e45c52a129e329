# SPDX-License-Identifier: Apache-2.0
"""What crosses between the places of a chain, submodel by submodel."""

import pytest

from nndeploy.bundle.manifest import PlacedSubmodel, Placing, Submodel
from nndeploy.bundle.place_reports import crossing_by_chain, place_reports

CHAIN = [
    Submodel("a", ("x",), ("r", "y"), ()), Submodel("b", ("x", "r"), ("s",), ()), Submodel("c", ("s", "r"), ("z",), ()),
]  # fmt: skip
SIZES = {"x": 1, "y": 10, "r": 100, "s": 1000, "z": 10_000}


@pytest.mark.parametrize(("places", "crossing"), [
    (("cpu:0", "cpu:0", "cpu:0"), [0, 0, 0]),  # nothing within a place of the CPU
    (("cpu:0", "cpu:1", "cpu:1"), [0, 100, 100]),  # what another pool made, no input
    (("cuda:0", "cuda:0", "cuda:0"), [1 + 10, 1, 10_000]),  # inputs to a GPU, outputs from it
    (("cuda:0", "cuda:1", "cpu"), [1 + 10, 1 + 100, 1000 + 100]),  # a value between GPUs and to the CPU
])  # fmt: skip
def test_what_another_place_made_crosses(places, crossing) -> None:
    placed = {one.id: PlacedSubmodel(place, 7, 8) for one, place in zip(CHAIN, places, strict=True)}
    rows = place_reports("portable", CHAIN, ["y", "z"], Placing(placed, SIZES))
    assert [(row.submodel, row.place, row.weight_bytes, row.peak_bytes) for row in rows] == [
        (one.id, place, 7, 8) for one, place in zip(CHAIN, places, strict=True)
    ]
    assert [row.crossing_bytes for row in rows] == crossing
    assert crossing_by_chain(rows) == {"portable": sum(crossing)}
