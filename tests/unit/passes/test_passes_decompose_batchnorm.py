# SPDX-License-Identifier: Apache-2.0
"""A batch-norm that no filter takes becomes plain arithmetic, as exact as it was."""

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import given
from hypothesis import strategies as st
from passes_harness import (
    GraphBuilder,
    assert_same_outputs,
    constants,
    examples,
    from_proto,
    graph,
    nodes,
    random_feeds,
    rewritten,
    run_onnxruntime,
    run_reference,
)

NAME = "decompose-batchnorm"
CONSTANTS = "<float[2] s = {2, 4}, float[2] o = {1, 1}, float[2] m = {3, 5}, float[2] v = {0.75, 3.75}>"
NORM = "y = BatchNormalization<epsilon = 0.25>(x, s, o, m, v)"


def test_becomes_a_product_and_a_sum() -> None:
    model = graph(f"(float[1,2,2,2] x) => (float[1,2,2,2] y) {CONSTANTS} {{ {NORM} }}")
    assert rewritten(NAME, model) == 1
    assert nodes(model) == ["y.muled = Mul(x, y.mul)", "y = Add(y.muled, y.add)"]
    assert constants(model)["y.mul"] == [[[2.0]], [[2.0]]]
    assert constants(model)["y.add"] == [[[1 - 3 * 2.0]], [[1 - 5 * 2.0]]]


def test_mean_is_subtracted_first_where_it_is_large_beside_the_deviation() -> None:
    model = graph(f"(float[1,2,2,2] x) => (float[1,2,2,2] y) {CONSTANTS.replace('{3, 5}', '{3, 5000}')} {{ {NORM} }}")
    assert rewritten(NAME, model) == 1
    assert nodes(model) == ["y.subed = Sub(x, y.sub)", "y.muled = Mul(y.subed, y.mul)", "y = Add(y.muled, y.add)"]
    assert constants(model)["y.sub"] == [[[3.0]], [[5000.0]]]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_mean_is_subtracted_first_in_short_types(dtype: type) -> None:
    build = GraphBuilder(17, dtype)
    x, ones = build.input([1, 2, 2, 2]), [build.constant(np.ones(2)) for _ in range(4)]
    model = ir.from_proto(build.model(build.node("BatchNormalization", x, *ones)))
    assert rewritten(NAME, model) == 1
    assert [node.op_type for node in model.graph] == ["Sub", "Mul", "Add"]
    assert {node.outputs[0].dtype for node in model.graph} == {x_type(dtype)}


def x_type(dtype: type) -> ir.DataType:
    return ir.DataType.from_numpy(np.dtype(dtype))


@pytest.mark.parametrize("shape", ["1,2", "1,2,3", "1,2,3,3,3", "N,2,H,W"])
def test_any_rank_with_channels(shape: str) -> None:
    model = graph(f"(float[{shape}] x) => (float[{shape}] y) {CONSTANTS} {{ {NORM} }}")
    assert rewritten(NAME, model) == 1
    assert np.shape(constants(model)["y.mul"]) == (2, *(1,) * (shape.count(",") - 1))


@pytest.mark.parametrize(
    "body",
    [
        f"(float[1,2,2,2] x, float[2] s2) => (float[1,2,2,2] y) {CONSTANTS} {{ {NORM.replace('s,', 's2,')} }}",
        f"(float[1,2,2,2] x) => (float[1,2,2,2] y, float[2] p, float[2] q) {CONSTANTS} "
        f"{{ {NORM.replace('y =', 'y, p, q =').replace('epsilon', 'training_mode = 1, epsilon')} }}",
        f"(float[1,2,2,2] x) => (float[1,2,2,2] y) {CONSTANTS.replace('0.75', '-0.75')} {{ {NORM} }}",
        f"(float[1,2,2,2] x) => (float[1,2,2,2] y) {CONSTANTS.replace('{2, 4}', '{3e38, 4}')} "
        f"{{ {NORM.replace('0.25', '0.0')} }}",
    ],
    ids=["scale is not constant", "training", "negative variance", "product overflows"],
)
def test_stays(body: str) -> None:
    assert rewritten(NAME, graph(body)) == 0


def test_unknown_rank_and_old_opsets_stay() -> None:
    model = graph(f"(float[1,2,2,2] x) => (float[1,2,2,2] y) {CONSTANTS} {{ {NORM} }}")
    model.graph.inputs[0].shape = None
    assert rewritten(NAME, model) == 0
    old = NORM.replace("epsilon", "is_test = 1, epsilon")
    text = f'<ir_version: 8, opset_import: ["": 6]> g (float[1,2,2,2] x) => (float[1,2,2,2] y) {CONSTANTS} {{ {old} }}'
    assert rewritten(NAME, ir.from_proto(onnx.parser.parse_model(text))) == 0


def test_parameters_of_another_type_stay() -> None:
    build = GraphBuilder(17, np.float16)
    x, ones = build.input([1, 2, 2, 2]), [build.constant(np.ones(2), np.float32) for _ in range(4)]
    assert rewritten(NAME, ir.from_proto(build.model(build.node("BatchNormalization", x, *ones)))) == 0


@examples(60)
@given(seed=st.integers(0, 999), mean=st.sampled_from([0, 1, 10, 1000, 1e5]), deviation=st.sampled_from([0.01, 1, 30]))
def test_error_is_no_larger_than_that_of_the_definition(seed: int, mean: float, deviation: float) -> None:
    """In float32, against float64: both forms lose only what rounding x - mean or x * factor loses."""
    generator = np.random.default_rng(seed)
    build = GraphBuilder(17, np.float32)
    x, channels = build.input([4, 3, 5]), 3
    scale, bias = generator.standard_normal((2, channels))
    means = mean * generator.standard_normal(channels)
    variance = (deviation * (0.5 + generator.random(channels))) ** 2
    y = build.node("BatchNormalization", x, *(build.constant(array) for array in (scale, bias, means, variance)))
    proto = build.model(y)
    array = (means[:, None] + deviation * generator.standard_normal((4, 3, 5))).astype(np.float32)
    model = from_proto(proto)
    assert rewritten(NAME, model) == 1
    (got,) = run_reference(ir.to_proto(model), {x: array})
    constants_ = [np.asarray(c, np.float32).astype(np.float64)[:, None] for c in (scale, bias, means, variance)]
    want = (array - constants_[2]) / np.sqrt(constants_[3] + float(np.float32(1e-5))) * constants_[0] + constants_[1]
    assert np.abs(got - want).max() <= 200 * 2.0**-24 * np.abs(want).max()


@examples()
@given(data=st.data(), opset=st.sampled_from([7, 9, 13, 14, 15, 21]))
def test_outputs_stay(data: st.DataObject, opset: int) -> None:
    generator = np.random.default_rng(data.draw(st.integers(0, 999)))
    build, channels = GraphBuilder(opset, np.float32), data.draw(st.integers(1, 3))
    value = build.input([2, channels, *[2] * data.draw(st.integers(1, 3))])
    for _ in range(data.draw(st.integers(1, 2))):
        scale, bias, mean = generator.standard_normal((3, channels))
        variance = np.abs(generator.standard_normal(channels)) + 0.1
        first = build.constant(scale) if data.draw(st.integers(0, 5)) else build.input([channels])
        rest = [build.constant(array) for array in (bias, mean * data.draw(st.sampled_from([1, 100])), variance)]
        value = build.node("BatchNormalization", value, first, *rest)
        if data.draw(st.booleans()):
            value = build.node("Relu", value)
    proto = build.model(value)
    assert_same_outputs(NAME, proto, random_feeds(proto), tolerance=1e-4, run=run_onnxruntime)
