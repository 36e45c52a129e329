# SPDX-License-Identifier: Apache-2.0
"""A batch-norm goes into the filter before it."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import given
from hypothesis import strategies as st
from passes_filters import draw_batchnorm, draw_filter
from passes_harness import GraphBuilder, assert_same_outputs, constant, examples, graph, nodes, random_feeds, rewritten

NAME = "fuse-conv-batchnorm"
CONSTANTS = """<float[2,1,1,1] w = {1, 10}, float[2] b = {7, 9}, float[2] s = {2, 4}, float[2] o = {1, 1},
    float[2] m = {3, 5}, float[2] v = {0.75, 3.75}>"""
CONV = "c = Conv(x, w, b)"
NORM = "y = BatchNormalization<epsilon = 0.25>(c, s, o, m, v)"
IN, OUT = "float[1,1,2,2] x", "float[1,2,2,2] y"


def test_filter_without_bias_gets_one_and_keeps_its_attributes_and_name() -> None:
    conv = "c = Conv<pads = [1, 1, 0, 0], kernel_shape = [1, 1]>(x, w)"
    model = graph(f"({IN}) => (float[1,2,3,3] y) {CONSTANTS} {{ {conv} {NORM} }}")
    model.graph[0].name = "the convolution"
    assert rewritten(NAME, model) == 1
    assert nodes(model) == ["y = Conv<kernel_shape=[1, 1], pads=[1, 1, 0, 0]>(x, y.weight, y.bias)"]
    assert model.graph[0].name == "the convolution"
    assert constant(model, "y.bias").tolist() == [-3 * 2 + 1, -5 * 2 + 1]


def test_two_batchnorms_go_in() -> None:
    first = NORM.replace("y =", "z =")
    model = graph(f"({IN}) => ({OUT}) {CONSTANTS} {{ {CONV} {first} {NORM.replace('(c,', '(z,')} }}")
    assert rewritten(NAME, model) == 2
    assert nodes(model) == ["y = Conv(x, y.weight, y.bias)"]


@pytest.mark.parametrize(
    "body",
    [f"({IN}) => ({OUT}, float[1,2,2,2] c) {CONSTANTS} {{ {CONV} {NORM} }}",
     f"({IN}) => ({OUT}, float[1,2,2,2] z) {CONSTANTS} {{ {CONV} {NORM} z = Neg(c) }}",
     f"({IN}, float[2,1,1,1] w2) => ({OUT}) {CONSTANTS} {{ c = Conv(x, w2, b) {NORM} }}",
     f"({IN}, float[2] b2) => ({OUT}) {CONSTANTS} {{ c = Conv(x, w, b2) {NORM} }}",
     f"({IN}, float[2] s2) => ({OUT}) {CONSTANTS} {{ {CONV} {NORM.replace('s,', 's2,')} }}",
     f"({IN}) => ({OUT}, float[2] p, float[2] q) {CONSTANTS} "
     f"{{ {CONV} {NORM.replace('epsilon', 'training_mode = 1, epsilon').replace('y =', 'y, p, q =')} }}",
     f"(float[1,2,2,2] c) => ({OUT}) {CONSTANTS} {{ {NORM} }}"],
    ids=["conv is an output", "conv has another reader", "weights", "bias", "scale", "training", "no filter"],
)  # fmt: skip
def test_stays(body: str) -> None:
    assert rewritten(NAME, graph(body)) == 0


def test_variance_that_is_not_usable_stays() -> None:
    model = graph(f"({IN}) => ({OUT}) {CONSTANTS.replace('0.75', '-0.25')} {{ {CONV} {NORM} }}")
    assert rewritten(NAME, model) == 0


@pytest.mark.parametrize(("opset", "attributes", "count"), [
    (1, "consumed_inputs = [0, 0, 0, 1, 1], is_test = 1, ", 1), (6, "is_test = 1, ", 1), (6, "", 0), (7, "", 1),
    (7, "spatial = 0, ", 0), (8, "spatial = 1, ", 1), (9, "", 1), (13, "", 1), (14, "", 1),
    (15, "training_mode = 0, ", 1),
])  # fmt: skip
def test_inference_of_each_opset(opset: int, attributes: str, count: int) -> None:
    norm = NORM.replace("epsilon", attributes + "epsilon")
    body = f"({IN}) => ({OUT}) {CONSTANTS} {{ {CONV} {norm} }}"
    model = ir.from_proto(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> g {body}'))
    assert rewritten(NAME, model) == count


def test_outputs_without_a_name_are_not_asked_for() -> None:
    body = f"({IN}) => ({OUT}) {CONSTANTS} {{ {CONV} {NORM.replace('y =', 'y, m2, v2 =')} }}"
    proto = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 9]> g {body}')
    proto.graph.node[1].output[1:] = ["", ""]
    model = ir.from_proto(proto)
    assert rewritten(NAME, model) == 1
    assert nodes(model) == ["y = Conv(x, y.weight, y.bias)"]
    onnx.checker.check_model(ir.to_proto(model))


def test_weights_that_other_nodes_read_are_copied_only_while_small() -> None:
    for size, count in ((4, 2), (600, 0)):
        build = GraphBuilder(17, np.float32)
        x, weights = build.input([1, size, 2, 2]), build.constant(np.ones((size, size, 1, 1)))
        ones = [build.constant(np.ones(size)) for _ in range(4)]
        outputs = [build.node("BatchNormalization", build.node("Conv", x, weights), *ones) for _ in range(2)]
        assert rewritten(NAME, ir.from_proto(build.model(*outputs))) == count


def test_float16_weights_that_would_vanish_stay() -> None:
    for scale, count in ((1.0, 1), (1e-4, 0)):
        build = GraphBuilder(17, np.float16)
        x, weights = build.input([1, 2, 2, 2]), build.constant([[[[1.0]], [[0.5]]], [[[1e-4]], [[1.1e-4]]]])
        parameters = [build.constant(np.full(2, number)) for number in (scale, 0.0, 0.0, 1.0)]
        y = build.node("BatchNormalization", build.node("Conv", x, weights), *parameters)
        assert rewritten(NAME, ir.from_proto(build.model(y))) == count


def test_overflow_of_float16_stays() -> None:
    build = GraphBuilder(17, np.float16)
    x, weights = build.input([1, 1, 2, 2]), build.constant(np.full((2, 1, 1, 1), 1000.0))
    parameters = [build.constant(np.full(2, number)) for number in (1000.0, 0.0, 0.0, 1.0)]
    y = build.node("BatchNormalization", build.node("Conv", x, weights), *parameters)
    assert rewritten(NAME, ir.from_proto(build.model(y))) == 0


@examples(30)
@given(data=st.data())
def test_outputs_stay(data: st.DataObject) -> None:
    """In float64: the fold is exact but for the last digits."""
    build = GraphBuilder(15)
    value, channels, _ = draw_filter(data, build)
    norm = draw_batchnorm(data, build, value, channels)
    if data.draw(st.booleans()):
        norm = draw_batchnorm(data, build, norm, channels)
    outputs = [norm, value] if not data.draw(st.integers(0, 4)) else [norm]
    proto = build.model(*outputs)
    assert_same_outputs(NAME, proto, random_feeds(proto), tolerance=1e-9)
