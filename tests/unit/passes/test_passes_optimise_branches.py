# SPDX-License-Identifier: Apache-2.0
"""The branches of an If go through all passes, as models whose inputs are what they capture."""

import numpy as np
import onnx_ir as ir
import pytest
from passes_harness import assert_close, graph, node_line, rewritten, run_onnxruntime

NAME = "optimise-branches"


def branch(model: ir.Model) -> list[str]:
    """Returns the nodes of what the model's last node does where its condition is true."""
    return [node_line(inner) for inner in model.graph[-1].attributes["then_branch"].as_graph()]


def test_what_is_folded_and_merged_in_a_model_is_so_in_a_branch() -> None:
    model = graph(
        """(float[2] x, bool c) => (float[2] y) <float[2] k = {1, 2}, float[2] l = {3, 4}> { v = Abs(x) y = If(c) <
            then_branch = t () => (float[2] a) { s = Add(k, l) r = Relu(v) q = Relu(r) i = Identity(q) a = Mul(i, s) },
            else_branch = e () => (float[2] b) { b = Mul(v, k) }> }"""
    )
    assert rewritten(NAME, model) > 0
    assert not any("Add" in line or "Identity" in line for line in branch(model))
    assert branch(model)[-1] == "a = Mul(q, s)"
    then, otherwise = (model.graph[-1].attributes[name].as_graph() for name in ("then_branch", "else_branch"))
    assert np.array_equal(then.initializers["s"].const_value.numpy(), np.array([4, 6], np.float32))
    assert not otherwise.initializers
    assert otherwise[0].inputs[1] is model.graph.initializers["k"]


@pytest.mark.parametrize("c", [True, False])
@pytest.mark.parametrize("d", [True, False])
def test_inner_branches_and_constants_of_the_same_name_stay_apart(c: bool, d: bool) -> None:
    text = """(float[2,3] x, bool c, bool d) => (float[2,3] y) <float[3] k = {1, 2, 3}> { z = Add(x, k) y = If(c) <
        then_branch = t () => (float[2,3] a) { a = If(d) <
            then_branch = u () => (float[2,3] f) { m = Add(k, k) n = Mul(m, k) i = Identity(z) f = Mul(i, n) },
            else_branch = w () => (float[2,3] g) { g = Neg(z) }> },
        else_branch = e () => (float[2,3] b) { p = Add(k, k) b = Mul(z, p) }> }"""
    model, feeds = graph(text), {"x": np.ones((2, 3), np.float32), "c": np.array(c), "d": np.array(d)}
    before = run_onnxruntime(ir.to_proto(model), feeds)
    assert rewritten(NAME, model) > 0
    assert_close(run_onnxruntime(ir.to_proto(model), feeds), before, 1e-6)


def test_a_branch_with_nothing_to_do_is_the_same_graph() -> None:
    model = graph(
        """(float[2] x, bool c) => (float[2] y) { y = If(c) < then_branch = t () => (float[2] a) { a = Abs(x) },
            else_branch = e () => (float[2] b) { b = Neg(x) }> }"""
    )
    kept = model.graph[0].attributes["then_branch"].as_graph()
    assert rewritten(NAME, model) == 0
    assert model.graph[0].attributes["then_branch"].as_graph() is kept
