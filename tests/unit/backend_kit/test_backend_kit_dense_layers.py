# SPDX-License-Identifier: Apache-2.0
"""MergeProducts and SplitGemm: the outputs of dense layers stay what the specification says, by `tests/oracle`."""

import collections

import numpy as np
import onnx
import onnx.parser
import onnx_ir as ir
import pytest
from oracle.compare import difference
from oracle.evaluator import evaluate
from random_layers import Layers, drawn_layers

from nndeploy.backend_kit.transforms.merge_products import MergeProducts
from nndeploy.backend_kit.transforms.split_gemm import SplitGemm
from nndeploy.plugin.interface import MayTouch, Transform

COUNT = 150


def rewritten(
    model: onnx.ModelProto, rewrite: Transform, may_touch: MayTouch = lambda _: True
) -> tuple[onnx.ModelProto, int]:
    """Returns a valid model after a rewrite, and how many nodes that replaced."""
    made = ir.from_proto(model)
    count = rewrite(made, may_touch)
    proto = ir.to_proto(made)
    onnx.checker.check_model(proto, full_check=True)
    return proto, count


def operators(model: onnx.ModelProto) -> collections.Counter[str]:
    return collections.Counter(node.op_type for node in model.graph.node)


def with_weights(body: str, opset: int = 17) -> onnx.ModelProto:
    """Returns a model with the initializers that tests share: matrices of 4 rows, or turned, and rows of numbers."""
    shapes = {"A": (4, 3), "B": (4, 5), "T": (3, 4), "U": (5, 4), "c": (3,), "d": (5,), "e": (1,)}
    numbers = np.random.default_rng(0)
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> {body}')
    used = {name for node in model.graph.node for name in node.input} | {one.name for one in model.graph.output}
    for name in sorted(shapes.keys() & used):
        array = numbers.standard_normal(shapes[name]).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return model


def same(model: onnx.ModelProto, made: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> str:
    return difference(evaluate(model, inputs), evaluate(made, inputs))


@pytest.mark.parametrize("rewrite", [MergeProducts(), SplitGemm()], ids=lambda one: one.name)
def test_random_layers_keep_their_numbers(rewrite: Transform) -> None:
    wrong, counts = [], []
    for seed in range(COUNT):
        drawn: Layers = drawn_layers(seed)
        made, count = rewritten(drawn.model, rewrite)
        counts.append(count)
        assert [one.name for one in made.graph.output] == [one.name for one in drawn.model.graph.output]
        if found := same(drawn.model, made, drawn.inputs):
            wrong.append((seed, drawn.what, found))
    assert wrong == []
    assert np.mean(np.array(counts) > 0) > 0.5  # what is never rewritten shows nothing


@pytest.mark.parametrize("seed", range(20))
def test_a_second_rewrite_finds_nothing_more(seed: int) -> None:
    for rewrite in (MergeProducts(), SplitGemm()):
        made, _ = rewritten(drawn_layers(seed).model, rewrite)
        assert rewritten(made, rewrite)[1] == 0


ONE = "g (float[n,4] x) => (float[n,3] y, float[n,5] z)"


@pytest.mark.parametrize(("body", "left"), [
    (ONE + " { y = MatMul(x, A) z = MatMul(x, B) }", {"MatMul": 1, "Split": 1}),
    (ONE + " { p = MatMul(x, A) y = Add(p, c) q = MatMul(x, B) z = Add(d, q) }", {"MatMul": 1, "Add": 1, "Split": 1}),
    (ONE + " { y = Gemm(x, A, c) z = Gemm(x, B, d) }", {"Gemm": 1, "Split": 1}),
    (ONE + " { y = Gemm<transB=1>(x, T) z = Gemm<transB=1>(x, U) }", {"Gemm": 1, "Split": 1}),
    ("g (float[b,n,4] x) => (float[b,n,3] y, float[b,n,5] z) { y = MatMul(x, A) z = MatMul(x, B) }",
     {"MatMul": 1, "Split": 1}),
    ("g (float[4] x) => (float[3] y, float[5] z) { y = MatMul(x, A) z = MatMul(x, B) }", {"MatMul": 1, "Split": 1}),
])  # fmt: skip
@pytest.mark.parametrize("opset", [11, 13, 18])
def test_products_of_one_input_become_one(body: str, left: dict[str, int], opset: int) -> None:
    model = with_weights(body, opset)
    made, count = rewritten(model, MergeProducts())
    assert (count, operators(made)) == (2, left)
    shape = {"x": (4,)} if "(float[4] x)" in body else {"x": (2, 3, 4)} if "[b,n,4]" in body else {"x": (3, 4)}
    assert same(model, made, {"x": np.random.default_rng(1).standard_normal(shape["x"]).astype(np.float32)}) == ""


@pytest.mark.parametrize("body", [
    ONE + " { y = MatMul(x, A) r = Relu(x) z = MatMul(r, B) }",                     # two inputs
    ONE + " { y = Gemm(x, A, c) z = MatMul(x, B) }",                                # two operators
    ONE + " { y = Gemm(x, A, c) z = Gemm<transB=1>(x, U, d) }",                     # of which one is turned
    ONE + " { y = Gemm<alpha=0.5>(x, A, c) z = Gemm<alpha=0.5>(x, B, d) }",         # scaled
    ONE + " { y = Gemm(x, A, e) z = Gemm(x, B, e) }",                               # one number for all columns
    ONE + " { p = MatMul(x, A) y = Add(p, c) z = MatMul(x, B) }",                   # one with a sum, one without
    "g (float[n,4] x) => (float[n,3] y, float[n,3] z) { y = MatMul(x, A) z = MatMul(x, A) }",  # the same weights
    "g (float[n,4] x, float[4,3] V) => (float[n,3] y, float[n,3] z) { y = MatMul(x, V) z = MatMul(x, A) }",
])  # fmt: skip
def test_what_cannot_be_merged_stays(body: str) -> None:
    made, count = rewritten(with_weights(body), MergeProducts())
    assert (count, "Split" in operators(made)) == (0, False)


def test_weights_that_someone_else_reads_stay_where_they_are() -> None:
    ends = "g (float[n,4] x) => (float[n,3] y, float[n,5] z, float[4,5] w)"
    model = with_weights(ends + " { y = MatMul(x, A) z = MatMul(x, B) w = Relu(B) }")
    assert rewritten(model, MergeProducts())[1] == 0


def test_a_product_whose_sum_alone_is_merged_keeps_what_others_read() -> None:
    ends = "g (float[n,4] x) => (float[n,3] y, float[n,5] z, float[n,3] r)"
    text = ends + " { p = MatMul(x, A) y = Add(p, c) r = Relu(p) z = MatMul(x, B) }"
    model = with_weights(text)
    made, count = rewritten(model, MergeProducts())
    assert (count, operators(made)) == (2, {"MatMul": 1, "Split": 1, "Add": 1, "Relu": 1})
    assert same(model, made, {"x": np.ones((2, 4), np.float32)}) == ""


GEMM = "g (float[n,4] x, float[n,3] v) => (float[n,3] y)"


@pytest.mark.parametrize(("body", "left"), [
    (GEMM + " { y = Gemm(x, A, c) }", {"MatMul": 1, "Add": 1}),
    (GEMM + " { y = Gemm<transB=1, alpha=2.0>(x, T) }", {"MatMul": 1}),
    (GEMM + " { y = Gemm<alpha=2.0, beta=0.5>(x, A, e) }", {"MatMul": 1, "Add": 1}),
    (GEMM + " { y = Gemm<beta=0.5>(x, A, v) }", {"MatMul": 1, "Mul": 1, "Add": 1}),
    ("g (float[4,n] x, float[4,3] v) => (float[n,3] y) { y = Gemm<transA=1, alpha=3.0>(x, v, c) }",
     {"Transpose": 1, "MatMul": 1, "Mul": 1, "Add": 1}),
])  # fmt: skip
def test_gemm_becomes_a_product_and_a_sum(body: str, left: dict[str, int]) -> None:
    model = with_weights(body)
    made, count = rewritten(model, SplitGemm())
    assert (count, operators(made)) == (1, left)
    numbers, inputs = np.random.default_rng(2), {}
    for value in model.graph.input:
        shape = [dim.dim_value or 6 for dim in value.type.tensor_type.shape.dim]
        inputs[value.name] = numbers.standard_normal(shape).astype(np.float32)
    assert same(model, made, inputs) == ""


@pytest.mark.parametrize("rewrite", [MergeProducts(), SplitGemm()], ids=lambda one: one.name)
def test_nodes_that_may_not_be_touched_stay(rewrite: Transform) -> None:
    model = with_weights(ONE + " { y = Gemm(x, A, c) z = Gemm(x, B, d) }")
    assert rewritten(model, rewrite, lambda node: node.outputs[0].name == "y")[1] == (rewrite.name == "split-gemm")
    assert rewritten(model, rewrite, lambda _: False)[1] == 0
