# SPDX-License-Identifier: Apache-2.0
"""What follows an If whose branches give other ranks moves into the branches."""

import numpy as np
import onnx_ir as ir
import pytest
from passes_harness import assert_close, graph, node_line, nodes, rewritten, run_onnxruntime

from nndeploy.passes import optimise

NAME = "move-into-branches"
SQUEEZED = """(float[2,n] x, float[2] k) => (float[2] y, float[2] z) <int64[1] one = {1}, int64 last = {1}> {
    v = Abs(x) s = Shape(v) e = Gather(s, one) l = Unsqueeze(last, zero) d = Equal(e, l) q = If(d) <
        then_branch = t () => (float[2] a) { a = Squeeze(v, one) },
        else_branch = u () => (float[2,n] b) { b = Identity(v) }>
    z = Neg(k) w = Relu(q) p = ReduceSum<keepdims=0>(w, zero) r = Add(p, k) y = Mul(r, z) }"""


def squeezed() -> ir.Model:
    """Returns a model that drops an axis of size one, and goes on with what it gets."""
    return graph(SQUEEZED.replace("int64 last", "int64[1] zero = {0}, int64 last"))


def test_what_depends_on_the_choice_stands_in_both_branches() -> None:
    model = squeezed()
    assert rewritten(NAME, model) == 1
    assert [line.split("<")[0] for line in nodes(model)][-2:] == ["z = Neg(k)", "y = If"]
    for name, first in (("then_branch", "Squeeze"), ("else_branch", "Identity")):
        inside = [node.op_type for node in model.graph[-1].attributes[name].as_graph()]
        assert inside == [first, "Relu", "ReduceSum", "Add", "Mul"]
    assert [output.name for output in model.graph.outputs] == ["y", "z"]


@pytest.mark.parametrize("size", [1, 2])
def test_both_ways_compute_what_they_did(size: int) -> None:
    model = squeezed()
    feeds = {"x": np.arange(2 * size, dtype=np.float32).reshape(2, size) - 1, "k": np.ones(2, np.float32)}
    before = run_onnxruntime(ir.to_proto(model), feeds)
    optimise(model)
    assert_close(run_onnxruntime(ir.to_proto(model), feeds), before, 1e-6)


def test_a_long_rest_stays_where_it_is() -> None:
    rest = "".join(f"w{i + 1} = Relu(w{i}) " for i in range(300))
    text = f"""(float[2,1] x, bool c) => (float[2,m] y) <int64[1] one = {{1}}> {{ w0 = If(c) <
        then_branch = t () => (float[2] a) {{ a = Squeeze(x, one) }}, else_branch = u () => (float[2,1] b)
        {{ b = Abs(x) }}> {rest} y = Expand(w300, s) }}"""
    assert rewritten(NAME, graph(text.replace("one = {1}>", "one = {1}, int64[2] s = {2, 2}>"))) == 0


def test_inner_bodies_move_too() -> None:
    text = """(float[2,1] x, bool c, bool d) => (float[m] y) <int64[1] one = {1}, int64[1] flat = {-1}> { q = If(c) <
        then_branch = t () => (float[2] a) { a = Squeeze(x, one) }, else_branch = u () => (float[2,1] b)
        { b = Neg(x) }> r = If(d) < then_branch = f () => (float[m] g) { g = Reshape(q, flat) },
        else_branch = h () => (float[m] i) { j = Abs(q) i = Reshape(j, flat) }> y = Relu(r) }"""
    model = graph(text)
    for c in (True, False):
        for d in (True, False):
            feeds = {"x": np.array([[1], [-2]], np.float32), "c": np.array(c), "d": np.array(d)}
            before = run_onnxruntime(ir.to_proto(graph(text)), feeds)
            assert_close(run_onnxruntime(ir.to_proto(model), feeds), before, 1e-6)
    assert rewritten(NAME, model) == 1
    assert [node_line(node).split("<")[0] for node in model.graph] == ["y = If"]
    for c in (True, False):
        for d in (True, False):
            feeds = {"x": np.array([[1], [-2]], np.float32), "c": np.array(c), "d": np.array(d)}
            before = run_onnxruntime(ir.to_proto(graph(text)), feeds)
            assert_close(run_onnxruntime(ir.to_proto(model), feeds), before, 1e-6)
