# SPDX-License-Identifier: Apache-2.0
"""Bytes that are made of floats, or of bytes: scaled and added up, looked up in a table, or the largest of windows."""

from dataclasses import dataclass

from nndeploy.values.size import Dim
from nndeploy_native.expressions import Expression
from nndeploy_native.steps.convolution import Window
from nndeploy_native.tensors import Array, Tensor


@dataclass(frozen=True, slots=True)
class Quantise:
    """output[o][i][c] = the byte nearest to x[o][c][i] / scale + zero, of plain float32; ties to even.

    `outer`, `channels` and `inner` are their numbers.
    """

    output: Tensor
    x: Tensor
    scale: float
    zero: int
    outer: Dim
    channels: int
    inner: Dim

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.x,)


@dataclass(frozen=True, slots=True)
class ByteTerm:
    """(x - zero) * factor, of a plain tensor of uint8 or int8."""

    x: Tensor
    zero: int
    factor: float


@dataclass(frozen=True, slots=True, eq=False)
class ByteLine:
    """output = the sum of one or two terms and `added`, rounded, plus `zero`, within `least` and `most`; all lie alike.

    `added` are floats, one for each place of the last axis.
    """

    output: Tensor
    terms: tuple[ByteTerm, ...]
    zero: int
    least: int
    most: int
    added: Array | None = None

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return tuple(term.x for term in self.terms)


@dataclass(frozen=True, slots=True)
class ByteTable:
    """output = expression(x), of each byte alone: of uint8 or int8, plain."""

    output: Tensor
    x: Tensor
    expression: Expression

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.x,)


@dataclass(frozen=True, slots=True)
class BytePooling:
    """The largest byte of each window of an image (N, H, W, C), plain."""

    output: Tensor
    x: Tensor
    window: Window

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.x,)
