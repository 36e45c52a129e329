# SPDX-License-Identifier: Apache-2.0
"""Nodes on constants are evaluated, within limits, with the numbers that ONNX Runtime gets."""

import time

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from passes_harness import (
    GraphBuilder,
    constant,
    graph,
    rewritten,
)

from nndeploy.passes import optimise
from nndeploy.passes.fold_constants import MAX_GROWTH_BYTES, MAX_RESULT_BYTES

NAME = "fold-constants"


def test_function_of_the_model_under_a_standard_name_stays() -> None:
    text = """<ir_version: 8, opset_import: ["": 17, "local": 1]> g (float[2] x) => (float[2] y)
        <float[2] a = {1, 2}> { c = Neg(a) y = Add(x, c) }"""
    function = '<domain: "", opset_import: ["": 17]> Neg (v) => (w) { w = Abs(v) }'
    proto = onnx.parser.parse_model(text)
    proto.functions.append(onnx.parser.parse_function(function))
    model = ir.from_proto(proto)
    assert rewritten(NAME, model) == 0


@pytest.mark.parametrize("body", [
    "<int64[4] s = {262144, 262144, 1, 1}> { c = ConstantOfShape(s) y = ReduceSum<keepdims = 0>(c) }",
    "<float[1] a = {1}, int64[3] s = {4096, 4096, 4096}> { c = Expand(a, s) y = ReduceSum<keepdims = 0>(c) }",
    "<float[1,1] a = {1}, int64[2] s = {262144, 262144}> { c = Tile(a, s) y = ReduceSum<keepdims = 0>(c) }",
    """<int64 a = {0}, int64 b = {68719476736}, int64 d = {1}>
        { r = Range(a, b, d) c = Cast<to = 1>(r) y = ReduceSum<keepdims = 0>(c) }""",
    """<int64 a = {68719476736}, int64 b = {0}, int64 d = {-1}>
        { r = Range(a, b, d) c = Cast<to = 1>(r) y = ReduceSum<keepdims = 0>(c) }""",
])  # fmt: skip
def test_bomb_is_not_evaluated(body: str) -> None:
    model = graph(f"(float[2] x) => (float y) {body}", data_prop=False)  # onnx's own data propagation is a victim
    start = time.perf_counter()
    optimise(model)
    assert time.perf_counter() - start < 1
    assert len(model.graph) > 1


def test_broadcast_and_product_of_two_small_constants_can_be_a_bomb() -> None:
    build = GraphBuilder(dtype=np.float32)
    tall, wide = build.constant(np.ones((1 << 17, 1))), build.constant(np.ones((1, 1 << 17)))
    outputs = [build.node("ReduceSum", build.node(op, tall, wide), keepdims=0) for op in ("Add", "MatMul")]
    model = ir.from_proto(build.model(*outputs))
    assert rewritten(NAME, model) == 0


def test_doubling_chain_stops_at_the_growth_limit() -> None:
    build = GraphBuilder(dtype=np.float32)
    value = build.constant(np.ones(1000))
    for _ in range(36):
        value = build.node("Concat", value, build.node("Neg", value), axis=0)
    model = ir.from_proto(build.model(build.node("ReduceSum", value, keepdims=0)))
    optimise(model)
    held = sum(initializer.const_value.nbytes for initializer in model.graph.initializers.values())
    assert held <= 2 * MAX_RESULT_BYTES
    assert len(model.graph) > 20


def test_many_results_below_the_limit_stop_at_the_growth_limit() -> None:
    build = GraphBuilder(dtype=np.float32)
    shape = build.constant([MAX_RESULT_BYTES // 4], np.int64)
    outputs = [build.node("Relu", build.node("ConstantOfShape", shape)) for _ in range(100)]
    model = ir.from_proto(build.model(*outputs))
    rewritten(NAME, model)
    folded = [node.attributes["value"].as_tensor() for node in model.graph if node.op_type == "Constant"]
    assert sum(tensor.nbytes for tensor in folded) == MAX_GROWTH_BYTES


def test_large_result_is_folded_when_it_replaces_what_it_was_made_of() -> None:
    build = GraphBuilder(dtype=np.float32)
    x, weights = build.input([1, 800]), build.constant(np.arange(800 * 800).reshape(800, 800))
    y = build.node("MatMul", x, build.node("Transpose", weights, perm=[1, 0]))
    model = ir.from_proto(build.model(y))
    assert rewritten(NAME, model) == 1
    assert constant(model, "v2")[1, 0] == 1.0


@pytest.mark.parametrize(("type_", "numbers", "found"), [
    ("float", ("-1", "7", "3"), [-1, 2, 5]), ("double", ("4", "0", "-2"), [4, 2]), ("float", ("0", "0", "1"), []),
    ("float", ("0", "1", "0.25"), None), ("float", ("0", "16777220", "8388608"), None),
])  # fmt: skip
def test_range_is_folded_where_no_number_of_it_is_rounded(type_, numbers, found) -> None:
    start, limit, delta = numbers
    model = graph(
        f"({type_}[n] x) => ({type_}[n] y) <{type_} a = {{{start}}}, {type_} b = {{{limit}}}, {type_} d = {{{delta}}}>"
        "{ r = Range(a, b, d) y = Sub(x, r) }"
    )
    assert rewritten(NAME, model) == (found is not None)
    if found is not None:
        assert model.graph[-1].inputs[1].const_value.numpy().tolist() == found


@pytest.mark.parametrize("limit", [np.inf, np.nan])
def test_range_without_an_end_stays_without_a_warning(limit) -> None:
    build = GraphBuilder(dtype=np.float32)
    x, numbers = build.input([1]), [build.constant(np.array(one)) for one in (0, limit, 1)]
    model = ir.from_proto(build.model(build.node("Sub", x, build.node("Range", *numbers))))
    assert rewritten(NAME, model) == 0


def test_large_result_is_not_folded_when_what_it_was_made_of_stays() -> None:
    build = GraphBuilder(dtype=np.float32)
    x, weights = build.input([1, 800]), build.constant(np.arange(800 * 800).reshape(800, 800))
    y = build.node("MatMul", x, build.node("Transpose", weights, perm=[1, 0]))
    model = ir.from_proto(build.model(y, build.node("MatMul", x, weights)))
    assert rewritten(NAME, model) == 0


def test_float16_sums_are_rounded_once() -> None:
    build = GraphBuilder(dtype=np.float16)
    ones = build.constant(np.full(4096, 1.0))
    total = build.node("ReduceSum", ones, keepdims=0)
    product = build.node("MatMul", build.constant(np.full((1, 64), 0.1)), build.constant(np.full((64, 1), 0.1)))
    model = ir.from_proto(build.model(build.node("Relu", total), build.node("Relu", product)))
    assert rewritten(NAME, model) == 4
    folded = [node.attributes["value"].as_tensor().numpy() for node in model.graph]
    assert folded[0] == np.float16(4096)
    exact = np.full(64, np.float16(0.1)).astype(np.float64) ** 2
    assert folded[1].item() == np.float16(exact.sum())
    assert {array.dtype for array in folded} == {np.dtype(np.float16)}


def test_bfloat16_keeps_its_type() -> None:
    build = GraphBuilder(dtype=ml_dtypes.bfloat16)
    x = build.input([2])
    y = build.node("Add", x, build.node("Mul", build.constant([1, 2]), build.constant([3, 4])))
    model = ir.from_proto(build.model(y))
    assert rewritten(NAME, model) == 1
    assert model.graph.initializers["v3"].dtype == ir.DataType.BFLOAT16
    assert constant(model, "v3").astype(np.float32).tolist() == [3.0, 8.0]
