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

from nndeploy.transforms.expand_function import EXPANDED_DOMAIN, ExpandFunction

OPERATORS = {
    "Gelu": 'Gelu<approximate="tanh">(x)',
    "Gelu_exact": "Gelu(x)",
    "Celu": "Celu<alpha=0.5>(x)",
    "Elu": "Elu(x)",
    "Selu": "Selu(x)",
    "HardSwish": "HardSwish(x)",
    "HardSigmoid": "HardSigmoid<alpha=0.3>(x)",
    "Mish": "Mish(x)",
    "Softplus": "Softplus(x)",
    "Softsign": "Softsign(x)",
    "ThresholdedRelu": "ThresholdedRelu<alpha=0.2>(x)",
    "Shrink": "Shrink<lambd=0.3, bias=0.1>(x)",
    "LogSoftmax": "LogSoftmax<axis=-1>(x)",
    "Clip": "Clip(x, low, high)",
    "LayerNormalization": "LayerNormalization(x, scale)",
    "MeanVarianceNormalization": "MeanVarianceNormalization<axes=[0, 1]>(x)",
    "ReduceL2": "ReduceL2(x)",
    "PRelu": "PRelu(x, scale)",
    "LeakyRelu": "LeakyRelu(x)",
}
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


def test_body_whose_operators_mean_something_else_here_is_not_taken() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21]> g (float[4] x) => (uint8[4] y, float s, uint8 z)
    { y, s, z = DynamicQuantizeLinear(x) }"""  # the body is of opset 11, when ReduceMin had no second input
    model = ir.from_proto(onnx.shape_inference.infer_shapes(onnx.parser.parse_model(text)))
    before = ir.to_proto(model).SerializeToString(deterministic=True)
    assert ExpandFunction()(model, lambda _: True) == 0
    assert ir.to_proto(model).SerializeToString(deterministic=True) == before


def test_model_functions_of_the_user_stay() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "local" : 1]> g (float[4] x) => (float[4] z)
    { y = local.twice(x) z = Mish(y) }
    <domain: "local", opset_import: ["" : 21]> twice (a) => (b) { b = Add(a, a) }"""
    model = ir.from_proto(onnx.shape_inference.infer_shapes(onnx.parser.parse_model(text)))
    assert ExpandFunction()(model, lambda node: node.op_type == "Mish") == 1
    assert [function.name for function in model.functions.values()] == ["twice"]
    np.testing.assert_allclose(outputs(model, np.ones(4, np.float32)), 2 * np.tanh(np.log1p(np.exp(2))), rtol=1e-5)
