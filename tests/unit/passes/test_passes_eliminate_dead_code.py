# SPDX-License-Identifier: Apache-2.0
"""What nobody reads disappears; what only a body reads does not."""

import onnx
import onnx_ir as ir
from hypothesis import given
from hypothesis import strategies as st
from passes_harness import GraphBuilder, assert_same_outputs, examples, graph, node_line, nodes, random_feeds, rewritten

NAME = "eliminate-dead-code"


def test_chains_that_nobody_reads_disappear_in_one_run() -> None:
    model = graph("(float[2] x) => (float[2] y) { a = Relu(x) b = Neg(a) c = Abs(b) y = Exp(x) }")
    assert rewritten(NAME, model) == 3
    assert nodes(model) == ["y = Exp(x)"]


def test_unread_initializers_disappear_and_inputs_stay() -> None:
    model = graph(
        "(float[2] x, float[2] z) => (float[2] y) <float[2] c = {1, 2}, float[2] d = {1, 2}> { y = Add(x, d) }"
    )
    assert rewritten(NAME, model) == 1
    assert list(model.graph.initializers) == ["d"]
    assert [value.name for value in model.graph.inputs] == ["x", "z"]


def test_initializer_that_a_caller_may_override_stays() -> None:
    text = (
        """<ir_version: 8, opset_import: ["": 17]> g (float[2] x, float[2] a = {1, 2}) => (float[2] y) { y = Neg(x) }"""
    )
    model = ir.from_proto(onnx.parser.parse_model(text))
    assert rewritten(NAME, model) == 0
    assert list(model.graph.initializers) == ["a"]


def test_node_with_one_output_that_is_read_stays() -> None:
    model = graph("(float[4] x) => (float[2] y) { a, b = Split<axis = 0>(x) y = Neg(b) }")
    assert rewritten(NAME, model) == 0


def test_value_that_only_a_body_reads_is_read() -> None:
    model = graph(
        """(bool c, float[2] x) => (float[2] y) <float[2] k = {1, 2}> { a = Relu(x) y = If(c) <
            then_branch = t () => (float[2] p) { p = Neg(a) },
            else_branch = e () => (float[2] q) { q = Add(x, k) }> }"""
    )
    assert rewritten(NAME, model) == 0


def test_dead_code_in_a_body_disappears_and_what_it_read_outside_with_it() -> None:
    model = graph(
        """(bool c, float[2] x) => (float[2] y) <float[2] k = {1, 2}> { a = Relu(x) y = If(c) <
            then_branch = t () => (float[2] p) { d = Add(a, k) p = Neg(x) },
            else_branch = e () => (float[2] q) { q = Abs(x) }> }"""
    )
    assert rewritten(NAME, model) == 3
    assert nodes(model) == ["y = If<else_branch={q = Abs(x)}, then_branch={p = Neg(x)}>(c)"]
    assert not model.graph.initializers


def test_unread_node_with_a_body_lets_go_of_what_the_body_read() -> None:
    model = graph(
        """(bool c, float[2] x) => (float[2] y) { a = Relu(x) z = If(c) <
            then_branch = t () => (float[2] p) { p = If(c) <
                then_branch = t2 () => (float[2] p2) { p2 = Neg(a) },
                else_branch = e2 () => (float[2] q2) { q2 = Abs(a) }> },
            else_branch = e () => (float[2] q) { q = Abs(a) }> y = Neg(x) }"""
    )
    assert rewritten(NAME, model) == 2
    assert nodes(model) == ["y = Neg(x)"]


def test_body_of_a_loop_keeps_its_inputs_and_outputs() -> None:
    model = graph(
        """(float[2] x, int64 n, bool t) => (float[2] y) { y = Loop(n, t, x) <
            body = b (int64 i, bool k, float[2] v) => (bool k2, float[2] v2)
            { d = Neg(v) k2 = Identity(k) v2 = Abs(v) }> }"""
    )
    assert rewritten(NAME, model) == 1
    body = model.graph[0].attributes["body"].as_graph()
    assert [node_line(node) for node in body] == ["k2 = Identity(k)", "v2 = Abs(v)"]
    assert len(body.inputs) == 3


def test_unread_initializer_of_a_body_disappears() -> None:
    model = graph(
        """(bool c, float[2] x) => (float[2] y) { y = If(c) <
            then_branch = t () => (float[2] p) <float[2] k = {1, 2}> { p = Neg(x) },
            else_branch = e () => (float[2] q) { q = Abs(x) }> }"""
    )
    assert rewritten(NAME, model) == 1


def test_functions_that_nobody_calls_disappear() -> None:
    proto = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17, "f": 1]> g (float[2] x) => (float[2] y) { y = f.outer(x) }
        <domain: "f", opset_import: ["": 17, "f": 1]> outer (v) => (w) { w = f.inner(v) }
        <domain: "f", opset_import: ["": 17]> inner (v) => (w) { w = Neg(v) }
        <domain: "f", opset_import: ["": 17, "f": 1]> unused (v) => (w) { w = f.inner(v) }"""
    )
    model = ir.from_proto(proto)
    assert rewritten(NAME, model) == 1
    assert [name for _, name, _ in model.functions] == ["outer", "inner"]


@examples()
@given(data=st.data())
def test_outputs_stay(data: st.DataObject) -> None:
    build = GraphBuilder()
    pool = [build.input([2]), build.input([2]), build.constant([1, 2]), build.constant([3, 4])]
    for _ in range(data.draw(st.integers(1, 10))):
        first, second = data.draw(st.sampled_from(pool)), data.draw(st.sampled_from(pool))
        pool.append(build.node("Add", first, second) if data.draw(st.booleans()) else build.node("Neg", first))
    outputs = data.draw(st.lists(st.sampled_from(pool[4:]), min_size=1, max_size=2, unique=True))
    proto = build.model(*outputs)
    read = set(outputs)
    for node in reversed(proto.graph.node):
        read |= set(node.input) if node.output[0] in read else set()
    unread = [name for name in pool[2:] if name not in read]
    assert assert_same_outputs(NAME, proto, random_feeds(proto), tolerance=0) == len(unread)
