# SPDX-License-Identifier: Apache-2.0
"""The few ways to change a graph keep names, uses and order right."""

import numpy as np
import onnx_ir as ir
import pytest
from passes_harness import graph, nodes

from nndeploy.graph.edits import GraphEdits
from nndeploy.graph.invariants import BrokenGraphError, check_graph, check_signature, signature_of

TWO = "(float[2] x) => (float[2] y) { a = Relu(x) y = Neg(a) }"
BRANCHES = """(bool c, float[2] x) => (float[2] y) { a = Relu(x) y = If(c) <
    then_branch = t () => (float[2] p) { q = Neg(a) p = Abs(q) },
    else_branch = e () => (float[2] r) { r = Abs(a) }> }"""


def test_constant_gets_a_name_that_is_free_everywhere() -> None:
    model = graph(BRANCHES)
    edits = GraphEdits(model)
    names = [edits.constant(model.graph, np.zeros(1), name).name for name in ("a", "q", "new", "new")]
    assert names == ["a_1", "q_1", "new", "new_1"]
    check_graph(model)


def test_become_keeps_output_and_place() -> None:
    model = graph(TWO)
    first, last = model.graph
    GraphEdits(model).become(last, "Exp", (model.graph.inputs[0],), (), named_after=first)
    assert nodes(model) == ["a = Relu(x)", "y = Exp(x)"]
    assert last.name == first.name
    check_graph(model)


def test_become_drops_outputs_that_nobody_reads() -> None:
    model = graph("(float[2] x) => (float[2] y) { y, m = Dropout(x) }")
    GraphEdits(model).become(model.graph[0], "Identity", (model.graph.inputs[0],))
    assert nodes(model) == ["y = Identity(x)"]


def test_insert_before_names_node_and_value() -> None:
    model = graph(TWO)
    last = model.graph[1]
    last.name = "last"
    value = GraphEdits(model).insert_before(last, "Abs", (model.graph.inputs[0],), "a")
    assert nodes(model) == ["a = Relu(x)", "a_1 = Abs(x)", "y = Neg(a)"]
    assert value.producer().name == "last/Abs"
    assert value.dtype == ir.DataType.FLOAT


def test_remove_refuses_what_is_read_or_an_output() -> None:
    model = graph(TWO)
    for node in model.graph:
        with pytest.raises(ValueError, match="still"):
            GraphEdits(model).remove(node)


def test_bypass_hands_the_name_of_an_output_on() -> None:
    model = graph(TWO)
    assert GraphEdits(model).bypass(model.graph[1], model.graph[0].outputs[0])
    assert nodes(model) == ["y = Relu(x)"]
    check_graph(model)


def test_bypass_leaves_an_output_that_an_outer_value_or_an_input_would_have_to_be() -> None:
    model = graph(BRANCHES)
    outer, if_node = model.graph
    branch = if_node.attributes["then_branch"].as_graph()
    edits = GraphEdits(model)
    assert not edits.bypass(branch[1], outer.outputs[0])
    assert not edits.bypass(branch[1], model.graph.inputs[1])
    assert edits.bypass(branch[0], outer.outputs[0]), "what is no output may be one from outside"
    check_graph(model)


def test_bypass_of_several_outputs_does_all_or_nothing() -> None:
    model = graph("(float[4] x) => (float[2] c, float[2] d) { a, b = Split<axis = 0>(x) c, d = Split<axis = 0>(x) }")
    first, second = model.graph
    before = nodes(model)
    assert not GraphEdits(model).bypass(second, first.outputs[0], model.graph.inputs[0])
    assert nodes(model) == before
    assert GraphEdits(model).bypass(second, *first.outputs)
    assert nodes(model) == ["c, d = Split<axis=0>(x)"]


def test_signature_sees_names_types_and_order() -> None:
    signature = signature_of(graph("(float[2] x, float[2] z) => (float[2] y) { y = Add(x, z) }"))
    check_signature(graph("(float[2] x, float[2] z) => (float[2] y) { y = Sub(x, z) }"), signature)
    for other in (
        "(float[2] z, float[2] x) => (float[2] y) { y = Add(x, z) }",
        "(double[2] x, double[2] z) => (double[2] y) { y = Add(x, z) }",
        "(float[2] x, float[2] z) => (float[2] w) { w = Add(x, z) }",
        "(float[2] x) => (float[2] y) { y = Neg(x) }",
    ):
        with pytest.raises(BrokenGraphError, match="changed from"):
            check_signature(graph(other), signature)


def test_two_values_of_one_name_are_found() -> None:
    model = graph(TWO)
    model.graph[0].outputs[0].name = "x"
    with pytest.raises(BrokenGraphError, match="two values are named 'x'"):
        check_graph(model)


def test_value_of_a_branch_is_not_known_outside() -> None:
    model = graph(BRANCHES)
    inner = model.graph[1].attributes["then_branch"].as_graph()[0].outputs[0]
    extra = ir.Node("", "Neg", [inner], name="extra")
    extra.outputs[0].name = "extra"
    model.graph.append(extra)
    with pytest.raises(BrokenGraphError, match="value 'q' is read by node 'extra'"):
        check_graph(model)


def test_name_of_a_branch_may_hide_one_outside() -> None:
    model = graph(BRANCHES)
    branch = model.graph[1].attributes["then_branch"].as_graph()
    branch[0].replace_input_with(0, model.graph.inputs[1])
    branch[0].outputs[0].name = "a"
    check_graph(model)
