# SPDX-License-Identifier: Apache-2.0
"""Sizes that follow from what was folded are written into the values."""

import numpy as np
import onnx
import onnx_ir as ir
from hypothesis import given
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator
from passes_harness import GraphBuilder, examples, graph, nodes, random_feeds, rewritten

NAME = "infer-shapes"


def _forget(model: ir.Model, *names: str) -> None:
    for node in model.graph:
        for output in node.outputs:
            if output.name in names:
                output.shape = None


def test_unknown_sizes_are_learnt_along_a_chain() -> None:
    model = graph("(float[2,6] x) => (float[3,4] y) <int64[2] s = {3, 4}> { a = Reshape(x, s) b = Relu(a) y = Neg(b) }")
    _forget(model, "a", "b")
    assert rewritten(NAME, model) == 2
    assert [output.shape for node in model.graph for output in node.outputs] == [[3, 4], [3, 4], [3, 4]]


def test_known_part_of_a_shape_is_learnt_and_names_of_sizes_stay() -> None:
    model = graph("(float[N,6] x) => (float[N,6] y) { a = Relu(x) y = Neg(a) }")
    (a,) = model.graph[0].outputs
    a.shape = ir.Shape(["M", None])
    assert rewritten(NAME, model) == 1
    assert a.shape == ["M", 6]


def test_what_contradicts_the_inference_stays() -> None:
    model = graph("(float[N,6] x) => (float[N,6] y) { a = Relu(x) y = Neg(a) }")
    (a,) = model.graph[0].outputs
    for wrong in (ir.Shape([None, 7]), ir.Shape([None])):
        a.shape = wrong
        assert rewritten(NAME, model) == 0
        assert a.shape == wrong


def test_shape_of_an_output_of_the_graph_is_its_interface() -> None:
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[2,6] x) => (float[A,B] y) { y = Relu(x) }"""
    model = ir.from_proto(onnx.parser.parse_model(text))
    assert rewritten(NAME, model) == 0
    assert model.graph.outputs[0].shape == ["A", "B"]


def test_length_of_a_huge_range_is_learnt_without_making_it() -> None:
    model = graph("""(float[2] x) => (float y) <int64 a = {0}, int64 b = {68719476736}, int64 d = {1}>
        { r = Range(a, b, d) c = Cast<to = 1>(r) y = ReduceSum<keepdims = 0>(c) }""", data_prop=False)  # fmt: skip
    _forget(model, "r", "c")
    assert rewritten(NAME, model) == 2
    assert model.graph[0].outputs[0].shape == [68719476736]


def test_branches_of_if_are_entered() -> None:
    model = graph("""(bool c, float[2,3] x) => (float[2,3] y) { y = If(c) <
            then_branch = t () => (float[2,3] a) { r = Relu(x) a = Neg(r) },
            else_branch = e () => (float[2,3] b) { b = Neg(x) }> }""")  # fmt: skip
    relu = model.graph[0].attributes["then_branch"].as_graph()[0]
    relu.outputs[0].shape = None
    assert rewritten(NAME, model) == 1
    assert relu.outputs[0].shape == [2, 3]


@examples()
@given(data=st.data())
def test_learnt_sizes_are_the_sizes_at_run_time(data: st.DataObject) -> None:
    build = GraphBuilder(17, np.float32)
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=2, max_size=3))
    value, made = build.input([f"D{axis}" if axis == 0 else size for axis, size in enumerate(sizes)]), []
    for _ in range(data.draw(st.integers(1, 4))):
        match data.draw(st.sampled_from(["relu", "transpose", "unsqueeze", "reshape", "concat", "shape"])):
            case "relu":
                value = build.node("Relu", value)
            case "transpose":
                value = build.node("Transpose", value)
            case "unsqueeze":
                value = build.with_axes("Unsqueeze", value, [0])
            case "reshape":
                value = build.node("Reshape", value, build.constant([1, -1], np.int64))
            case "concat":
                value = build.node("Concat", value, value, axis=0)
            case "shape":
                value = build.node("Expand", value, build.node("Shape", value))
        made.append(value)
    proto = build.model(*made)
    model = ir.from_proto(proto)
    _forget(model, *made)
    body = onnx.helper.make_graph([], "unused", [], [])
    assert not body.node
    for output in list(model.graph.outputs):
        model.graph.outputs.remove(output)
    rewritten(NAME, model)
    feeds = random_feeds(proto, dims={"D0": sizes[0]})
    arrays = dict(zip(made, ReferenceEvaluator(proto).run(None, feeds), strict=True))
    known = {output.name: output.shape for node in model.graph for output in node.outputs}
    assert nodes(model)
    for name, array in arrays.items():
        if known[name] is not None:
            pairs = zip(known[name], array.shape, strict=True)
            assert all(size == actual for size, actual in pairs if isinstance(size, int))


def test_results_of_branches_are_learnt() -> None:
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[2,6] x, bool c) => (float[2,6] y) { q = If(c) <
        then_branch = t () => (float a) { r = Abs(x) a = Relu(r) }, else_branch = e () => (float b) { b = Neg(x) }>
        y = Exp(q) }"""
    model = ir.from_proto(onnx.parser.parse_model(text))
    branches = [model.graph[0].attributes[name].as_graph() for name in ("then_branch", "else_branch")]
    for branch in branches:
        for node in branch:
            node.outputs[0].shape = None
    assert rewritten(NAME, model) == 3
    assert [branch.outputs[0].shape for branch in branches] == [[2, 6], [2, 6]]


def test_a_node_without_an_output_that_it_must_have_is_left_alone() -> None:
    model = graph("(float[2,6] x) => (float[2,k] y) <int64[1] k = {3}> { v, i = TopK(x, k) y = Neg(v) }")
    top = model.graph[0]
    top.outputs[0].shape = None
    top.outputs[1].name = ""
    assert rewritten(NAME, model) == 0
