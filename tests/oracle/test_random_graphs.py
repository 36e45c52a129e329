# SPDX-License-Identifier: Apache-2.0
"""Random graphs of all operators of ONNX: the backend reference gives what the oracle does; so does a compile."""

import numpy as np
import pytest

from oracle.random_graphs import draw, outcome_of

IN_GROUPS_OF = 5


@pytest.mark.parametrize("first", range(0, 100, IN_GROUPS_OF))
def test_reference_is_right(first: int) -> None:
    outcomes = {seed: outcome_of(draw(seed), "reference") for seed in range(first, first + IN_GROUPS_OF)}
    assert {seed: seen for seed, seen in outcomes.items() if seen[0] != "right"} == {}


@pytest.mark.slow  # three whole compiles of some twenty nodes
@pytest.mark.parametrize("seed", range(1000, 1003))
def test_compile_is_right_on_ordinary_numbers(seed: int) -> None:
    outcome = outcome_of(draw(seed, has_edges=False), "default")
    assert outcome[0] in ("right", "refused"), outcome


def test_a_seed_gives_the_same_graph() -> None:
    one, other = draw(7), draw(7)
    assert one.model.SerializeToString() == other.model.SerializeToString()
    assert all(np.array_equal(one.inputs[k], other.inputs[k]) or one.inputs[k].dtype.kind == "f" for k in one.inputs)


def test_what_rounding_decides_is_passed_over_and_no_more() -> None:
    drawn = draw(2)
    assert drawn.difference(drawn.wanted) == ""
    assert all(drawn.difference(noisy) == "" for noisy in drawn.noisy)
    name = next(n for n, v in drawn.wanted.items() if v.dtype == np.float32 and v.size and np.isfinite(v).all())
    assert drawn.difference({**drawn.wanted, name: drawn.wanted[name] + np.float32(0.1)})
