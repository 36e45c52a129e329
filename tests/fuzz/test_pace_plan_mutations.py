# SPDX-License-Identifier: Apache-2.0
"""Damaged and hostile plans of pacing, and members that say what operators compute: one error, never a traceback."""

import json
import random
from typing import Any

import numpy as np

from nndeploy.errors import BundleError, DataError
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
WORDS = (None, True, -1, 0, 1, 1.5, 1e308, 2**63, "", "x", [], [1], {}, {"a": 1}, "a" * 64)


def other_bytes(data: bytes, dice: random.Random) -> bytes:
    at, mutant = dice.randrange(len(data)), bytearray(data)
    match dice.randrange(4):
        case 0:
            mutant[at] ^= 1 << dice.randrange(8)
        case 1:
            del mutant[at:]
        case 2:
            mutant[at:at] = dice.randbytes(dice.randint(1, 20))
        case _:
            mutant[at] = ord(dice.choice('0123456789-.eE"[]{}:, '))
    return bytes(mutant)


def other_value(data: bytes, dice: random.Random) -> bytes:
    """Returns the text with another value somewhere inside, or a key more or less."""
    at: Any = json.loads(data)
    whole = at
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        key = dice.choice(keys)
        if not isinstance(at[key], dict | list) or not at[key] or dice.random() < 0.2:
            break
        at = at[key]
    if dice.random() < 0.2:
        del at[key]
    else:
        at[key] = dice.choice(WORDS)
    return json.dumps(whole, sort_keys=True, separators=(",", ":")).encode()


def test_a_mutant_of_a_plan_is_a_plan_or_refused() -> None:
    dice, text, refused = random.Random(5), plan_file_to_json(PLAN), 0  # noqa: S311 - no secret
    for number in range(NUM_MUTANTS):
        try:
            found = plan_file_from_json((other_bytes, other_value)[number % 2](text, dice))
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
            found = operators_from_json((other_bytes, other_value)[number % 2](text, dice))
        except BundleError:
            refused += 1
            continue
        for operators in found.submodels.values():
            assert min((0, *operators.whole(), *sum(operators.between(["x", "y"]), ()))) >= 0
            operators.each()
    assert refused > NUM_MUTANTS / 2
