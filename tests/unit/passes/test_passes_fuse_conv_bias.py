# SPDX-License-Identifier: Apache-2.0
"""A sum after a filter goes into its bias."""

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from passes_filters import draw_channel_constant, draw_filter
from passes_harness import GraphBuilder, assert_same_outputs, constant, examples, graph, nodes, random_feeds, rewritten

NAME = "fuse-conv-bias"
CONSTANTS = """<float[2,1,1,1] w = {1, 10}, float[2] b = {7, 9}, float two = {2}, float[2,1,1] each = {2, 4},
    float[1,2,1,1] with_batch = {2, 4}, float[1,1,2] wide = {2, 4}, float[1,1,1,1,1] deep = {2}>"""
CONV = "c = Conv(x, w, b)"
IN, OUT = "float[1,1,2,2] x", "float[1,2,2,2] y"


@pytest.mark.parametrize(("node", "bias"), [
    ("y = Add(c, two)", [9, 11]), ("y = Add(two, c)", [9, 11]), ("y = Add(c, each)", [9, 13]),
    ("y = Add(with_batch, c)", [9, 13]), ("y = Sub(c, each)", [5, 5]),
])  # fmt: skip
def test_bias_takes_the_sum_and_weights_stay(node: str, bias: list[float]) -> None:
    model = graph(f"({IN}) => ({OUT}) {CONSTANTS} {{ {CONV} {node} }}")
    assert rewritten(NAME, model) == 1
    assert nodes(model) == ["y = Conv(x, w, y.bias)"]
    assert constant(model, "y.bias").tolist() == bias


@pytest.mark.parametrize(("signature", "node"), [
    (f"({IN}) => ({OUT})", "y = Add(c, wide)"), (f"({IN}) => (float[1,1,2,2,2] y)", "y = Add(c, deep)"),
    (f"({IN}) => ({OUT})", "y = Sub(two, c)"), (f"({IN}) => ({OUT})", "y = Add(c, c)"),
    (f"({IN}, float s) => ({OUT})", "y = Add(c, s)"), (f"({IN}) => ({OUT}, float[1,2,2,2] c)", "y = Add(c, two)"),
    (f"({IN}) => ({OUT}, float[1,2,2,2] z)", "y = Add(c, two) z = Neg(c)"),
])  # fmt: skip
def test_stays(signature: str, node: str) -> None:
    assert rewritten(NAME, graph(f"{signature} {CONSTANTS} {{ {CONV} {node} }}")) == 0


def test_shared_weights_are_not_copied_for_a_bias() -> None:
    build = GraphBuilder(17, np.float32)
    x, weights, one = build.input([1, 600, 2, 2]), build.constant(np.ones((600, 600, 1, 1))), build.constant(1.0)
    model = ir.from_proto(build.model(*(build.node("Add", build.node("Conv", x, weights), one) for _ in range(2))))
    assert rewritten(NAME, model) == 2
    assert [node.inputs[1].name for node in model.graph] == [weights, weights]


@examples(30)
@given(data=st.data())
def test_outputs_stay(data: st.DataObject) -> None:
    """In float64: the fold is exact but for the last digits."""
    build = GraphBuilder(17)
    value, channels, rank = draw_filter(data, build)
    outputs = []
    for _ in range(data.draw(st.integers(1, 3))):
        order = [value, draw_channel_constant(data, build, channels, rank)]
        value = build.node(data.draw(st.sampled_from(["Add", "Sub"])), *data.draw(st.permutations(order)))
        if not data.draw(st.integers(0, 5)):
            outputs.append(value)
    try:
        proto = build.model(*dict.fromkeys([*outputs, value]))
    except AssertionError:  # the constant cannot be broadcast
        reject()
    assert_same_outputs(NAME, proto, random_feeds(proto), tolerance=1e-9)
