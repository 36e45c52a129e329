# SPDX-License-Identifier: Apache-2.0
"""A product after a filter goes into its weights."""

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from passes_filters import draw_channel_constant, draw_filter
from passes_harness import GraphBuilder, assert_same_outputs, constant, examples, graph, nodes, random_feeds, rewritten

NAME = "fuse-conv-scale"
CONSTANTS = """<float[2,1,1,1] w = {1, 10}, float[2] b = {7, 9}, float two = {2}, float[2,1,1] each = {2, 4},
    float[1,2,1,1] with_batch = {2, 4}, float[1,1,2] wide = {2, 4}, float[1,1,1,1,1] deep = {2}, float nil = {0},
    float[2,2,1,1] rows = {1, 2, 3, 4}>"""
CONV = "c = Conv(x, w, b)"
IN, OUT = "float[1,1,2,2] x", "float[1,2,2,2] y"


@pytest.mark.parametrize(("node", "weights", "bias"), [
    ("y = Mul(c, two)", [2, 20], [14, 18]), ("y = Mul(two, c)", [2, 20], [14, 18]),
    ("y = Mul(c, each)", [2, 40], [14, 36]), ("y = Mul(with_batch, c)", [2, 40], [14, 36]),
    ("y = Div(c, each)", [0.5, 2.5], [3.5, 2.25]), ("y = Neg(c)", [-1, -10], [-7, -9]),
])  # fmt: skip
def test_weights_and_bias_take_the_scale(node: str, weights: list[float], bias: list[float]) -> None:
    model = graph(f"({IN}) => ({OUT}) {CONSTANTS} {{ {CONV} {node} }}")
    assert rewritten(NAME, model) == 1
    assert nodes(model) == ["y = Conv(x, y.weight, y.bias)"]
    assert constant(model, "y.weight").reshape(-1).tolist() == weights
    assert constant(model, "y.bias").tolist() == bias


@pytest.mark.parametrize(("signature", "node"), [
    (f"({IN}) => ({OUT})", "y = Mul(c, wide)"), (f"({IN}) => (float[1,1,2,2,2] y)", "y = Mul(c, deep)"),
    (f"({IN}) => (float[2,2,2,2] y)", "y = Mul(c, rows)"), (f"({IN}) => ({OUT})", "y = Div(two, c)"),
    (f"({IN}) => ({OUT})", "y = Div(c, nil)"), (f"({IN}) => ({OUT})", "y = Mul(c, c)"),
    (f"({IN}, float s) => ({OUT})", "y = Mul(c, s)"), (f"({IN}) => ({OUT}, float[1,2,2,2] c)", "y = Mul(c, two)"),
])  # fmt: skip
def test_stays(signature: str, node: str) -> None:
    assert rewritten(NAME, graph(f"{signature} {CONSTANTS} {{ {CONV} {node} }}")) == 0


@examples(30)
@given(data=st.data())
def test_outputs_stay(data: st.DataObject) -> None:
    """In float64: the fold is exact but for the last digits."""
    build = GraphBuilder(17)
    value, channels, rank = draw_filter(data, build)
    outputs = []
    for _ in range(data.draw(st.integers(1, 3))):
        op = data.draw(st.sampled_from(["Mul", "Div", "Neg"]))
        value = build.node(op, value, *([] if op == "Neg" else [draw_channel_constant(data, build, channels, rank)]))
        if not data.draw(st.integers(0, 5)):
            outputs.append(value)
    try:
        proto = build.model(*dict.fromkeys([*outputs, value]))
    except AssertionError:  # the constant cannot be broadcast
        reject()
    assert_same_outputs(NAME, proto, random_feeds(proto), tolerance=1e-9)
