# SPDX-License-Identifier: Apache-2.0
"""Clips, concats and transpositions that build on each other become one; so do equal initializers."""

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from passes_harness import GraphBuilder, assert_same_outputs, graph, random_feeds, rewritten


def test_a_bound_that_is_no_number_stays() -> None:
    build = GraphBuilder(17, np.float32)
    y = build.node("Clip", build.node("Relu", build.input([2])), build.constant(np.nan))
    assert rewritten("merge-clips", ir.from_proto(build.model(y))) == 0


def test_a_transposition_of_unknown_rank_stays() -> None:
    model = graph("(float[2,3] x) => (float[2,3] y) { a = Transpose(x) y = Transpose<perm = [0, 1]>(a) }")
    model.graph.inputs[0].shape = None
    assert rewritten("merge-transposes", model) == 0


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_concats_give_the_same_numbers(axis: int) -> None:
    build = GraphBuilder()
    x, y = build.input([2, 2, 2]), build.input([2, 2, 2])
    inner = build.node("Concat", y, build.node("Concat", x, y, axis=axis), axis=axis)
    proto = build.model(build.node("Concat", inner, x, build.node("Concat", x, x, axis=axis), axis=axis))
    assert assert_same_outputs("merge-concats", proto, random_feeds(proto), tolerance=0) > 0


F32, EVERY = np.float32, (bool, np.int8, np.uint64, np.float16, np.float64, ml_dtypes.bfloat16)


@pytest.mark.parametrize(("arrays", "count"), [
    ([(np.zeros(2), F32), (np.zeros((1, 2)), F32), (np.zeros(2), np.int32)], 0),  # another type or shape
    ([([0.0], F32), ([-0.0], F32)], 0), ([([np.nan], F32), ([np.nan], F32)], 1),
    *(([(array, dtype) for array in ([0, 1], [0, 1], [1, 1], 0, 0)], 2) for dtype in EVERY),
])  # fmt: skip
def test_initializers_of_equal_bytes_are_one(arrays: list, count: int) -> None:
    build = GraphBuilder(17, np.float32)
    names = [build.constant(*array) for array in arrays]
    model = ir.from_proto(build.model(*(build.node("Shape", name) for name in names)))
    assert rewritten("deduplicate-initializers", model) == count


def test_initializers_of_text_stay() -> None:
    tensors = [onnx.helper.make_tensor(name, onnx.TensorProto.STRING, [1], [b"a"]) for name in "ab"]
    body = "<float[2] a = {1, 2}, float[2] b = {3, 4}> { y = Size(a) z = Size(b) }"
    model = graph(f"(float[2] x) => (int64 y, int64 z) {body}")
    for name, tensor in zip("ab", tensors, strict=True):
        model.graph.initializers[name].const_value = ir.from_proto(tensor)
    assert rewritten("deduplicate-initializers", model) == 0
