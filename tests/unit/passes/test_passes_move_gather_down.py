# SPDX-License-Identifier: Apache-2.0
"""What is done to every row of a Gather is done to its table, and outputs stay."""

import numpy as np
import onnx_ir as ir
import pytest
from passes_harness import assert_same_outputs, graph, nodes, rewritten

NAME = "move-gather-down"
CONSTANTS = """<float[3,2] w = {1,2,3,4,5,6}, float[3,2] v = {0,1,0,1,0,1}, float[2,3] turned = {1,2,3,4,5,6},
    float[2] row = {10,20}, float[1,1,1] one = {2}, float half = {0.5}, float[4,1] rows = {1,2,3,4},
    float[1,1,1,2] deep = {1,2}>"""
HEAD = f"(int64[n,4] i, int64[n,4] k, float[2] z) => (float[n,4,2] y) {CONSTANTS}"


CHAINS = [
    "a = Gather(w, i) b = Add(a, row) c = Tanh(b) y = Mul(b, c)",
    "a = Gather(w, i) b = Gather(v, i) y = Sub(a, b)",
    "a = Gather(w, i) b = Mul(half, a) y = Div(one, b)",
    "a = Gather(w, i) b = LeakyRelu<alpha = 0.5>(a) y = Max(b, row, a)",
]


@pytest.mark.parametrize("chain", CHAINS)
def test_a_chain_becomes_one_table(chain: str) -> None:
    proto = ir.to_proto(graph(f"{HEAD} {{ {chain} }}"))
    model = ir.from_proto(proto)
    rewritten(NAME, model)
    assert nodes(model)[-1] == "y = Gather(y.table, i)"
    feeds = {"i": np.array([[0, 1, 2, -1]]), "k": np.zeros((1, 4), np.int64), "z": np.zeros(2, np.float32)}
    assert_same_outputs(NAME, proto, feeds, tolerance=1e-6)


def test_large_table_stays() -> None:
    model = graph(f"{HEAD} {{ a = Gather(w, i) y = Relu(a) }}")
    model.graph.initializers["w"].const_value = ir.tensor(np.ones(((1 << 17) + 1, 2), np.float32), name="w")
    assert rewritten(NAME, model) == 0
