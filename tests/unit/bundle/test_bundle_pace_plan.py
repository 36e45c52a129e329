# SPDX-License-Identifier: Apache-2.0
"""A plan of pacing as a file: it comes back, however it is spelt; what is not one is refused in one line."""

import json
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from nndeploy.errors import DataError
from nndeploy.pacing.plan.goal import PaceGoal
from nndeploy.pacing.plan.learnt_shape import LearntShape
from nndeploy.pacing.plan.pairs import END, ChosenPair, Pair
from nndeploy.pacing.plan.plan_file import PacePlanFile, check_made_for, plan_file_from_json, plan_file_to_json
from nndeploy.pacing.plan.policy import PacePolicy

LEARNT = LearntShape(
    shapes=((1, 3), ()), order=np.array([1, 0, 2]), durations=np.array([1500.0, 250.0, 1e6]),
    weights=np.array([0.25, 0.75, 0.0]), parts=np.array([1, 4, 1]), baseline=2e6, reserve=0.0,
    pairs=(Pair(1, 0, 2_000_000), Pair(1, 2), Pair(0, 2), Pair(2, END)),
)  # fmt: skip
CHOSEN = (
    ChosenPair("Relu b -> Conv a", 2_000_000), ChosenPair("Relu b -> Conv a"), ChosenPair("Conv a -> Conv a"),
    ChosenPair("Conv a -> end"),
)  # fmt: skip
NAMES = (("s0", "Conv a"), ("s1", "Relu b"), ("s1", "Conv a"))


def plan(goal: PaceGoal | None = None) -> PacePlanFile:
    return PacePlanFile("a" * 64, "model", goal or PaceGoal(max_latency_ns=8_000_000), NAMES, LEARNT)


@pytest.mark.parametrize("goal", [
    PaceGoal(max_latency_ns=8_000_000),
    PaceGoal(total_ns=60_000_000),
    PaceGoal(total_ns=60_000_000, pairs=CHOSEN),
    *(PaceGoal(cpu_limit=0.25, policy=policy) for policy in PacePolicy),
])  # fmt: skip
def test_comes_back(goal: PaceGoal) -> None:
    found = plan_file_from_json(plan_file_to_json(plan(goal)))
    assert (found.bundle, found.model_name, found.goal, found.points) == ("a" * 64, "model", goal, NAMES)
    assert found.learnt.shapes == LEARNT.shapes
    assert found.learnt.pairs == LEARNT.pairs
    for field in fields(LearntShape)[1:-1]:
        np.testing.assert_array_equal(getattr(found.learnt, field.name), getattr(LEARNT, field.name))
    assert plan_file_to_json(found) == plan_file_to_json(plan(goal))


def test_points_stand_in_the_order_in_which_they_are_passed() -> None:
    data = json.loads(plan_file_to_json(plan()))
    assert [(one["point"], one["submodel"], one["name"]) for one in data["points"]] == [
        (1, "s1", "Relu b"), (0, "s0", "Conv a"), (2, "s1", "Conv a"),
    ]  # fmt: skip


def test_a_plan_of_set_delays_alone_comes_back() -> None:
    learnt = replace(LEARNT, pairs=(Pair(1, 0, 2_000_000),), weights=np.zeros(3))
    made = replace(plan(PaceGoal(pairs=CHOSEN[:1])), learnt=learnt)
    found = plan_file_from_json(plan_file_to_json(made))
    assert found.goal == made.goal
    assert json.loads(plan_file_to_json(made))["goal"] == {}


def test_a_plan_of_before_there_were_pairs_is_read() -> None:
    data = json.loads(plan_file_to_json(plan()))
    data["format"]["major"] = 1
    del data["pairs"], data["are_pairs_chosen"]
    found = plan_file_from_json(json.dumps(data).encode())
    assert found.learnt.pairs == ()
    assert not found.goal.pairs
    np.testing.assert_array_equal(found.learnt.weights, LEARNT.weights)
    data["pairs"] = []
    with pytest.raises(DataError, match="unknown field 'pairs'"):
        plan_file_from_json(json.dumps(data).encode())


def test_any_spelling_is_read() -> None:
    spelt = json.dumps(json.loads(plan_file_to_json(plan())), indent=7)
    assert plan_file_to_json(plan_file_from_json(spelt.encode())) == plan_file_to_json(plan())


WRONG: list[tuple[tuple[Any, ...], Any, str]] = [
    (("format", "name"), "nndeploy-bundle", "expected nndeploy-pace-plan"), (("format", "major"), 3, "newer nndeploy"),
    (("format", "major"), 0, "never released"), (("bundle_sha256",), "a", "hexadecimal"), (("goal",), {}, "cpu_limit"),
    (("goal",), {"cpu_limit": 1}, "between 0 and 1"), (("goal",), {"max_latency_us": 0}, "more than 0"),
    (("goal",), {"max_latency_us": 5, "cpu_limit": 0.5}, "unknown field"),
    (("policy",), "random", "one of equal, proportional, solved"), (("shapes",), [[1.5]], "list of shapes"),
    (("calm_us",), -1, "not negative"), (("calm_us",), 0, "more than 0"), (("calm_us",), 1e300, "at most"),
    (("reserve_us",), "1", "not negative"), (("points",), [], "1 item or more"),
    (("points", 0, "amount_us"), -2, "not negative"), (("points", 0, "parts"), 0, "from 1"),
    (("points", 0, "point"), 2, "each of 0 to 2 once"), (("points", 0, "point"), 3, "each of 0 to 2 once"),
    (("points", 0, "weight"), 0.5, "together, not 1"), (("points", 0, "colour"), 1, "unknown field 'colour'"),
    (("pairs", 0, "from"), 3, "no point and a later one"), (("pairs", 0, "to"), 1, "no point and a later one"),
    (("pairs", 2, "to"), 1, "no point and a later one"), (("pairs", 0, "to"), "1", "an integer"),
    (("pairs", 0, "pair"), "a -> b", "its points are 'Relu b -> Conv a', not 'a -> b'"),
    (("pairs", 0, "preset_us"), 0, "more than 0"), (("pairs", 0, "colour"), 1, "unknown field 'colour'"),
    (("pairs", 1), {"pair": "Relu b -> Conv a", "from": 1, "to": 0}, "is there twice"), (("pairs",), {}, "list"),
    (("are_pairs_chosen",), 1, "true or false"), (("surplus",), 1, "unknown field 'surplus'"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "reason"), WRONG)
def test_refuses_what_is_no_plan(path: tuple[Any, ...], value: Any, reason: str) -> None:
    data = json.loads(plan_file_to_json(plan()))
    at = data
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    with pytest.raises(DataError, match=reason) as caught:
        plan_file_from_json(json.dumps(data).encode())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "key", ["format", "goal", "points", "pairs", "are_pairs_chosen", "shapes", "calm_us", "policy"]
)
def test_refuses_what_lacks_a_field(key: str) -> None:
    data = json.loads(plan_file_to_json(plan()))
    del data[key]
    with pytest.raises(DataError, match="missing"):
        plan_file_from_json(json.dumps(data).encode())


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"{", b"\xff", b'{"calm_us": NaN}', b'{"calm_us": 1e999}', b'{"a": 1, "a": 1}', b"[" * 100_000]
)
def test_refuses_what_is_no_json_object(text: bytes) -> None:
    with pytest.raises(DataError):
        plan_file_from_json(text)


def test_is_for_one_bundle(full_manifest: Any) -> None:
    with pytest.raises(DataError, match=r"made for another bundle: aaaaaaaaaaaa of 'model', this is [0-9a-f]{12} "):
        check_made_for(plan(), full_manifest)
