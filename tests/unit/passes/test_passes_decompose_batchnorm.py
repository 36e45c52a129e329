# SPDX-License-Identifier: Apache-2.0
"""A batch-norm that no filter takes becomes plain arithmetic, as exact as it was."""

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import given
from hypothesis import strategies as st
from passes_harness import GraphBuilder, constants, examples, from_proto, graph, rewritten, run_reference

NAME = "decompose-batchnorm"
CONSTANTS = "<float[2] s = {2, 4}, float[2] o = {1, 1}, float[2] m = {3, 5}, float[2] v = {0.75, 3.75}>"
NORM = "y = BatchNormalization<epsilon = 0.25>(x, s, o, m, v)"


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
