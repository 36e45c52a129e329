# SPDX-License-Identifier: Apache-2.0
"""Random convolutions, transposed convolutions and Gemms for tests, and the batch-norms that follow them."""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from passes_harness import GraphBuilder

KINDS = ("Conv", "ConvTranspose", "Gemm")


def draw_filter(data: st.DataObject, build: GraphBuilder, kind: str | None = None) -> tuple[str, int, int]:
    """Returns (output, channels, rank) of a random filter on a new input; sometimes its weights are no constant."""
    kind = kind or data.draw(st.sampled_from(KINDS), label="filter")
    generator = np.random.default_rng(data.draw(st.integers(0, 999), label="seed"))
    is_constant = data.draw(st.integers(0, 7), label="constant weights") > 0
    has_bias = data.draw(st.booleans(), label="bias") or (kind == "Gemm" and build.opset < 11)

    def weights(shape: list[int]) -> str:
        return build.constant(generator.standard_normal(shape)) if is_constant else build.input(shape)

    if kind == "Gemm":
        return _gemm(data, build, generator, weights, has_bias)
    # ONNX's evaluator cannot compute a ConvTranspose in groups; ONNX Runtime can, but not in float64
    in_groups = kind == "Conv" or build.dtype == np.float32
    group = data.draw(st.sampled_from([1, 1, 2] if in_groups else [1]), label="group")
    inputs, outputs = 2 * group, group * data.draw(st.integers(1, 2), label="outputs per group")
    spatial = data.draw(st.integers(1, 2), label="spatial axes")
    kernel = [data.draw(st.integers(1, 3)) for _ in range(spatial)]
    x = build.input([1, inputs, *(size + 2 for size in kernel)])
    shape = [outputs, inputs // group] if kind == "Conv" else [inputs, outputs // group]
    operands = [x, weights([*shape, *kernel])]
    if has_bias:
        operands.append(build.constant(generator.standard_normal(outputs)))
    pads = [data.draw(st.integers(0, 1)) for _ in range(2 * spatial)] if kind == "Conv" else [0] * (2 * spatial)
    value = build.node(kind, *operands, group=group, pads=pads, strides=[1] * spatial)
    return value, outputs, spatial + 2


def _gemm(
    data: st.DataObject, build: GraphBuilder, generator: Any, weights: Any, has_bias: bool
) -> tuple[str, int, int]:
    transposed, columns = data.draw(st.booleans(), label="transB"), 3
    operands = [build.input([2, 4]), weights([columns, 4] if transposed else [4, columns])]
    if has_bias:
        shapes = [(), (1,), (columns,), (1, columns), (2, 1), (2, columns)]
        operands.append(build.constant(generator.standard_normal(data.draw(st.sampled_from(shapes), label="bias"))))
    return build.node("Gemm", *operands, alpha=0.5, beta=2.0, transB=int(transposed)), columns, 2


def draw_batchnorm(data: st.DataObject, build: GraphBuilder, value: str, channels: int) -> str:
    """Returns the output of a random batch-norm on `value`; sometimes its scale is no constant."""
    generator = np.random.default_rng(data.draw(st.integers(0, 999), label="seed of batch-norm"))
    scale, bias, mean = generator.standard_normal((3, channels))
    variance = np.abs(generator.standard_normal(channels)) + 0.1
    first = build.constant(scale) if data.draw(st.integers(0, 7)) else build.input([channels])
    rest = [build.constant(array) for array in (bias, mean * data.draw(st.sampled_from([1, 500])), variance)]
    return build.node("BatchNormalization", value, first, *rest, epsilon=data.draw(st.sampled_from([1e-5, 1e-2])))


def draw_channel_constant(data: st.DataObject, build: GraphBuilder, channels: int, rank: int) -> str:
    """Returns a constant that is one number for each channel, or not quite."""
    generator = np.random.default_rng(data.draw(st.integers(0, 999), label="seed of constant"))
    shapes = [
        (), (1,), (1,) * rank, (channels, *(1,) * (rank - 2)), (1, channels, *(1,) * (rank - 2)),
        (channels,), (1,) * (rank + 1), (2, channels, *(1,) * (rank - 2)),
    ]  # fmt: skip
    return build.constant(np.abs(generator.standard_normal(data.draw(st.sampled_from(shapes), label="shape"))) + 0.25)
