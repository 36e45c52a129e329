# SPDX-License-Identifier: Apache-2.0
"""The small vocabulary between ONNX and cuDNN: what the patterns write and the emitter reads.

An ONNX node becomes a few of these operations on `Value`s; the emitter joins them into cuDNN graphs, gives the values
a place in memory and asks cuDNN for plans. `Relabel` and `Join` need no arithmetic, only strides, where that works.
All sizes are known. Law: an operation makes one value, after the values it reads.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from nndeploy_cudnn.views import Dims

Array: TypeAlias = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A tensor of known size; `constant` holds its elements where they are known now."""

    name: str
    dims: Dims
    dtype: str
    constant: Array | None = None

    def __repr__(self) -> str:
        return f"{self.name}: {self.dtype}{list(self.dims)}"


@dataclass(frozen=True, slots=True, eq=False)
class Convolution:
    """y = alpha * conv(x, w): cross-correlation, x (N, C, ...), w (K, C / groups, ...), y (N, K, ...).

    `before` and `after` are the zeros around x, one number for each spatial axis.
    """

    x: Value
    w: Value
    y: Value
    strides: Dims
    before: Dims
    after: Dims
    dilations: Dims
    alpha: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class TransposedConvolution:
    """y is such that `Convolution` maps its gradient: x (N, K, ...), w (K, C / groups, ...), y (N, C, ...)."""

    x: Value
    w: Value
    y: Value
    strides: Dims
    before: Dims
    after: Dims
    dilations: Dims


@dataclass(frozen=True, slots=True, eq=False)
class Matmul:
    """y = x @ w as numpy has it; x and w have two axes or more."""

    x: Value
    w: Value
    y: Value


@dataclass(frozen=True, slots=True, eq=False)
class Pointwise:
    """y = mode(inputs), element by element, with broadcasting; `mode` is a name of `descriptors.POINTWISE_MODES`."""

    mode: str
    inputs: tuple[Value, ...]
    y: Value
    attributes: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """y is x (N, C, ...) seen through windows; `mode` is "max", "average" or "average-with-padding"."""

    mode: Literal["max", "average", "average-with-padding"]
    x: Value
    y: Value
    window: Dims
    strides: Dims
    before: Dims
    after: Dims


@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """y = alpha * sum(x) or max(x) over `axes`, which stay in y with size 1."""

    mode: Literal["sum", "max"]
    x: Value
    y: Value
    axes: tuple[int, ...]
    alpha: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Normalization:
    """y = (x - mean) / sqrt(variance + epsilon) * scale + bias.

    "layer": x (M, K), mean over K, scale and bias (K,); "instance": x (N, C, S), mean over S, scale and bias (C,).
    """

    mode: Literal["layer", "instance"]
    x: Value
    scale: Value
    bias: Value
    y: Value
    epsilon: float


@dataclass(frozen=True, slots=True, eq=False)
class Reshaped:
    """y holds the elements of x in the same order under other dims."""

    x: Value
    y: Value


@dataclass(frozen=True, slots=True, eq=False)
class Transposed:
    """Axis `i` of y is axis `permutation[i]` of x."""

    x: Value
    y: Value
    permutation: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Sliced:
    """y holds elements `start`, `start + step`, ... of one axis of x."""

    x: Value
    y: Value
    axis: int
    start: int
    step: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Join:
    """y holds the inputs one after the other along an axis."""

    inputs: tuple[Value, ...]
    y: Value
    axis: int


@dataclass(frozen=True, slots=True, eq=False)
class ZeroPad:
    """y is x (N, C, ...) with zeros around its spatial axes."""

    x: Value
    y: Value
    before: Dims
    after: Dims


Relabel: TypeAlias = Reshaped | Transposed | Sliced
Operation: TypeAlias = (
    Convolution
    | TransposedConvolution
    | Matmul
    | Pointwise
    | Pool
    | Reduction
    | Normalization
    | Reshaped
    | Transposed
    | Sliced
    | Join
    | ZeroPad
)


def values_read(operation: Operation) -> tuple[Value, ...]:
    """Returns the values that an operation reads, in order."""
    match operation:
        case Pointwise(inputs=inputs) | Join(inputs=inputs):
            return inputs
        case Convolution(x=x, w=w) | TransposedConvolution(x=x, w=w) | Matmul(x=x, w=w):
            return x, w
        case Normalization(x=x, scale=scale, bias=bias):
            return x, scale, bias
        case _:
            return (operation.x,)
