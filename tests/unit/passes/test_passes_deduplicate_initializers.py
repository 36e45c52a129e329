# SPDX-License-Identifier: Apache-2.0
"""Equal initializers become one."""

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
from passes_harness import GraphBuilder, graph, rewritten

NAME = "deduplicate-initializers"


def test_equal_bytes_of_another_type_or_shape_stay() -> None:
    build = GraphBuilder(17, np.float32)
    names = [
        build.constant(np.zeros(shape), dtype)
        for shape, dtype in (((2,), np.float32), ((1, 2), np.float32), ((2,), np.int32))
    ]
    model = ir.from_proto(build.model(*(build.node("Size", name) for name in names)))
    assert rewritten(NAME, model) == 0


def test_zero_and_minus_zero_stay_two() -> None:
    build = GraphBuilder(17, np.float32)
    model = ir.from_proto(build.model(build.node("Add", build.constant([0.0]), build.constant([-0.0]))))
    assert rewritten(NAME, model) == 0


def test_equal_nans_are_one() -> None:
    build = GraphBuilder(17, np.float32)
    model = ir.from_proto(build.model(build.node("Add", build.constant([np.nan]), build.constant([np.nan]))))
    assert rewritten(NAME, model) == 1


def test_every_element_type_is_compared() -> None:
    for dtype in (bool, np.int8, np.uint64, np.float16, np.float64, ml_dtypes.bfloat16):
        build = GraphBuilder(17, np.float32)
        names = [build.constant(array, dtype) for array in ([0, 1], [0, 1], [1, 1], 0, 0)]
        model = ir.from_proto(build.model(*(build.node("Shape", name) for name in names)))
        assert rewritten(NAME, model) == 2


def test_text_stays() -> None:
    tensors = [onnx.helper.make_tensor(name, onnx.TensorProto.STRING, [1], [b"a"]) for name in "ab"]
    body = "<float[2] a = {1, 2}, float[2] b = {3, 4}> { y = Size(a) z = Size(b) }"
    model = graph(f"(float[2] x) => (int64 y, int64 z) {body}")
    for name, tensor in zip("ab", tensors, strict=True):
        model.graph.initializers[name].const_value = ir.from_proto(tensor)
    assert rewritten(NAME, model) == 0
