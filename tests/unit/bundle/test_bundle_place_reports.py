# SPDX-License-Identifier: Apache-2.0
"""What crosses between the places of a chain, submodel by submodel."""

from nndeploy.bundle.manifest import PlacedSubmodel, Placing, Submodel
from nndeploy.bundle.place_reports import crossing_by_chain, place_reports

CHAIN = [
    Submodel("a", ("x",), ("r", "y"), ()), Submodel("b", ("x", "r"), ("s",), ()), Submodel("c", ("s", "r"), ("z",), ()),
]  # fmt: skip
SIZES = {"x": 1, "y": 10, "r": 100, "s": 1000, "z": 10_000}


def crossing(*places: str) -> list[int]:
    placed = {one.id: PlacedSubmodel(place, 7, 8) for one, place in zip(CHAIN, places, strict=True)}
    rows = place_reports("portable", CHAIN, ["y", "z"], Placing(placed, SIZES))
    assert [(row.submodel, row.place, row.weight_bytes, row.peak_bytes) for row in rows] == [
        (one.id, place, 7, 8) for one, place in zip(CHAIN, places, strict=True)
    ]
    assert crossing_by_chain(rows) == {"portable": sum(row.crossing_bytes for row in rows)}
    return [row.crossing_bytes for row in rows]


def test_nothing_crosses_within_a_place_of_the_cpu() -> None:
    assert crossing("cpu:0", "cpu:0", "cpu:0") == [0, 0, 0]


def test_what_another_pool_made_crosses_and_an_input_does_not() -> None:
    assert crossing("cpu:0", "cpu:1", "cpu:1") == [0, 100, 100]


def test_inputs_and_outputs_cross_to_and_from_a_gpu() -> None:
    assert crossing("cuda:0", "cuda:0", "cuda:0") == [1 + 10, 1, 10_000]


def test_a_value_crosses_between_gpus_and_to_the_cpu() -> None:
    assert crossing("cuda:0", "cuda:1", "cpu") == [1 + 10, 1 + 100, 1000 + 100]
