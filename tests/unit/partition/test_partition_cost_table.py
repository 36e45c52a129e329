# SPDX-License-Identifier: Apache-2.0
"""The cost table: what lies between measured points, what the files hold, and what has no row."""

import json
from itertools import pairwise
from typing import Any

import pytest

from nndeploy.partition.cost_table import CALL, FORMAT, LEVELS, Curve, table_for, table_from_json
from nndeploy.partition.kinds import ATTENTION, FREE, MEASURED_KINDS, OTHER, PRODUCT, TREES
from nndeploy.partition.speeds import BEHIND, BEHIND_CONVOLUTION, BEHIND_ELEMENTWISE, BEHIND_PRODUCT

HEADS = (BEHIND_CONVOLUTION, BEHIND_PRODUCT, BEHIND_ELEMENTWISE)

CURVE = Curve(((1e-6, 2e-6), (100e-6, 50e-6)))


def a_table(**changes: Any) -> str:
    backend = {
        "call": 1e-6, "node": 1e-7, "node_of_any_size": 1e-7, "fused": {}, "in_networks": {},
        "curves": {PRODUCT: [[1e-6, 2e-6]]},
    }  # fmt: skip
    data = {"format": FORMAT, "level": "x86-64-v4", "machine": "", "backends": {"native": backend | changes}}
    return json.dumps(data)


def test_seconds_are_those_measured_and_between_them_interpolated_in_logarithms() -> None:
    assert CURVE.seconds(1e-6) == pytest.approx(2e-6)
    assert CURVE.seconds(100e-6) == pytest.approx(50e-6)
    assert CURVE.seconds(10e-6) == pytest.approx(10e-6)


def test_below_the_first_point_seconds_stay_and_beyond_the_last_they_grow_as_the_estimate() -> None:
    assert CURVE.seconds(1e-9) == CURVE.seconds(0.0) == 2e-6
    assert CURVE.seconds(400e-6) == pytest.approx(200e-6)


@pytest.mark.parametrize("level", LEVELS)
def test_every_table_has_every_kind_of_the_engines_and_never_falls_with_size(level: str) -> None:
    table = table_for(level)
    assert table.level == level
    assert table.backends.keys() == {"native", "onnxruntime", "openvino", "reference"}
    for name in ("native", "onnxruntime", "openvino"):
        costs = table.backends[name]
        refused = {"native": {ATTENTION}, "openvino": {TREES}}.get(name, set())
        assert set(MEASURED_KINDS) - costs.curves.keys() <= refused, name
        assert 0 < costs.node <= costs.call < 1e-3, name
        assert all(0 <= part <= 1 for part in costs.fused.values()), name
        for kind in (*MEASURED_KINDS, OTHER):
            seconds = [costs.seconds(kind, 10.0**exponent) for exponent in range(-9, 0)]
            assert all(a <= b for a, b in pairwise(seconds)), (name, kind)


def test_large_products_take_no_engine_much_longer_than_another_and_onnx_s_own_evaluator_is_slow() -> None:
    for level in LEVELS:
        table = table_for(level)
        found = [table.backends[name].seconds(PRODUCT, 1e-3) for name in ("native", "onnxruntime", "openvino")]
        assert max(found) < 2 * min(found)
        assert table.backends["reference"].node > 10 * table.backends["native"].node


def test_who_was_not_measured_computes_as_fast_as_the_fastest_and_calls_as_most_do() -> None:
    table = table_for("x86-64-v4")
    fastest = min(one.seconds(PRODUCT, 1e-4) for one in table.backends.values())
    assert table.node_seconds("somebody", PRODUCT, 1e-4) == fastest
    calls = [one.call for one in table.backends.values()]
    assert min(calls) < table.of("somebody").call < max(calls)


def test_a_term_within_a_network_is_its_factor_times_what_it_takes_alone() -> None:
    costs = table_from_json(a_table(in_networks={PRODUCT: 0.5})).of("native")
    assert costs.seconds_of(PRODUCT, costs.seconds(PRODUCT, 1e-6)) == pytest.approx(1e-6)
    assert costs.seconds_of(CALL, costs.call) == costs.call


@pytest.mark.parametrize("level", LEVELS)
def test_factors_of_networks_are_of_terms_that_are_added_up_and_keep_their_magnitude(level: str) -> None:
    terms = {CALL, OTHER, *MEASURED_KINDS, *(BEHIND.format(head=head) for head in HEADS)}
    for name in ("native", "onnxruntime", "openvino"):
        factors = table_for(level).of(name).in_networks
        assert factors.keys() <= terms
        assert all(0.05 < factor < 20 for factor in factors.values()), name


def test_an_operator_of_no_kind_costs_something_and_one_that_renames_nothing() -> None:
    costs = table_for("x86-64-v4").of("native")
    assert costs.seconds(OTHER, 1e-5) >= costs.node > 0
    assert costs.seconds("a kind of later", 1e-5) == costs.seconds(OTHER, 1e-5)
    assert costs.seconds(FREE, 1e-5) == 0.0


@pytest.mark.parametrize(
    ("level", "taken"),
    [("x86-64-v4-bf16", "x86-64-v4"), ("x86-64-v2", "x86-64-v3"), ("aarch64", "x86-64-v3"), ("", "x86-64-v3")],
)
def test_a_level_without_a_table_has_the_nearest_one_s(level: str, taken: str) -> None:
    assert table_for(level).level == taken


@pytest.mark.parametrize("points", [[], [[1e-6, 2e-6], [2e-6, 1e-6]], [[2e-6, 1e-6], [1e-6, 2e-6]], [[0.0, 1e-6]]])
def test_a_curve_that_does_not_rise_is_refused(points: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="does not rise"):
        table_from_json(a_table(curves={PRODUCT: points}))


def test_another_format_is_refused() -> None:
    with pytest.raises(ValueError, match="format"):
        table_from_json(a_table().replace(f'"format": {FORMAT}', '"format": 99'))
