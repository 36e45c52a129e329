# SPDX-License-Identifier: Apache-2.0
"""What is computed twice is computed once, where it has to be the same."""

import onnx
import onnx_ir as ir
import pytest
from hypothesis import given
from hypothesis import strategies as st
from passes_harness import GraphBuilder, assert_same_outputs, examples, graph, nodes, random_feeds, rewritten

NAME = "eliminate-common-subexpressions"


def test_second_of_two_equal_nodes_disappears() -> None:
    model = graph("(float[2] x) => (float[2] y) { a = Relu(x) b = Relu(x) y = Add(a, b) }")
    assert rewritten(NAME, model) == 1
    assert nodes(model) == ["a = Relu(x)", "y = Add(a, a)"]


def test_chains_collapse_in_one_run() -> None:
    model = graph("(float[2] x) => (float[2] y) { a = Relu(x) b = Relu(x) c = Neg(a) d = Neg(b) y = Add(c, d) }")
    assert rewritten(NAME, model) == 2
    assert nodes(model) == ["a = Relu(x)", "c = Neg(a)", "y = Add(c, c)"]


def test_equal_attributes_are_equal_in_every_type() -> None:
    attributes = 'axis = 1, direction = "x", ints = [1, 2], floats = [0.5, 1.0], number = 0.1, words = ["a", "b"]'
    body = f"{{ a = ai.onnx.ml.Mystery<{attributes}>(x) b = ai.onnx.ml.Mystery<{attributes}>(x) y = Add(a, b) }}"
    model = ir.from_proto(
        onnx.parser.parse_model(
            f'<ir_version: 8, opset_import: ["": 17, "ai.onnx.ml": 3]> g (float[2] x) => (float[2] y) {body}'
        )
    )
    assert rewritten(NAME, model) == 1


@pytest.mark.parametrize(
    "pair",
    [
        "a = LeakyRelu<alpha = 0.1>(x) b = LeakyRelu<alpha = 0.2>(x)",
        "a = LeakyRelu<alpha = 0.0>(x) b = LeakyRelu<alpha = -0.0>(x)",
        "a = Sub(x, z) b = Sub(z, x)",
        "a = RandomNormalLike(x) b = RandomNormalLike(x)",
        "a = RandomUniformLike(x) b = RandomUniformLike(x)",
        "a = Bernoulli(x) b = Bernoulli(x)",
        "a = Dropout(x, half, yes) b = Dropout(x, half, yes)",
        "a = com.microsoft.Gelu(x) b = com.microsoft.Gelu(x)",
    ],
)
def test_what_may_differ_stays(pair: str) -> None:
    model = graph(
        f"(float[2] x, float[2] z) => (float[2] y) <float half = {{0.5}}, bool yes = {{1}}> {{ {pair} y = Add(a, b) }}",
        domains=', "com.microsoft": 1',
    )
    assert rewritten(NAME, model) == 0


def test_nodes_with_bodies_stay() -> None:
    branches = """then_branch = t{0} () => (float[2] p{0}) {{ p{0} = Neg(x) }},
        else_branch = e{0} () => (float[2] q{0}) {{ q{0} = Abs(x) }}"""
    both = f"a = If(c) <{branches.format(0)}> b = If(c) <{branches.format(1)}>"
    model = graph(f"(float[2] x, bool c) => (float[2] y) {{ {both} y = Add(a, b) }}")
    assert rewritten(NAME, model) == 0


def test_functions_of_the_model_may_be_random() -> None:
    proto = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17, "ai.onnx.ml": 3]> g (float[2] x) => (float[2] y)
        { a = ai.onnx.ml.Noise(x) b = ai.onnx.ml.Noise(x) y = Add(a, b) }"""
    )
    function = '<domain: "ai.onnx.ml", opset_import: ["": 17]> Noise (v) => (w) { w = RandomNormalLike(v) }'
    proto.functions.append(onnx.parser.parse_function(function))
    assert rewritten(NAME, ir.from_proto(proto)) == 0


def test_output_of_the_graph_keeps_its_name() -> None:
    model = graph("(float[2] x) => (float[2] y, float[2] z) { a = Relu(x) y = Neg(a) b = Relu(x) z = Identity(b) }")
    assert rewritten(NAME, model) == 1
    model = graph("(float[2] x) => (float[2] y, float[2] z) { a = Relu(x) y = Neg(a) z = Relu(x) }")
    assert rewritten(NAME, model) == 1
    assert nodes(model) == ["z = Relu(x)", "y = Neg(z)"]


def test_two_outputs_of_the_graph_stay_two() -> None:
    model = graph("(float[2] x) => (float[2] y, float[2] z) { y = Relu(x) z = Relu(x) }")
    assert rewritten(NAME, model) == 0


def test_outputs_that_are_asked_for_have_to_agree() -> None:
    body = "{ a, m = Dropout(x) b, n = Dropout(x) k = Cast<to = 1>(n) y = Sum(a, b, k) }"
    proto = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) {body}')
    assert rewritten(NAME, ir.from_proto(proto)) == 1
    proto.graph.node[0].output[1] = ""
    assert rewritten(NAME, ir.from_proto(proto)) == 0


def test_reader_in_a_body_follows() -> None:
    model = graph(
        """(float[2] x, bool c) => (float[2] y, float[2] z) { a = Relu(x) b = Relu(x) z = Neg(a)
        y = If(c) < then_branch = t () => (float[2] p) { p = Neg(b) },
                    else_branch = e () => (float[2] q) { q = Abs(b) }> }"""
    )
    assert rewritten(NAME, model) == 1
    assert nodes(model)[-1] == "y = If<else_branch={q = Abs(a)}, then_branch={p = Neg(a)}>(c)"


@examples()
@given(data=st.data())
def test_outputs_stay(data: st.DataObject) -> None:
    """Random graphs over few operators, so that many nodes are equal."""
    build = GraphBuilder()
    pool = [build.input([2, 3]), build.input([2, 3])]
    outputs = []
    for _ in range(data.draw(st.integers(2, 10))):
        first, second = data.draw(st.sampled_from(pool)), data.draw(st.sampled_from(pool))
        match data.draw(st.sampled_from(["Neg", "Abs", "Add", "Sub", "LeakyRelu", "Split"])):
            case "Add" | "Sub" as op:
                value = build.node(op, first, second)
            case "LeakyRelu":
                value = build.node("LeakyRelu", first, alpha=data.draw(st.sampled_from([0.1, 0.2])))
            case "Split":
                value = build.node("Split", first, outputs=2, axis=0)
                value = build.node("Concat", f"v{int(value[1:]) + 1}", value, axis=0)
            case op:
                value = build.node(op, first)
        pool.append(value)
        if not data.draw(st.integers(0, 3)):
            outputs.append(value)
    proto = build.model(*dict.fromkeys([*outputs, pool[-1]]))
    assert_same_outputs(NAME, proto, random_feeds(proto), tolerance=0)
