# SPDX-License-Identifier: Apache-2.0
"""A sum after a filter goes into its bias, a product into its weights."""

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from passes_filters import draw_channel_constant, draw_filter
from passes_harness import GraphBuilder, assert_same_outputs, constant, examples, graph, nodes, random_feeds, rewritten

BIAS, SCALE = "fuse-conv-bias", "fuse-conv-scale"
CONSTANTS = """<float[2,1,1,1] w = {1, 10}, float[2] b = {7, 9}, float two = {2}, float[2,1,1] each = {2, 4},
    float[1,2,1,1] with_batch = {2, 4}, float[1,1,2] wide = {2, 4}, float[1,1,1,1,1] deep = {2}, float nil = {0},
    float[2,2,1,1] rows = {1, 2, 3, 4}>"""
IN, OUT = "float[1,1,2,2] x", "float[1,2,2,2] y"


def conv(node: str, inputs: str = IN, outputs: str = OUT) -> ir.Model:
    return graph(f"({inputs}) => ({outputs}) {CONSTANTS} {{ c = Conv(x, w, b) {node} }}")


@pytest.mark.parametrize(("name", "node", "weights", "bias"), [
    (BIAS, "y = Add(c, two)", [1, 10], [9, 11]), (BIAS, "y = Add(two, c)", [1, 10], [9, 11]),
    (BIAS, "y = Add(c, each)", [1, 10], [9, 13]), (BIAS, "y = Add(with_batch, c)", [1, 10], [9, 13]),
    (BIAS, "y = Sub(c, each)", [1, 10], [5, 5]),
    (SCALE, "y = Mul(c, two)", [2, 20], [14, 18]), (SCALE, "y = Mul(two, c)", [2, 20], [14, 18]),
    (SCALE, "y = Mul(c, each)", [2, 40], [14, 36]), (SCALE, "y = Mul(with_batch, c)", [2, 40], [14, 36]),
    (SCALE, "y = Div(c, each)", [0.5, 2.5], [3.5, 2.25]), (SCALE, "y = Neg(c)", [-1, -10], [-7, -9]),
])  # fmt: skip
def test_bias_takes_the_sum_and_weights_the_scale(
    name: str, node: str, weights: list[float], bias: list[float]
) -> None:
    model = conv(node)
    assert rewritten(name, model) == 1
    assert nodes(model) == [f"y = Conv(x, {'w' if name == BIAS else 'y.weight'}, y.bias)"]
    assert constant(model, "w" if name == BIAS else "y.weight").reshape(-1).tolist() == weights
    assert constant(model, "y.bias").tolist() == bias


@pytest.mark.parametrize(("name", "op"), [(BIAS, "Add"), (SCALE, "Mul")])
@pytest.mark.parametrize(("node", "inputs", "outputs"), [
    ("y = {op}(c, wide)", IN, OUT), ("y = {op}(c, deep)", IN, "float[1,1,2,2,2] y"), ("y = {op}(c, c)", IN, OUT),
    ("y = {op}(c, s)", f"{IN}, float s", OUT), ("y = {op}(c, two)", IN, f"{OUT}, float[1,2,2,2] c"),
    ("y = {op}(c, two) z = Neg(c)", IN, f"{OUT}, float[1,2,2,2] z"), ("y = {op}(c, rows)", IN, "float[2,2,2,2] y"),
    ("y = Sub(two, c)", IN, OUT), ("y = Div(two, c)", IN, OUT), ("y = Div(c, nil)", IN, OUT),
])  # fmt: skip
def test_stays(name: str, op: str, node: str, inputs: str, outputs: str) -> None:
    assert rewritten(name, conv(node.format(op=op), inputs, outputs)) == 0


def test_shared_weights_are_not_copied_for_a_bias() -> None:
    build = GraphBuilder(17, np.float32)
    x, weights, one = build.input([1, 600, 2, 2]), build.constant(np.ones((600, 600, 1, 1))), build.constant(1.0)
    model = ir.from_proto(build.model(*(build.node("Add", build.node("Conv", x, weights), one) for _ in range(2))))
    assert rewritten(BIAS, model) == 2
    assert [node.inputs[1].name for node in model.graph] == [weights, weights]


@pytest.mark.parametrize(("name", "operators"), [(BIAS, ["Add", "Sub"]), (SCALE, ["Mul", "Div", "Neg"])])
@examples(30)
@given(data=st.data())
def test_outputs_stay(name: str, operators: list[str], data: st.DataObject) -> None:
    """In float64: the fold is exact but for the last digits."""
    build = GraphBuilder(17)
    value, channels, rank = draw_filter(data, build)
    outputs = []
    for _ in range(data.draw(st.integers(1, 3))):
        op = data.draw(st.sampled_from(operators))
        order = [value] if op == "Neg" else [value, draw_channel_constant(data, build, channels, rank)]
        value = build.node(op, *(data.draw(st.permutations(order)) if name == BIAS else order))
        if not data.draw(st.integers(0, 5)):
            outputs.append(value)
    try:
        proto = build.model(*dict.fromkeys([*outputs, value]))
    except AssertionError:  # the constant cannot be broadcast
        reject()
    assert_same_outputs(name, proto, random_feeds(proto), tolerance=1e-9)
