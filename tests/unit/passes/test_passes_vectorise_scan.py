# SPDX-License-Identifier: Apache-2.0
"""A Scan that is a map over rows becomes the operators of its body on all rows; whatever else it does, it stays."""

import onnx_ir as ir
import pytest
from passes_harness import assert_same_outputs, graph, nodes, random_feeds, rewritten

from nndeploy.passes.vectorise_scan import MAX_REDUCED

NAME = "vectorise-scan"
HEAD = "(float[N,5] x, float[7,5] p) => (float[7,N] y)"
DISTANCES = """{ s, d = Scan<num_scan_inputs = 1, body = b (float[N,5] before, float[5] row) =>
    (float[N,5] after, float[N] out) <int64[1] last = {1}> {
    after = Identity(before) c = Sub(before, row) q = %s(c, last) out = Identity(q) }>(x, p) y = Relu(d) }"""


def test_distances_to_many_points_are_made_at_once() -> None:
    model = graph(f"{HEAD} {DISTANCES % 'ReduceSum<keepdims = 0>'}")
    assert rewritten(NAME, model) == 1
    assert nodes(model) == [
        "p.rows = Unsqueeze(p, p.axes)", "c_1 = Sub(x, p.rows)", "q_1 = ReduceSum<keepdims=0>(c_1, q.axes)",
        "y = Relu(q_1)",
    ]  # fmt: skip
    assert [str(node.outputs[0].shape) for node in model.graph][:3] == ["[7,1,5]", "[7,N,5]", "[7,N]"]


@pytest.mark.parametrize("body", [
    "c = Sub(before, row) out = ReduceSumSquare<axes = [1], keepdims = 0>(c)",
    "c = Mul(row, before) d = Abs(c) out = ReduceMax<axes = [-1], keepdims = 0>(d)",
    "t = Tanh(row) e = Exp(before) c = Div(e, t) d = Pow(c, two) out = ReduceL1<axes = [-1], keepdims = 0>(d)",
    "k = ReduceMean(row) f = ReduceMean<axes = [1], keepdims = 0>(before) out = Sub(f, k)",
    "c = Add(outside, row) d = Add(c, before) out = ReduceMin<axes = [1], keepdims = 0>(d)",
])  # fmt: skip
def test_outputs_stay(body: str) -> None:
    model = graph(
        f"""(double[N,5] x, double[7,5] p) => (double[7,N] y, double[N,5] z) <double two = {{2}}> {{
        outside = Relu(x)
        s, d = Scan<num_scan_inputs = 1, body = b (double[N,5] before, double[5] row) =>
        (double[N,5] after, double[N] out) {{ after = Identity(before) {body} }}>(x, p) y = Neg(d) z = Neg(s) }}"""
    )
    proto = ir.to_proto(model)
    assert assert_same_outputs(NAME, proto, random_feeds(proto, dims={"N": 3}), tolerance=1e-12) == 1


def test_several_inputs_without_states() -> None:
    proto = ir.to_proto(graph("""(double[4,3] p, double[4] q) => (double[4,3] y) {
        d = Scan<num_scan_inputs = 2, body = b (double[3] u, double v) => (double[3] out) { out = Sub(u, v) }>(p, q)
        y = Neg(d) }"""))  # fmt: skip
    assert assert_same_outputs(NAME, proto, random_feeds(proto), tolerance=0) == 1


@pytest.mark.parametrize("attribute", ["scan_input_axes = [1]", "scan_input_directions = [1]"])
def test_stays_where_it_is_scanned_another_way(attribute: str) -> None:
    text = f"{HEAD} {DISTANCES % 'ReduceSum<keepdims = 0>'}".replace("num_scan", f"{attribute}, num_scan")
    assert rewritten(NAME, graph(text)) == 0


@pytest.mark.parametrize(("size", "count"), [(MAX_REDUCED, 1), (MAX_REDUCED + 1, 0)])
def test_stays_where_all_at_once_would_take_far_more_memory(size: int, count: int) -> None:
    text = f"{HEAD} {DISTANCES % 'ReduceSum<keepdims = 0>'}".replace("5]", f"{size}]")
    assert rewritten(NAME, graph(text)) == count


def test_reductions_one_after_the_other_count_together() -> None:
    text = """(float[3,9,8] x, float[7,8] p) => (float[7,3] y) <int64[1] last = {-1}> {
        s, d = Scan<num_scan_inputs = 1, body = b (float[3,9,8] before, float[8] row) =>
        (float[3,9,8] after, float[3] out) { after = Identity(before) c = Sub(before, row)
        q = ReduceSum<keepdims = 0>(c, last) out = ReduceSum<keepdims = 0>(q, last) }>(x, p) y = Relu(d) }"""
    assert rewritten(NAME, graph(text)) == 0
    assert rewritten(NAME, graph(text.replace("[3,9,8]", "[3,8,8]"))) == 1


def test_stays_where_an_output_is_one_of_the_graph() -> None:
    text = f"{HEAD} {DISTANCES % 'ReduceSum<keepdims = 0>'}".replace("s, d =", "s, y =").replace("y = Relu(d)", "")
    assert rewritten(NAME, graph(text)) == 0
