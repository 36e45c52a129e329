# SPDX-License-Identifier: Apache-2.0
"""Nodes on constants are evaluated, within limits, with the numbers that ONNX Runtime gets."""

import time
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from passes_harness import (
    GraphBuilder,
    assert_close,
    assert_same_outputs,
    constant,
    graph,
    node_line,
    random_feeds,
    rewritten,
    run_onnxruntime,
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


FLOAT_UNARY = ["Abs", "Ceil", "Cos", "Erf", "Exp", "Floor", "Neg", "Reciprocal", "Relu", "Round", "Sigmoid", "Sign"]
REDUCTIONS = ["ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"]
OPSETS = [7, 8, 9, 10, 11, 12, 13, 14, 17, 18, 21]


def _assert_folds_like_onnxruntime(build: GraphBuilder, outputs: list[str], tolerance: float = 1e-5) -> None:
    proto = build.model(*outputs)
    want = run_onnxruntime(proto, {})
    model = ir.from_proto(proto)
    rewritten(NAME, model)
    assert not [node_line(node) for node in model.graph if node.op_type != "Constant"]
    for node, expected in zip(model.graph.outputs, want, strict=True):
        assert_close(
            node.producer().attributes["value"].as_tensor().numpy(), expected, tolerance, node_line(node.producer())
        )


@pytest.mark.parametrize("opset", OPSETS)
def test_every_opset_folds_to_what_onnxruntime_computes(opset: int) -> None:
    build = GraphBuilder(opset, np.float32)
    array = np.random.default_rng(opset).standard_normal((2, 3, 4)).astype(np.float32)
    one, other = build.constant(array), build.constant(np.abs(array[:, :1]) + 0.5)
    ints = build.constant(np.arange(-6, 6).reshape(3, 4), np.int32)
    unary = [
        op for op in FLOAT_UNARY if not (op in ("Erf", "Sign") and opset < 9) and not (op == "Round" and opset < 11)
    ]
    outputs = [build.node(op, one) for op in unary]
    outputs += [build.node(op, one, other) for op in ("Add", "Sub", "Mul", "Div")]
    outputs += [build.node(op, other, one) for op in ("Pow",)]
    outputs += [build.node(op, one, other) for op in (("Max", "Min", "Mean", "Sum") if opset >= 8 else ())]
    outputs += [build.node(op, one, other) for op in ("Less", "Greater")]
    outputs += [build.node(op, ints, build.constant([[1, 2, -3, 5]], np.int32)) for op in ("Add", "Sub", "Mul")]
    if opset >= 8:
        outputs.append(build.node("Div", ints, build.constant([[1, 2, -3, 5]], np.int32)))
    outputs += [build.node("Transpose", one), build.node("Transpose", one, perm=[1, 2, 0])]
    outputs += [build.node("Concat", one, one, axis=1), build.node("Flatten", one, axis=2)]
    outputs += [build.node("Cast", one, to=to) for to in (6, 7, 9, 10, 11)]
    outputs += [build.node("Gather", one, build.constant([[1, 0]], np.int64), axis=axis) for axis in (0, 2)]
    outputs += [build.node("Reshape", one, build.constant([0, -1, 2], np.int64)), build.node("Size", one)]
    outputs += [build.node("Tile", one, build.constant([1, 2, 3], np.int64))]
    outputs += [build.with_axes("Unsqueeze", one, [0, 3]), build.with_axes("Squeeze", other, [1])]
    if opset >= 8:
        outputs.append(build.node("Expand", other, build.constant([2, 2, 3, 4], np.int64)))
    if opset >= 9:
        outputs += [build.node("ConstantOfShape", build.constant([2, 3], np.int64))]
        outputs += [build.node("Where", build.constant(array > 0, bool), one, build.constant(array * 2))]
        outputs += [build.node("NonZero", one)]
    _assert_folds_like_onnxruntime(build, outputs)


@pytest.mark.parametrize("opset", OPSETS)
def test_parameters_that_moved_fold_to_what_onnxruntime_computes(opset: int) -> None:
    build = GraphBuilder(opset, np.float32)
    one = build.constant(np.random.default_rng(opset).standard_normal((2, 3, 4)))
    outputs = []
    for op in REDUCTIONS:
        as_input = opset >= 18 or (op == "ReduceSum" and opset >= 13)
        if as_input:
            outputs.append(build.node(op, one, build.constant([0, -1], np.int64), keepdims=0))
        else:
            outputs.append(build.node(op, one, axes=[0, 2], keepdims=0))
        outputs.append(build.node(op, one))
    if opset < 10:
        outputs.append(build.node("Slice", one, starts=[1, -3], ends=[9, -1], axes=[0, 2]))
    else:
        bounds = [build.constant(part, np.int64) for part in ([1, -1], [9, -4], [0, 2], [1, -2])]
        outputs.append(build.node("Slice", one, *bounds))
    if opset < 11:
        outputs.append(build.node("Clip", one, min=-0.5, max=0.5))
    else:
        outputs.append(build.node("Clip", one, build.constant(-0.5), build.constant(0.5)))
        outputs.append(build.node("Clip", one, "", build.constant(0.5)))
    outputs += [build.node("ArgMax", one, axis=1), build.node("ArgMin", one, axis=2, keepdims=0)]
    if opset >= 11:
        outputs.append(build.node("CumSum", one, build.constant(1, np.int32), exclusive=1, reverse=1))
        outputs.append(build.node("Range", *(build.constant(number, np.int64) for number in (7, -2, -2))))
        outputs.append(
            build.node("ScatterElements", one, build.constant([[[1, 0]]], np.int64), build.constant([[[5, 6]]]), axis=2)
        )
    if opset >= 9:
        numbers = [build.constant(number, np.int64) for number in ([[0, 2], [1, 0]], 3, [-4, 7])]
        outputs.append(build.node("Cast", build.node("OneHot", *numbers, axis=1), to=onnx.TensorProto.FLOAT))
    if opset >= 14:
        outputs.append(build.node("Trilu", one, upper=0))
    if opset >= 17:
        scale, bias = (build.constant(np.linspace(-1, 2, 12).reshape(3, 4) + number) for number in range(2))
        outputs += [build.node("LayerNormalization", one, scale, bias, axis=1, epsilon=1e-3)]
        outputs += [build.node("LayerNormalization", one, build.constant(np.ones(4)))]
    _assert_folds_like_onnxruntime(build, outputs)


@pytest.mark.parametrize("opset", OPSETS)
def test_split_folds_to_what_onnxruntime_computes(opset: int) -> None:
    build = GraphBuilder(opset, np.float32)
    one, x = build.constant(np.arange(12).reshape(2, 6)), build.input([2, 3])
    more: dict[str, Any] = {"num_outputs": 2} if opset >= 18 else {}
    first = build.node("Split", one, outputs=2, axis=1, **more)
    second = f"v{int(first[1:]) + 1}"
    proto = build.model(build.node("Add", x, first), build.node("Add", x, second))
    assert assert_same_outputs(NAME, proto, random_feeds(proto), run=run_onnxruntime, tolerance=1e-6) == 1
