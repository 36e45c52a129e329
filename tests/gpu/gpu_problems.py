# SPDX-License-Identifier: Apache-2.0
"""The problems whose speed is measured, and what a GPU could do at most: bytes and operations a second.

Separable blocks of MobileNet V1 and V2, and what memory or arithmetic bounds.

Each knows how many bytes have to cross the memory at least (inputs, weights, outputs; what lies between two operators
of one problem need not) and how many operations it takes, a multiply-add being two.
Source: MobileNets (2017), table 1; MobileNetV2 (2018), table 2, for images of 224 x 224. CUDA C++ Programming Guide,
arithmetic throughput a multiprocessor and clock; NVIDIA's architecture papers for the dense rates of tensor cores.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import onnx
from gpu_operator_models import model_of

ITEM_BYTES = {"float32": 4, "float16": 2}


@dataclass(frozen=True, slots=True)
class Separable:
    """Depthwise 3x3, then pointwise: `size` x `size` images of `channels`, to `outputs`; V2 ends without activation.

    Padded by 1 all around, as PyTorch's networks are.
    """

    version: str
    batch: int
    size: int
    channels: int
    outputs: int
    stride: int
    dtype: str

    @property
    def name(self) -> str:
        """For example "separable v1 b1 112x112x32-64 s1 float32"."""
        shape = f"{self.size}x{self.size}x{self.channels}-{self.outputs}"
        return f"separable {self.version} b{self.batch} {shape} s{self.stride} {self.dtype}"

    @property
    def size_out(self) -> int:
        """The size of the images after the stride."""
        return -(-self.size // self.stride)

    @property
    def num_bytes(self) -> float:
        """Bytes of the input, the weights and the output."""
        images = self.batch * (self.size**2 * self.channels + self.size_out**2 * self.outputs)
        weights = 10 * self.channels + (self.channels + 1) * self.outputs
        return ITEM_BYTES[self.dtype] * float(images + weights)

    @property
    def num_operations(self) -> float:
        """Operations of both convolutions."""
        return 2.0 * self.batch * self.size_out**2 * self.channels * (9 + self.outputs)

    def proto(self) -> onnx.ModelProto:
        """Returns the model."""
        n, c, m, size, out = self.batch, self.channels, self.outputs, self.size, self.size_out
        ends = "q = Conv (r, w3, w4) y = Clip (q, low, high)" if self.version == "v1" else "y = Conv (r, w3, w4)"
        body = f"""g ({{t}}[{n},{c},{size},{size}] x, {{t}}[{c},1,3,3] w1, {{t}}[{c}] w2, {{t}}[{m},{c},1,1] w3,
            {{t}}[{m}] w4, {{t}} low, {{t}} high) => ({{t}}[{n},{m},{out},{out}] y)
            {{ d = Conv <group = {c}, strides = [{self.stride},{self.stride}], pads = [1,1,1,1]> (x, w1, w2)
            r = Clip (d, low, high) {ends} }}"""
        return model_of(body, self.dtype, {"low": 0.0, "high": 6.0})


@dataclass(frozen=True, slots=True)
class Plain:
    """A problem as text, with its bytes (of items) and operations counted by hand."""

    operator: str
    shape: str
    dtype: str
    body: str
    num_items: float
    num_operations: float

    @property
    def name(self) -> str:
        """For example "softmax 4096x1024 float32"."""
        return f"{self.operator} {self.shape} {self.dtype}"

    @property
    def num_bytes(self) -> float:
        """Bytes of inputs, weights and outputs."""
        return ITEM_BYTES[self.dtype] * self.num_items

    def proto(self) -> onnx.ModelProto:
        """Returns the model."""
        return model_of(self.body, self.dtype)


Problem = Separable | Plain
V1 = ((112, 32, 64, 1), (112, 64, 128, 2), (56, 128, 128, 1), (56, 128, 256, 2), (28, 256, 256, 1), (28, 256, 512, 2),
      (14, 512, 512, 1), (14, 512, 1024, 2), (7, 1024, 1024, 1))  # fmt: skip
V2 = ((112, 32, 16, 1), (112, 96, 24, 2), (56, 144, 24, 1), (56, 144, 32, 2), (28, 192, 32, 1), (28, 192, 64, 2),
      (14, 384, 64, 1), (14, 384, 96, 1), (14, 576, 96, 1), (14, 576, 160, 2), (7, 960, 160, 1),
      (7, 960, 320, 1))  # fmt: skip
FEW = {(112, 32, 64, 1), (56, 128, 128, 1), (14, 512, 512, 1), (112, 96, 24, 2), (28, 192, 32, 1), (7, 960, 320, 1)}
"""The shapes that are measured first, and with large batches and float16 too."""


def _plain(dtype: str) -> list[Problem]:
    rows, cols = 8192, 1024
    size = 1 << 24
    n = 2048
    return [
        Plain("layer norm", f"{rows}x{cols}", dtype,
              f"g ({{t}}[{rows},{cols}] x, {{t}}[{cols}] w1, {{t}}[{cols}] w2) => ({{t}}[{rows},{cols}] y) "
              "{ y = LayerNormalization <axis = -1> (x, w1, w2) }", 2.0 * rows * cols, 8.0 * rows * cols),
        Plain("softmax", f"{rows}x{cols}", dtype,
              f"g ({{t}}[{rows},{cols}] x) => ({{t}}[{rows},{cols}] y) {{ y = Softmax <axis = -1> (x) }}",
              2.0 * rows * cols, 5.0 * rows * cols),
        Plain("elementwise", "chain of 5 on 16M", dtype,
              f"g ({{t}}[{size}] x, {{t}}[{size}] z) => ({{t}}[{size}] y) "
              "{ a = Add (x, z) b = Mul (a, z) c = Sigmoid (b) d = Mul (b, c) y = Add (d, x) }",
              3.0 * size, 8.0 * size),
        Plain("matmul", f"{n}x{n}x{n}", dtype,
              f"g ({{t}}[{n},{n}] x, {{t}}[{n},{n}] w1) => ({{t}}[{n},{n}] y) {{ y = MatMul (x, w1) }}",
              3.0 * n * n, 2.0 * n**3),
        Plain("convolution", "b8 56x56x64-64 3x3", dtype,
              "g ({t}[8,64,56,56] x, {t}[64,64,3,3] w1, {t}[64] w2) => ({t}[8,64,56,56] y) "
              "{ c = Conv <pads = [1,1,1,1]> (x, w1, w2) y = Relu (c) }",
              2.0 * 8 * 64 * 56 * 56 + 64 * 64 * 9, 2.0 * 8 * 64 * 56 * 56 * 64 * 9),
    ]  # fmt: skip


def problems() -> dict[str, Problem]:
    """Returns all problems by name, the most telling first."""
    shapes = [("v1", shape) for shape in V1] + [("v2", shape) for shape in V2]
    first = [(version, shape) for version, shape in shapes if shape in FEW]
    rest = [(version, shape) for version, shape in shapes if shape not in FEW]

    def separable(of: list[tuple[str, tuple[int, int, int, int]]], batch: int, dtype: str) -> list[Problem]:
        return [Separable(version, batch, *shape, dtype) for version, shape in of]

    found = separable(first, 1, "float32") + _plain("float32") + separable(first, 32, "float32")
    found += separable(first, 1, "float16") + separable(first, 32, "float16") + _plain("float16")
    found += separable(rest, 1, "float32")
    return {problem.name: problem for problem in found}


_LANES = {(7, 5): 64, (8, 0): 64}
_USUAL_LANES = 128
_TF32_FMA = {(8, 0): 512, (8, 6): 128, (8, 7): 256, (8, 9): 128, (9, 0): 1024, (10, 0): 1024, (12, 0): 128}
_FLOAT16_FMA = {(7, 5): 256, (8, 0): 1024, (8, 6): 256, (8, 7): 512, (8, 9): 256, (9, 0): 2048, (10, 0): 2048}
"""Multiply-adds of tensor cores, a clock and multiprocessor, with sums in float32."""
_TF32_PRODUCTS = 3  # a float32 product takes three of TF32, see nndeploy_triton.gpu


@dataclass(frozen=True, slots=True)
class Peaks:
    """Bytes and operations a second; `l2_bytes` tells whether a problem ever leaves the chip. 0 is unknown."""

    bytes_per_s: float
    float32_per_s: float
    float16_per_s: float
    l2_bytes: int

    def floor_ms(self, num_bytes: float, num_operations: float, dtype: str) -> float:
        """Returns the least milliseconds for moving the bytes and doing the operations, each at its peak."""
        rate = self.float16_per_s if dtype == "float16" else self.float32_per_s
        times = [num_bytes / self.bytes_per_s if self.bytes_per_s else 0.0, num_operations / rate if rate else 0.0]
        return 1e3 * max(times)


def peaks_of(capability: str, descriptor: Mapping[str, Any]) -> Peaks:
    """Returns the peaks of a GPU from its compute capability and cuDNN descriptor (clocks in kHz, width in bits)."""
    major, _, minor = capability.partition(".")
    kind = (int(major), int(minor))
    clocks = descriptor.get("multiProcessorCount", 0) * descriptor.get("smClockRateKHz", 0) * 1e3
    per_fma = 2.0
    plain = clocks * _LANES.get(kind, _USUAL_LANES) * per_fma
    tensor32 = clocks * _TF32_FMA.get(kind, 0) * per_fma / _TF32_PRODUCTS
    tensor16 = clocks * _FLOAT16_FMA.get(kind, 2 * _TF32_FMA.get(kind, 0)) * per_fma
    both_edges = 2
    memory = descriptor.get("memClockRateKHz", 0) * 1e3 * both_edges * descriptor.get("memoryBusWidth", 0) / 8
    return Peaks(float(memory), max(plain, tensor32), max(plain, tensor16), int(descriptor.get("l2CacheSize", 0)))
