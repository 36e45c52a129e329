# SPDX-License-Identifier: Apache-2.0
"""A product with one-hot rows becomes a Gather; whatever the numbers are, the outputs stay."""

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given
from hypothesis import strategies as st
from passes_harness import assert_same_outputs, examples, graph, nodes, rewritten

NAME = "one-hot-matmul-to-gather"
CONSTANTS = """<int64[1] last = {-1}, int32[1,1,4] line = {0,1,2,3}, int32[4] flat = {0,1,2,3},
    int32[4] other = {0,1,3,2}, float[4,2] w = {1,2,3,4,5,6,7,-0.0}, int32[4,1] column = {0,1,2,3}>"""
HEAD = f"(int32[n,5] x) => (float[n,5,2] y) {CONSTANTS}"
BODY = "{{ u = Unsqueeze(x, last) e = Equal({equal}) c = Cast<to = 1>(e) y = MatMul(c, w) }}"


@pytest.mark.parametrize("equal", ["u, line", "line, u", "u, flat"])
def test_becomes_a_gather(equal: str) -> None:
    model = graph(f"{HEAD} {BODY.format(equal=equal)}")
    assert rewritten(NAME, model) == 1
    assert nodes(model)[-3:] == [
        "y.numbers = Squeeze(u, y.axis)", "y.rows = Clip(y.numbers, y.below, y.behind)", "y = Gather(y.table, y.rows)",
    ]  # fmt: skip


@pytest.mark.parametrize("equal", ["u, other", "u, column", "u, u"])
def test_other_comparisons_stay(equal: str) -> None:
    assert rewritten(NAME, graph(f"{HEAD} {BODY.format(equal=equal)}")) == 0


def test_weights_that_are_not_finite_stay() -> None:
    model = graph(f"{HEAD} {BODY.format(equal='u, flat')}")
    model.graph.initializers["w"].const_value = ir.tensor(np.full((4, 2), np.inf, np.float32), name="w")
    assert rewritten(NAME, model) == 0


@examples()
@given(st.lists(st.integers(-6, 8) | st.sampled_from([-(2**31), 2**31 - 1]), min_size=10, max_size=10))
def test_outputs_stay(numbers: list[int]) -> None:
    proto = ir.to_proto(graph(f"{HEAD} {BODY.format(equal='u, line')}"))
    feeds = {"x": np.array(numbers, np.int32).reshape(2, 5)}
    assert assert_same_outputs(NAME, proto, feeds, tolerance=0) == 1
