# SPDX-License-Identifier: Apache-2.0
"""Predicted seconds of plans: they grow with sizes, what is fused or renamed costs little, kinds follow sizes."""

import numpy as np
import onnx.parser
import onnx_ir as ir
import pytest

from nndeploy.graph.regions import regions_of
from nndeploy.partition import kinds
from nndeploy.partition.cost import Costs, estimate_costs
from nndeploy.partition.speeds import call_seconds, chain_seconds, region_seconds

ENGINES = ("native", "onnxruntime", "openvino")


def model_of(text: str) -> ir.Model:
    """Makes the inputs that are called w constant weights."""
    proto = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {text}')
    for value in [one for one in proto.graph.input if one.name == "w"]:
        proto.graph.input.remove(value)
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        proto.graph.initializer.append(onnx.numpy_helper.from_array(np.zeros(shape, np.float32), "w"))
    model = ir.from_proto(onnx.shape_inference.infer_shapes(proto))
    for number, node in enumerate(model.graph):
        node.name = f"n{number}"
    return model


def costs_of(model: ir.Model) -> Costs:
    return estimate_costs(model, {}, "x86-64-v4")


def kinds_of(text: str) -> list[str]:
    return list(costs_of(model_of(text)).kinds.values())


def seconds_of(text: str, engine: str) -> float:
    """The whole model on an engine, the call apart."""
    model = model_of(text)
    (region,) = regions_of(model.graph, {node.name or "": engine for node in model.graph})
    return region_seconds(region, engine, costs_of(model))


def product(rows: int, width: int = 256) -> str:
    return f"g (float[{rows},{width}] x, float[{width},{width}] w) => (float[{rows},{width}] y) {{ y = MatMul(x, w) }}"


def convolution(weight: str, x: str = "1,64,28,28", attributes: str = "") -> str:
    return f"g (float[{x}] x, float[{weight}] w) => (float[N,C,H,W] y) {{ y = Conv {attributes} (x, w) }}"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_larger_product_is_never_predicted_to_be_faster(engine: str) -> None:
    seconds = [seconds_of(product(rows), engine) for rows in (32, 64, 512, 4096)]
    assert seconds == sorted(seconds)
    assert seconds[-1] > 20 * seconds[0]


def test_kinds_follow_the_sizes_that_decide_which_kernel_computes() -> None:
    assert kinds_of(product(1)) == [kinds.ROW_PRODUCT]
    assert kinds_of(product(8)) == [kinds.SMALL_PRODUCT]
    assert kinds_of(product(64)) == [kinds.PRODUCT]
    assert kinds_of(convolution("8,64,1,1")) == [kinds.POINTWISE]
    assert kinds_of(convolution("8,64,3,3")) == [kinds.CONVOLUTION_3X3]
    assert kinds_of(convolution("8,64,3,3", attributes="<strides = [2,2]>")) == [kinds.CONVOLUTION]
    assert kinds_of(convolution("64,1,3,3", attributes="<group = 64>")) == [kinds.DEPTHWISE]
    assert kinds_of(convolution("8,3,3,3", "1,3,28,28")) == [kinds.FIRST_CONVOLUTION]
    assert kinds_of("g (float[4,8] x, float[8,4] v) => (float[4,4] y) { y = MatMul(x, v) }") == [kinds.VALUES_PRODUCT]


def test_a_convolution_of_what_was_quantised_is_a_quantised_one() -> None:
    text = """g (uint8[1,8,8,8] q, int8[8,8,1,1] p) => (float[1,8,8,8] y) <float s = {0.1}, uint8 z = {3}, int8 o = {0}>
        { x = DequantizeLinear(q, s, z) w = DequantizeLinear(p, s, o) y = Conv(x, w) }"""
    assert kinds_of(text) == [kinds.QUANTISATION, kinds.QUANTISATION, kinds.QUANTISED_CONVOLUTION]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_relu_behind_a_convolution_costs_a_small_part_of_one_by_itself(engine: str) -> None:
    head = "g (float[1,64,28,28] x, float[64,64,1,1] w) => (float[1,64,28,28] y)"
    alone = seconds_of(head + "{ y = Relu(x) }", engine)
    convolved = seconds_of(head + "{ y = Conv(x, w) }", engine)
    both = seconds_of(head + "{ c = Conv(x, w) y = Relu(c) }", engine)
    assert convolved <= both < convolved + 0.5 * alone


def test_a_value_that_others_read_too_is_not_fused_away() -> None:
    text = """g (float[1,64,28,28] x, float[64,64,1,1] w) => (float[1,64,28,28] y, float[1,64,28,28] z)
        { c = Conv(x, w) y = Relu(c) z = Softmax(c) }"""
    fused = "g (float[1,64,28,28] x, float[64,64,1,1] w) => (float[1,64,28,28] y) { c = Conv(x, w) y = Relu(c) }"
    softmax = "g (float[1,64,28,28] x) => (float[1,64,28,28] y) { y = Softmax(x) }"
    apart = seconds_of(fused, "onnxruntime") + seconds_of(softmax, "onnxruntime")
    assert seconds_of(text, "onnxruntime") > apart


def test_a_node_that_gives_a_value_a_new_shape_is_free() -> None:
    shaped = """g (float[64,256] x, float[256,256] w) => (float[256,64] y) <int64[2] s = {256, 64}>
        { m = MatMul(x, w) y = Reshape(m, s) }"""
    assert seconds_of(shaped, "openvino") == seconds_of(product(64), "openvino")


def test_a_chain_costs_the_call_of_every_region() -> None:
    model = model_of("g (float[4,8] x) => (float[4,8] y) { a = Relu(x) y = Tanh(a) }")
    costs = costs_of(model)
    whole = regions_of(model.graph, {"n0": "native", "n1": "native"})
    split = regions_of(model.graph, {"n0": "native", "n1": "openvino"})
    native, openvino = call_seconds("native", costs), call_seconds("openvino", costs)
    assert chain_seconds(whole, model.graph, costs) > native
    assert chain_seconds(split, model.graph, costs) > native + openvino
