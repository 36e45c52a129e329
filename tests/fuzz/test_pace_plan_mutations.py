# SPDX-License-Identifier: Apache-2.0
"""Damaged and hostile plans of pacing, and members that say what operators compute: one error, never a traceback."""

import json
import random

import numpy as np
from test_bundle_contents import damaged_bytes, damaged_tree

from nndeploy.errors import BundleError, DataError
from nndeploy.files.strict_json import canonical_json
from nndeploy.pacing.plan.goal import PaceGoal
from nndeploy.pacing.plan.learnt_shape import LearntShape
from nndeploy.pacing.plan.operators import Operator, Operators
from nndeploy.pacing.plan.operators_file import CountedOperators, operators_from_json, operators_to_json
from nndeploy.pacing.plan.plan_file import PacePlanFile, plan_file_from_json, plan_file_to_json

NUM_MUTANTS = 4000
COUNT = 5
PLAN = PacePlanFile(
    "0" * 64, "m", PaceGoal(max_latency_ns=10**7), tuple(("s0", f"Op {number}") for number in range(COUNT)),
    LearntShape(
        ((1, 3),), np.arange(COUNT), np.full(COUNT, 1e5), np.full(COUNT, 1 / COUNT), np.full(COUNT, 2), 6e5, 1e4
    ),
)  # fmt: skip
OPERATORS = CountedOperators(
    {"x": (1, 2)}, {"s0": Operators((("x", 8), ("y", 8)), (Operator("Neg", (0,), (1,), 2, 0),) * 3)}
)


def mutant(text: bytes, number: int, dice: random.Random) -> bytes:
    """Returns a text of which bytes are damaged, or values."""
    return canonical_json(damaged_tree(json.loads(text), dice)) if number % 2 else damaged_bytes(text, dice)


def test_a_mutant_of_a_plan_is_a_plan_or_refused() -> None:
    dice, text, refused = random.Random(5), plan_file_to_json(PLAN), 0  # noqa: S311 - no secret
    for number in range(NUM_MUTANTS):
        try:
            found = plan_file_from_json(mutant(text, number, dice))
        except DataError:
            refused += 1
            continue
        learnt = found.learnt
        assert len(found.points) == len(learnt.order) == len(learnt.durations) == len(learnt.parts) >= 1
        assert np.isfinite([learnt.baseline, learnt.reserve, *learnt.durations, *learnt.weights]).all()
        assert min(learnt.baseline, learnt.reserve, *learnt.durations, *learnt.weights) >= 0
        assert learnt.parts.min() >= 1
    assert refused > NUM_MUTANTS / 2


def test_a_mutant_of_the_operators_is_read_or_refused() -> None:
    dice, text, refused = random.Random(6), operators_to_json(OPERATORS), 0  # noqa: S311 - no secret
    for number in range(NUM_MUTANTS):
        try:
            found = operators_from_json(mutant(text, number, dice))
        except BundleError:
            refused += 1
            continue
        for operators in found.submodels.values():
            assert min((0, *operators.whole(), *sum(operators.between(["x", "y"]), ()))) >= 0
            operators.each()
    assert refused > NUM_MUTANTS / 2
