# SPDX-License-Identifier: Apache-2.0
"""An If whose condition is known is replaced by the branch it takes."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import given
from hypothesis import strategies as st
from passes_harness import assert_close, constants, examples, from_proto, graph, nodes, rewritten, run_reference

NAME = "inline-constant-if"
IF = """{ y = If(c) < then_branch = t () => (float[2] a) { n = Neg(x) a = Abs(n) },
                     else_branch = e () => (float[2] b) { b = Relu(x) }> }"""


@pytest.mark.parametrize(("condition", "want"), [(1, ["n = Neg(x)", "y = Abs(n)"]), (0, ["y = Relu(x)"])])
def test_branch_takes_the_place_of_the_node(condition: int, want: list[str]) -> None:
    model = graph(f"(float[2] x) => (float[2] y) <bool c = {{{condition}}}> {IF}")
    assert rewritten(NAME, model) == 1
    assert nodes(model) == want
    assert all(node.name for node in model.graph)
    onnx.checker.check_model(ir.to_proto(model))


def test_condition_known_only_at_run_time_stays() -> None:
    assert rewritten(NAME, graph(f"(float[2] x, bool c) => (float[2] y) {IF}")) == 0


def test_what_only_the_other_branch_read_is_no_longer_read() -> None:
    model = graph(
        """(float[2] x) => (float[2] y) <bool c = {1}> { r = Relu(x) y = If(c) <
            then_branch = t () => (float[2] a) { a = Abs(x) },
            else_branch = e () => (float[2] b) { b = Neg(r) }> }"""
    )
    assert rewritten(NAME, model) == 1
    assert not model.graph[0].outputs[0].uses()


def test_initializers_of_the_branch_move_and_names_stay_unique() -> None:
    model = graph(
        """(float[2] x) => (float[2] y) <bool c = {1}, float[2] k = {7, 7}> { v = Add(x, k) y = If(c) <
            then_branch = t () => (float[2] a) { m = Add(v, x) a = Neg(m) },
            else_branch = e () => (float[2] b) { b = Neg(v) }> }"""
    )
    branch = model.graph[1].attributes["then_branch"].as_graph()
    inner = ir.Value(name="k", const_value=ir.tensor(np.array([1, 2], np.float32), name="k"))
    inner.dtype, inner.shape = ir.DataType.FLOAT, ir.Shape([2])
    branch.register_initializer(inner)
    branch[0].replace_input_with(1, inner)
    assert rewritten(NAME, model) == 1
    assert nodes(model) == ["v = Add(x, k)", "m = Add(v, k_1)", "y = Neg(m)"]
    assert constants(model)["k_1"] == [1.0, 2.0]


def test_values_that_other_bodies_call_the_same_are_renamed() -> None:
    model = graph(
        """(float[2] x, bool d) => (float[2] y, float[2] z) <bool c = {1}> {
            y = If(c) < then_branch = t () => (float[2] a) { n = Neg(x) a = Abs(n) },
                        else_branch = e () => (float[2] b) { b = Relu(x) }>
            z = If(d) < then_branch = t2 () => (float[2] a2) { n = Abs(x) a2 = Neg(n) },
                        else_branch = e2 () => (float[2] b2) { b2 = Relu(x) }> }"""
    )
    assert rewritten(NAME, model) == 1
    assert nodes(model)[0] == "n_1 = Neg(x)"
    onnx.checker.check_model(ir.to_proto(model))


def test_one_value_for_two_outputs_of_the_graph_stays() -> None:
    model = graph(
        """(float[2] x) => (float[2] y, float[2] z) <bool c = {1}> { y, z = If(c) <
            then_branch = t () => (float[2] a, float[2] a) { a = Abs(x) },
            else_branch = e () => (float[2] b, float[2] b2) { b = Relu(x) b2 = Neg(x) }> }"""
    )
    assert rewritten(NAME, model) == 0


def test_nested_ifs_are_inlined() -> None:
    model = graph(
        """(float[2] x) => (float[2] y) <bool c = {1}> { y = If(c) <
            then_branch = t () => (float[2] a) { a = If(c) <
                then_branch = t2 () => (float[2] a2) { a2 = Abs(x) },
                else_branch = e2 () => (float[2] b2) { b2 = Sqrt(x) }> },
            else_branch = e () => (float[2] b) { b = Relu(x) }> }"""
    )
    assert rewritten(NAME, model) == 2
    assert nodes(model) == ["y = Abs(x)"]


@examples()
@given(
    condition=st.booleans(),
    inner=st.booleans(),
    is_constant=st.tuples(st.booleans(), st.booleans()),
    seed=st.integers(0, 9),
)
def test_outputs_stay(condition: bool, inner: bool, is_constant: tuple[bool, bool], seed: int) -> None:
    inputs = ", ".join(f"bool {name}" for name, constant in zip("cd", is_constant, strict=True) if not constant)
    values = zip("cd", (condition, inner), is_constant, strict=True)
    initializers = ", ".join(f"bool {name} = {{{int(value)}}}" for name, value, constant in values if constant)
    text = f"""<ir_version: 8, opset_import: ["": 17]> g (float[2] x{", " * bool(inputs)}{inputs})
        => (float[2] y, float[2] z) {f"<{initializers}>" if initializers else ""} {{ r = Relu(x) y, z = If(c) <
            then_branch = t () => (float[2] a, float[2] b) {{ a = Neg(r) b = If(d) <
                then_branch = t2 () => (float[2] a2) {{ a2 = Add(a, r) }},
                else_branch = e2 () => (float[2] b2) {{ b2 = Sub(a, r) }}> }},
            else_branch = e () => (float[2] a, float[2] b) {{ b = Abs(x) a = Exp(b) }}> }}"""
    proto = onnx.parser.parse_model(text)
    feeds = {"x": np.random.default_rng(seed).standard_normal(2).astype(np.float32)}
    feeds |= {
        name: np.array(value)
        for name, value, constant in zip("cd", (condition, inner), is_constant, strict=True)
        if not constant
    }
    model = from_proto(proto)
    count = rewritten(NAME, model)
    assert count >= is_constant[0]
    for got, want in zip(run_reference(ir.to_proto(model), feeds), run_reference(proto, feeds), strict=True):
        assert_close(got, want, 0)
