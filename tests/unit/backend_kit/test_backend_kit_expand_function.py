# SPDX-License-Identifier: Apache-2.0
"""ExpandFunction puts ONNX's own definition in an operator's place, and outputs do not change."""

from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator
from onnx_ir.passes.common import RemoveUnusedNodesPass

from nndeploy.backend_kit.transforms.expand_function import EXPANDED_DOMAIN, ExpandFunction

OPERATORS = {
    "Gelu": 'Gelu<approximate="tanh">(x)', "Gelu_exact": "Gelu(x)", "Celu": "Celu<alpha=0.5>(x)", "Elu": "Elu(x)",
    "Selu": "Selu(x)", "HardSwish": "HardSwish(x)", "HardSigmoid": "HardSigmoid<alpha=0.3>(x)", "Mish": "Mish(x)",
    "Softplus": "Softplus(x)", "Softsign": "Softsign(x)", "ThresholdedRelu": "ThresholdedRelu<alpha=0.2>(x)",
    "Shrink": "Shrink<lambd=0.3, bias=0.1>(x)", "LogSoftmax": "LogSoftmax<axis=-1>(x)", "Clip": "Clip(x, low, high)",
    "LayerNormalization": "LayerNormalization(x, scale)",
    "MeanVarianceNormalization": "MeanVarianceNormalization<axes=[0, 1]>(x)", "ReduceL2": "ReduceL2(x)",
    "PRelu": "PRelu(x, scale)", "LeakyRelu": "LeakyRelu(x)",
}  # fmt: skip
CONSTANTS = "<float low = {-0.5}, float high = {0.5}, float[4] scale = {0.5, 1.0, 2.0, -1.0}>"


def model_of(call: str, opset: int = 21) -> ir.Model:
    header = f'<ir_version: 10, opset_import: ["" : {opset}]>'
    text = f"{header} g (float[3,4] x) => (float[A,B] y) {CONSTANTS} {{ y = {call} }}"
    return ir.from_proto(onnx.shape_inference.infer_shapes(onnx.parser.parse_model(text)))


def outputs(model: ir.Model, x: Any) -> Any:
    proto = ir.to_proto(model)
    onnx.checker.check_model(proto)
    return ReferenceEvaluator(proto).run(None, {"x": x})[0]


@pytest.mark.parametrize("call", OPERATORS.values(), ids=OPERATORS.keys())
@settings(max_examples=10, deadline=None)
@given(data=st.lists(st.floats(-4, 4, width=32), min_size=12, max_size=12))
def test_outputs_do_not_change(call: str, data: list[float]) -> None:
    x = np.array(data, np.float32).reshape(3, 4)
    model = model_of(call)
    op_type = next(iter(model.graph)).op_type
    before = outputs(model, x)
    assert ExpandFunction()(model, lambda _: True) == 1
    assert op_type not in {node.op_type for node in model.graph}
    np.testing.assert_allclose(outputs(model, x), before, rtol=1e-5, atol=1e-5)


def test_body_is_the_newest_that_the_model_knows() -> None:
    model = model_of("LogSoftmax<axis=-1>(x)", opset=13)  # there is a body of opset 18 as well
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    before = outputs(model, x)
    assert ExpandFunction()(model, lambda _: True) == 1
    np.testing.assert_allclose(outputs(model, x), before, rtol=1e-5)


def test_names_of_outputs_stay_and_no_function_is_left() -> None:
    model = model_of("Mish(x)")
    ExpandFunction()(model, lambda _: True)
    assert [value.name for value in model.graph.outputs] == ["y"]
    assert not model.functions
    assert EXPANDED_DOMAIN not in model.graph.opset_imports


def test_new_values_have_types() -> None:
    model = model_of("Softplus(x)")
    ExpandFunction()(model, lambda _: True)
    assert all(value.type is not None for node in model.graph for value in node.outputs)


def test_only_allowed_nodes_are_touched() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21]> g (float[4] x) => (float[4] z) { y = Mish(x) z = Mish(y) }"""
    model = ir.from_proto(onnx.shape_inference.infer_shapes(onnx.parser.parse_model(text)))
    first, second = model.graph
    assert ExpandFunction()(model, lambda node: node is second) == 1
    assert first in list(model.graph)
    assert [node.op_type for node in model.graph].count("Mish") == 1


def test_two_of_a_kind_with_other_attributes_keep_them_apart() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21]> g (float[4] x) => (float[4] z)
    { y = Celu<alpha=0.5>(x) z = Celu<alpha=3.0>(y) }"""
    model = ir.from_proto(onnx.shape_inference.infer_shapes(onnx.parser.parse_model(text)))
    x = np.array([-2, -1, 0, 1], np.float32)
    before = outputs(model, x)
    assert ExpandFunction()(model, lambda _: True) == 2
    np.testing.assert_allclose(outputs(model, x), before, rtol=1e-5)


@pytest.mark.parametrize("call", ["Exp(x)", "Neg(x)"])
def test_operator_without_a_body_is_left_alone(call: str) -> None:
    model = model_of(call)
    assert ExpandFunction()(model, lambda _: True) == 0


@pytest.mark.parametrize("call", ["Elu<alpha=0.5>(x)", "Selu(x)", "Softplus(x)", "Shrink<lambd=0.3>(x)", "Relu(x)"])
def test_body_of_a_newer_opset_is_taken_where_its_operators_mean_the_same(call: str) -> None:
    model = model_of(call, opset=15)  # ONNX gave these a body for opset 18 and newer
    x = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
    before = outputs(model, x)
    assert ExpandFunction()(model, lambda _: True) == 1
    assert model.graph.opset_imports[""] == 15
    np.testing.assert_allclose(outputs(model, x), before, rtol=1e-5, atol=1e-6)


def test_body_with_an_operator_that_the_model_cannot_have_is_not_taken() -> None:
    model = model_of("Elu(x)", opset=13)  # its body says CastLike, of opset 15
    before = ir.to_proto(model).SerializeToString(deterministic=True)
    assert ExpandFunction()(model, lambda _: True) == 0
    assert ir.to_proto(model).SerializeToString(deterministic=True) == before


def test_body_whose_operators_mean_something_else_here_is_converted() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21]> g (float[4] x) => (uint8[4] y, float s, uint8 z)
    { y, s, z = DynamicQuantizeLinear(x) }"""  # the body is of opset 11, when ReduceMin had no second input
    model = ir.from_proto(onnx.shape_inference.infer_shapes(onnx.parser.parse_model(text)))
    x = np.array([-1.5, 0.25, 2.0, 7.5], np.float32)
    before = ReferenceEvaluator(ir.to_proto(model)).run(None, {"x": x})
    assert ExpandFunction()(model, lambda _: True) == 1
    assert "ReduceMin" in {node.op_type for node in model.graph}
    onnx.checker.check_model(ir.to_proto(model))
    for got, want in zip(ReferenceEvaluator(ir.to_proto(model)).run(None, {"x": x}), before, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


LINEAR_ATTENTION = """<ir_version: 13, opset_import: ["" : 27]>
g (float[1,5,8] q, float[1,5,8] k, float[1,5,8] v) => (float[1,5,8] y, float[1,2,4,4] s)
{ y, s = LinearAttention<q_num_heads=2, kv_num_heads=2, update_rule="linear">(q, k, v) }"""

SCORED_ATTENTION = """<ir_version: 13, opset_import: ["" : 26, "ai.onnx.preview" : 1]>
g (float[1,2,5,4] q, float[1,2,5,4] k, float[1,2,5,4] v) => (float[1,2,5,4] y)
{ y = ai.onnx.preview.FlexAttention<score_mod = mod (float[B,H,L,S] s) => (float[B,H,L,S] t)
  <float bias = {0.5}> { t = Mul(s, bias) }>(q, k, v) }"""

WINDOWED_ATTENTION = """<ir_version: 13, opset_import: ["" : 25]>
g (float[1,2,5,4] q, float[1,2,5,4] k, float[1,2,5,4] v, float[5,5] m) => (float[1,2,5,4] y, float[1,2,5,5] w)
{ y, , , w = Attention<left_window_size=1>(q, k, v, m) }"""


@pytest.mark.parametrize(
    ("text", "left"),
    [(LINEAR_ATTENTION, "Scan"), (SCORED_ATTENTION, "Softmax"), (WINDOWED_ATTENTION, "Softmax")],
    ids=["graph in the body", "graph in an attribute", "an output in the middle that nobody reads"],
)
def test_bodies_that_are_made_for_one_node(text: str, left: str) -> None:
    model = ir.from_proto(onnx.shape_inference.infer_shapes(onnx.parser.parse_model(text)))
    random = np.random.default_rng(0)
    shapes = {value.name: tuple(value.shape or ()) for value in model.graph.inputs}
    given_values = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    before = ReferenceEvaluator(ir.to_proto(model)).run(None, given_values)
    assert ExpandFunction()(model, lambda _: True) == 1
    RemoveUnusedNodesPass()(model)
    assert left in {node.op_type for node in model.graph}
    proto = ir.to_proto(model)
    onnx.checker.check_model(proto)
    for got, want in zip(ReferenceEvaluator(proto).run(None, given_values), before, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_graph_that_reads_values_around_it_keeps_its_node() -> None:
    text = SCORED_ATTENTION.replace("float[1,2,5,4] v)", "float[1,2,5,4] v, float b)").replace("bias)", "b)")
    model = ir.from_proto(onnx.parser.parse_model(text))
    assert ExpandFunction()(model, lambda _: True) == 0


def test_model_functions_of_the_user_stay() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "local" : 1]> g (float[4] x) => (float[4] z)
    { y = local.twice(x) z = Mish(y) }
    <domain: "local", opset_import: ["" : 21]> twice (a) => (b) { b = Add(a, a) }"""
    model = ir.from_proto(onnx.shape_inference.infer_shapes(onnx.parser.parse_model(text)))
    assert ExpandFunction()(model, lambda node: node.op_type == "Mish") == 1
    assert [function.name for function in model.functions.values()] == ["twice"]
    np.testing.assert_allclose(outputs(model, np.ones(4, np.float32)), 2 * np.tanh(np.log1p(np.exp(2))), rtol=1e-5)
