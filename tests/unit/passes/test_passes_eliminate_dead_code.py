# SPDX-License-Identifier: Apache-2.0
"""What nobody reads disappears; what only a body reads does not."""

import onnx
import onnx_ir as ir
from passes_harness import graph, node_line, nodes, rewritten

NAME = "eliminate-dead-code"


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


def test_dead_code_in_a_body_disappears_and_what_it_read_outside_with_it() -> None:
    model = graph(
        """(bool c, float[2] x) => (float[2] y) <float[2] k = {1, 2}> { a = Relu(x) y = If(c) <
            then_branch = t () => (float[2] p) { d = Add(a, k) p = Neg(x) },
            else_branch = e () => (float[2] q) { q = Abs(x) }> }"""
    )
    assert rewritten(NAME, model) == 3
    assert nodes(model) == ["y = If<else_branch={q = Abs(x)}, then_branch={p = Neg(x)}>(c)"]
    assert not model.graph.initializers


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
