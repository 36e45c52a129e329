# SPDX-License-Identifier: Apache-2.0
"""Small models, one or a few operators each, that any of the backends for GPUs may take or refuse; models of text.

In a text an input whose name begins with "w" or that has a value becomes a constant; `{t}` is the element type.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnx.parser

TEXT_TYPES = {"float32": "float", "float16": "float16"}
HALF_TOO = {
    "convolution", "strided convolution", "pointwise", "depthwise", "separable", "matmul", "batched matmul", "gemm",
    "softmax", "layer norm", "spelled layer norm", "global average", "max pool", "average pool", "arithmetic", "gelu",
    "resize linear", "transpose", "concat", "residual block", "attention",
}  # fmt: skip
"""Models that are also made in float16."""

CONSTANTS: Mapping[str, Any] = {
    "axis1": [1], "last": [-1], "pads": [0, 0, 1, 2, 0, 0, 2, 1], "scales": [1, 1, 2, 2], "up": [1, 1, 1.5, 1.75],
    "starts": [1, 0], "ends": [9, 7], "axes23": [2, 3], "steps": [2, 1], "places": [2, 0, -1, 1], "low": 0.0,
    "high": 1.0, "two": 2.0, "split": [3, 5], "target": [2, 6, 9, 5], "scale": 0.05, "zero": 0, "zero_u": 128,
    "sum_scale": 0.1, "eps": 1e-5, "reshaped": [2, -1], "head": [1, 16, 4, 16], "tail": [1, 16, 64], "k": [3],
    "root": 8.0,
}  # fmt: skip

MODELS: Mapping[str, str] = {
    "convolution": """g ({t}[1,16,28,28] x, {t}[32,16,3,3] w1, {t}[32] w2) => ({t}[1,32,28,28] y)
        { c = Conv <pads = [1,1,1,1]> (x, w1, w2) y = Relu (c) }""",
    "strided convolution": """g ({t}[2,8,23,29] x, {t}[12,8,5,3] w1) => ({t}[2,12,c,d] y)
        { y = Conv <strides = [2,3], dilations = [2,1], pads = [1,0,2,1]> (x, w1) }""",
    "grouped convolution": """g ({t}[1,12,14,14] x, {t}[8,3,3,3] w1, {t}[8] w2) => ({t}[1,8,14,14] y)
        { y = Conv <group = 4, pads = [1,1,1,1]> (x, w1, w2) }""",
    "convolution 1d": """g ({t}[1,8,50] x, {t}[16,8,5] w1) => ({t}[1,16,50] y)
        { y = Conv <pads = [2,2]> (x, w1) }""",
    "convolution 3d": """g ({t}[1,4,6,7,8] x, {t}[5,4,3,3,3] w1) => ({t}[1,5,6,7,8] y)
        { y = Conv <pads = [1,1,1,1,1,1]> (x, w1) }""",
    "transposed convolution": """g ({t}[1,8,7,7] x, {t}[8,6,4,4] w1, {t}[6] w2) => ({t}[1,6,14,14] y)
        { y = ConvTranspose <strides = [2,2], pads = [1,1,1,1]> (x, w1, w2) }""",
    "pointwise": """g ({t}[1,32,14,14] x, {t}[48,32,1,1] w1, {t}[48] w2) => ({t}[1,48,14,14] y)
        { c = Conv (x, w1, w2) y = HardSwish (c) }""",
    "depthwise": """g ({t}[1,24,15,15] x, {t}[24,1,5,5] w1, {t}[24] w2) => ({t}[1,24,8,8] y)
        { y = Conv <group = 24, strides = [2,2], pads = [2,2,2,2]> (x, w1, w2) }""",
    "separable": """g ({t}[1,32,14,14] x, {t}[32,1,3,3] w1, {t}[32] w2, {t}[64,32,1,1] w3, {t}[64] w4)
        => ({t}[1,64,14,14] y)
        { a = Conv <group = 32, pads = [1,1,1,1]> (x, w1, w2) b = Relu (a) c = Conv (b, w3, w4) y = Relu (c) }""",
    "residual block": """g ({t}[1,16,14,14] x, {t}[16,16,3,3] w1, {t}[16] w2, {t}[16,16,3,3] w3, {t}[16] w4)
        => ({t}[1,16,14,14] y) { a = Conv <pads = [1,1,1,1]> (x, w1, w2) b = Relu (a)
        c = Conv <pads = [1,1,1,1]> (b, w3, w4) d = Add (c, x) y = Relu (d) }""",
    "matmul": "g ({t}[64,128] x, {t}[128,96] w1, {t}[96] w2) => ({t}[64,96] y) { m = MatMul (x, w1) y = Add (m, w2) }",
    "odd matmul": "g ({t}[7,33] x, {t}[33,5] w1) => ({t}[7,5] y) { y = MatMul (x, w1) }",
    "batched matmul": "g ({t}[2,4,32,48] x, {t}[2,4,48,32] z) => ({t}[2,4,32,32] y) { y = MatMul (x, z) }",
    "gemm": """g ({t}[5,70] x, {t}[90,70] w1, {t}[90] w2) => ({t}[5,90] y)
        { y = Gemm <transB = 1, alpha = 0.5, beta = 2.0> (x, w1, w2) }""",
    "attention": """g ({t}[1,16,64] x, {t}[64,64] w1, {t}[64,64] w2, {t}[64,64] w3, int64[4] head, int64[3] tail,
        {t} root) => ({t}[1,16,64] y) { q = MatMul (x, w1) k1 = MatMul (x, w2) v = MatMul (x, w3)
        q1 = Reshape (q, head) k2 = Reshape (k1, head) v1 = Reshape (v, head)
        q2 = Transpose <perm = [0,2,1,3]> (q1) k3 = Transpose <perm = [0,2,3,1]> (k2)
        v2 = Transpose <perm = [0,2,1,3]> (v1) s = MatMul (q2, k3) s1 = Div (s, root) p = Softmax <axis = -1> (s1)
        o = MatMul (p, v2) o1 = Transpose <perm = [0,2,1,3]> (o) y = Reshape (o1, tail) }""",
    "softmax": "g ({t}[4,8,100] x) => ({t}[4,8,100] y) { y = Softmax <axis = -1> (x) }",
    "softmax across": "g ({t}[2,10,6,6] x) => ({t}[2,10,6,6] y) { y = LogSoftmax <axis = 1> (x) }",
    "layer norm": """g ({t}[6,5,80] x, {t}[80] w1, {t}[80] w2) => ({t}[6,5,80] y)
        { y = LayerNormalization <axis = -1> (x, w1, w2) }""",
    "spelled layer norm": """g ({t}[6,5,80] x, {t}[80] w1, {t}[80] w2, int64[1] last, {t} two, {t} eps)
        => ({t}[6,5,80] y) { m = ReduceMean (x, last) d = Sub (x, m) q = Pow (d, two) v = ReduceMean (q, last)
        e = Add (v, eps) r = Sqrt (e) n = Div (d, r) s = Mul (n, w1) y = Add (s, w2) }""",
    "instance norm": """g ({t}[2,6,9,9] x, {t}[6] w1, {t}[6] w2) => ({t}[2,6,9,9] y)
        { y = InstanceNormalization (x, w1, w2) }""",
    "group norm": """g ({t}[2,6,9,9] x, {t}[6] w1, {t}[6] w2) => ({t}[2,6,9,9] y)
        { y = GroupNormalization <num_groups = 3> (x, w1, w2) }""",
    "product of two inputs": "g ({t}[8,32] x, {t}[32,24] z) => ({t}[8,24] y) { y = MatMul (x, z) }",
    "product with a transposed input": """g ({t}[32,8] x, {t}[24,32] z) => ({t}[8,24] y)
        { a = Transpose (x) b = Transpose (z) y = MatMul (a, b) }""",
    "rows of batches scaled": """g ({t}[3,6,20] x, {t}[6,1] w, {t}[6,1] z) => ({t}[3,6,20] y)
        { a = Mul (x, w) y = Add (a, z) }""",
    "local response": "g ({t}[1,12,7,7] x) => ({t}[1,12,7,7] y) { y = LRN <size = 5> (x) }",
    "reductions": """g ({t}[3,40,5] x, int64[1] axis1) => ({t}[3,1,5] a, {t}[3,1,5] b, {t}[3,1,5] c, {t}[3,1,5] d)
        { a = ReduceMean (x, axis1) b = ReduceMax (x, axis1) c = ReduceL2 (x, axis1) d = ReduceSum (x, axis1) }""",
    "global average": "g ({t}[2,20,7,7] x) => ({t}[2,20,1,1] y) { y = GlobalAveragePool (x) }",
    "max pool": """g ({t}[1,6,15,15] x) => ({t}[1,6,8,8] y)
        { y = MaxPool <kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1]> (x) }""",
    "average pool": """g ({t}[1,6,15,15] x) => ({t}[1,6,8,8] y)
        { y = AveragePool <kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1], count_include_pad = 0> (x) }""",
    "arithmetic": """g ({t}[4,1,33] x, {t}[5,33] z, {t} low, {t} high) => ({t}[4,5,33] y)
        { a = Add (x, z) b = Mul (a, z) c = Sub (b, x) d = Clip (c, low, high) e = Sigmoid (d) f = Tanh (c)
        y = Max (e, f) }""",
    "gelu": "g ({t}[9,100] x) => ({t}[9,100] y) { y = Gelu (x) }",
    "functions": """g ({t}[7,31] x) => ({t}[7,31] y) { a = Abs (x) b = Exp (x) c = Sqrt (a) d = Erf (x) e = Log (b)
        f = Sin (x) h = Softplus (e) i = Add (c, d) j = Add (f, h) y = Mul (i, j) }""",
    "comparison": """g ({t}[6,8] x, {t}[8] z) => ({t}[6,8] y, bool[6,8] b)
        { b = Less (x, z) n = Neg (x) y = Where (b, n, z) }""",
    "resize nearest": """g ({t}[1,3,6,7] x, float[4] scales) => ({t}[1,3,12,14] y)
        { y = Resize <mode = "nearest"> (x, , scales) }""",
    "resize linear": """g ({t}[1,3,8,8] x, float[4] up) => ({t}[1,3,12,14] y)
        { y = Resize <mode = "linear"> (x, , up) }""",
    "pad": 'g ({t}[1,2,6,6] x, int64[8] pads) => ({t}[1,2,9,9] y) { y = Pad <mode = "reflect"> (x, pads) }',
    "transpose": "g ({t}[2,3,5,7] x) => ({t}[7,3,2,5] y) { y = Transpose <perm = [3,1,0,2]> (x) }",
    "concat": "g ({t}[2,3,5] x, {t}[2,4,5] z) => ({t}[2,7,5] y) { y = Concat <axis = 1> (x, z) }",
    "split": """g ({t}[2,8,5] x, int64[2] split) => ({t}[2,3,5] y, {t}[2,5,5] z)
        { y, z = Split <axis = 1> (x, split) }""",
    "slice": """g ({t}[1,2,10,8] x, int64[2] starts, int64[2] ends, int64[2] axes23, int64[2] steps)
        => ({t}[1,2,4,7] y) { y = Slice (x, starts, ends, axes23, steps) }""",
    "gather": "g ({t}[3,6] x, int64[4] places) => ({t}[3,4] y) { y = Gather <axis = 1> (x, places) }",
    "expand": "g ({t}[6,1,5] x, int64[4] target) => ({t}[2,6,9,5] y) { y = Expand (x, target) }",
    "depth to space": "g ({t}[1,12,5,5] x) => ({t}[1,3,10,10] y) { y = DepthToSpace <blocksize = 2> (x) }",
    "integers": """g (int64[3,4] x, int64[4] z) => (int64[3,4] y, bool[3,4] b)
        { a = Add (x, z) b = Equal (a, z) y = Mul (a, x) }""",
    "casts": """g (int32[3,4] x, float[3,4] z) => (float[3,4] y, int32[3,4] i)
        { a = Cast <to = 1> (x) y = Add (a, z) i = Cast <to = 6> (z) }""",
    "largest": """g ({t}[3,40] x, int64[1] k) => ({t}[3,3] y, int64[3,3] i, int64[3,1] a)
        { y, i = TopK <axis = -1> (x, k) a = ArgMax <axis = 1> (x) }""",
    "lstm": """g ({t}[6,1,10] x, {t}[1,32,10] w1, {t}[1,32,8] w2, {t}[1,64] w3) => ({t}[6,1,1,8] y)
        { y = LSTM <hidden_size = 8> (x, w1, w2, w3) }""",
    "quantised pair": """g (float[1,8,6,6] x, float scale, int8 zero, float[8,8,3,3] w1) => (float[1,8,6,6] y)
        { q = QuantizeLinear (x, scale, zero) d = DequantizeLinear (q, scale, zero)
        y = Conv <pads = [1,1,1,1]> (d, w1) }""",
    "quantised convolution": """g (uint8[1,8,6,6] x, float scale, uint8 zero_u, int8[8,8,3,3] kernel, int8 zero,
        float sum_scale) => (uint8[1,8,4,4] y)
        { y = QLinearConv (x, scale, zero_u, kernel, scale, zero, sum_scale, zero_u) }""",
}
QUANTISED = ("quantised pair", "quantised convolution")


def names() -> list[str]:
    """Returns the names of all models: "convolution/float32"."""
    return [f"{name}/float32" for name in MODELS] + [f"{name}/float16" for name in MODELS if name in HALF_TOO]


def model(name: str) -> onnx.ModelProto:
    """Returns a model by its name."""
    operator, _, dtype = name.rpartition("/")
    kernel = np.random.default_rng(5).integers(-60, 60, (8, 8, 3, 3))
    return model_of(MODELS[operator], dtype, {**CONSTANTS, "kernel": kernel})


def model_of(body: str, dtype: str = "float32", constants: Mapping[str, Any] | None = None) -> onnx.ModelProto:
    """Returns the checked model of a graph's text."""
    text = f'<ir_version: 10, opset_import: ["": 21]> {body.replace("{t}", TEXT_TYPES[dtype])}'
    proto = onnx.parser.parse_model(text)
    random = np.random.default_rng(7)
    for value in list(proto.graph.input):
        known = constants or {}
        if value.name not in known and not value.name.startswith("w"):
            continue
        kind = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        data = known[value.name] if value.name in known else _weights(random, shape)
        proto.graph.input.remove(value)
        array = np.asarray(data).astype(kind).reshape(shape)
        proto.graph.initializer.append(onnx.numpy_helper.from_array(array, value.name))
    onnx.checker.check_model(proto)
    return proto


def _weights(random: np.random.Generator, shape: list[int]) -> Any:
    """Returns normal values; of matrices and kernels so small that a sum over all inputs stays near 1."""
    inputs_a_sum = int(np.prod(shape[1:])) if len(shape) > 1 else 1
    return random.standard_normal(shape) / max(1.0, inputs_a_sum) ** 0.5
