# SPDX-License-Identifier: Apache-2.0
"""The list of kernels: each with its header and a small model whose steps hold it.

Tests build, run and check every row for every instruction set, and compare the list with the functions of c/*.h;
`tests/bench/bench_native_kernels.py` measures every row. c/README.md is the page of the names.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True, slots=True)
class Kernel:
    """`name` as in `Call.kernel`; `graph` is ONNX's text form, `weights` the shapes of its constants by name."""

    name: str
    header: str
    graph: str
    weights: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def model(self) -> "onnx.ModelProto":
        """Returns the model, weights seeded such that values keep their size."""
        import onnx.parser

        model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> g {self.graph}')
        random = np.random.default_rng(0)
        for name, shape in self.weights.items():
            array = (random.standard_normal(shape) / math.sqrt(math.prod(shape[1:]))).astype(np.float32)
            model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
        return onnx.shape_inference.infer_shapes(model, data_prop=True)


_WIDE = "(float[1,70,30,37] x) => (float[1,70,30,37] y)"
_PLAIN = "(float[4,50,60] x) => (float[4,50,{size}] y)"
_PAIR = "d = Conv<group=70, pads=[1,1,1,1]>({x}, w1) e = Relu(d) p = Conv(e, w2)"
_PAIR_WEIGHTS = {"w1": (70, 1, 3, 3), "w2": (40, 70, 1, 1)}

KERNELS = (
    Kernel("pointwise", "pointwise.h", f"{_WIDE} {{ y = Conv(x, w) }}", {"w": (70, 70, 1, 1)}),
    Kernel("convolution", "convolution.h", f"{_WIDE} {{ y = Conv<pads=[1,1,1,1]>(x, w) }}", {"w": (70, 70, 3, 3)}),
    Kernel(
        "first_convolution", "convolution.h",
        "(float[1,3,61,75] x) => (float[1,40,31,38] y) { y = Conv<strides=[2,2], pads=[1,1,1,1]>(x, w) }",
        {"w": (40, 3, 3, 3)},
    ),
    Kernel("depthwise", "depthwise.h", f"{_WIDE} {{ y = Conv<group=70, pads=[1,1,1,1]>(x, w) }}", {"w": (70, 1, 3, 3)}),
    Kernel(
        "separable", "separable.h",
        f"(float[1,70,30,37] x) => (float[1,40,30,37] y) {{ a = Conv(x, w0) {_PAIR.format(x='a')} y = Conv(p, w3) }}",
        {"w0": (70, 70, 1, 1), **_PAIR_WEIGHTS, "w3": (40, 40, 1, 1)},
    ),
    Kernel(
        "planar_separable", "planar_separable.h",
        f"(float[1,70,30,37] x) => (float[1,40,30,37] p) {{ {_PAIR.format(x='x')} }}", _PAIR_WEIGHTS,
    ),
    Kernel(
        "stem", "stem.h",
        "(float[1,3,60,74] x) => (float[1,40,30,37] y) { a = Conv<strides=[2,2], pads=[1,1,1,1]>(x, w0) "
        f"{_PAIR.format(x='a')} y = Conv(p, w3) }}",
        {"w0": (70, 3, 3, 3), **_PAIR_WEIGHTS, "w3": (40, 40, 1, 1)},
    ),
    Kernel(
        "inverted_residual", "inverted_residual.h",
        f"(float[1,24,30,37] x) => (float[1,40,30,37] p) {{ a = Conv(x, w0) {_PAIR.format(x='a')} }}",
        {"w0": (70, 24, 1, 1), **_PAIR_WEIGHTS},
    ),
    Kernel("grouped", "grouped.h", f"{_WIDE} {{ y = Conv<group=5, pads=[1,1,1,1]>(x, w) }}", {"w": (70, 14, 3, 3)}),
    Kernel(
        "transposed", "grouped.h",
        "(float[1,70,15,18] x) => (float[1,24,30,36] y) { y = ConvTranspose<strides=[2,2]>(x, w) }",
        {"w": (70, 24, 2, 2)},
    ),
    Kernel("pool_max", "pooling.h", f"{_WIDE} {{ y = MaxPool<kernel_shape=[3,3], pads=[1,1,1,1]>(x) }}"),
    Kernel("pool_mean", "pooling.h", f"{_WIDE} {{ y = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1]>(x) }}"),
    Kernel(
        "resize", "resize.h",
        '(float[1,70,15,18] x) => (float[1,70,30,36] y) <float[4] s = {1,1,2,2}> { y = Resize<mode="linear">(x, , s) }',
    ),
    Kernel(
        "repeat", "resize.h",
        "(float[1,70,15,18] x) => (float[1,70,30,36] y) <float[4] s = {1,1,2,2}> { y = Resize(x, , s) }",
    ),
    Kernel(
        "elementwise_blocked", "elementwise.h",
        f"{_WIDE} {{ a = Conv(x, w) m = GlobalAveragePool(a) s = Sigmoid(m) y = Mul(a, s) }}", {"w": (70, 70, 1, 1)},
    ),
    Kernel("elementwise_plain", "elementwise.h", f"{_PLAIN.format(size=60)} {{ y = Exp(x) }}"),
    Kernel("fully_connected", "matrix.h", "(float[7,300] x) => (float[7,210] y) { y = Gemm(x, w) }", {"w": (300, 210)}),
    Kernel(
        "product", "matrix.h", "(float[4,50,60] x, float[4,60,70] z) => (float[4,50,70] y) { y = MatMul(x, z) }"
    ),
    Kernel(
        "lstm", "recurrent.h",
        "(float[20,4,30] x) => (float[20,2,4,40] y) "
        '{ y = LSTM<hidden_size=40, direction="bidirectional">(x, w, r, b) }',
        {"w": (2, 160, 30), "r": (2, 160, 40), "b": (2, 320)},
    ),
    Kernel("softmax", "along_axis.h", f"{_PLAIN.format(size=60)} {{ y = Softmax(x) }}"),
    Kernel("log_softmax", "along_axis.h", f"{_PLAIN.format(size=60)} {{ y = LogSoftmax(x) }}"),
    *(
        Kernel(
            f"reduce_{kind}", "along_axis.h",
            f"(float[4,50,60] x) => (float[4,50,1] y) <int64[1] axes = {{2}}> {{ y = Reduce{kind.title()}(x, axes) }}",
        )
        for kind in ("mean", "sum", "max")
    ),
    *(
        Kernel(name, "layout.h", f"{_WIDE} {{ y = Conv<group=70, pads=[1,1,1,1]>(x, w) }}", {"w": (70, 1, 3, 3)})
        for name in ("blocked_from_plain", "plain_from_blocked")
    ),
    Kernel(
        "channel_parts", "movement.h",
        "(float[1,70,30,37] x) => (float[1,40,30,37] y) <int64[5] t = {1,2,35,30,37}, int64[4] u = {1,70,30,37}> "
        "{ a = Conv<pads=[1,1,1,1]>(x, w) b = Reshape(a, t) c = Transpose<perm=[0,2,1,3,4]>(b) d = Reshape(c, u) "
        "y = Conv(d, v) }",
        {"w": (70, 70, 3, 3), "v": (40, 70, 1, 1)},
    ),
    Kernel(
        "gather", "movement.h",
        "(float[4,50,60] x) => (float[4,50,7] y) <int64[7] i = {3,1,4,15,9,2,6}> { y = Gather<axis=2>(x, i) }",
    ),
    Kernel(
        "gather_blocked", "movement.h",
        "(float[1,70,30,37] x) => (float[1,70,30,7] y) <int64[7] i = {3,1,4,15,9,2,6}> "
        "{ a = MaxPool<kernel_shape=[3,3], pads=[1,1,1,1]>(x) y = Gather<axis=3>(a, i) }",
    ),
    Kernel("strided_copy", "movement.h", "(float[4,50,60] x) => (float[60,4,50] y) { y = Transpose<perm=[2,0,1]>(x) }"),
    Kernel(
        "strided_copy_blocked", "movement.h",
        "(float[1,64,30,37] x) => (float[1,30,37,64] y) { a = MaxPool<kernel_shape=[3,3], pads=[1,1,1,1]>(x) "
        "y = Transpose<perm=[0,2,3,1]>(a) }",
    ),
    Kernel(
        "padded_copy", "movement.h",
        "(float[4,50,60] x) => (float[4,53,65] y) <int64[6] p = {0,1,2,0,2,3}> { y = Pad(x, p) }",
    ),
    Kernel(
        "gather_rows", "movement.h", "(int64[4,50] i) => (float[4,50,60] y) { y = Gather(w, i) }", {"w": (70, 60)},
    ),
    Kernel(
        "join_plain", "movement.h",
        "(float[4,50,60] x, float[4,50,9] z) => (float[4,50,69] y) { y = Concat<axis=2>(x, z) }",
    ),
)  # fmt: skip
"""One row a kernel, in the order of c/README.md."""
