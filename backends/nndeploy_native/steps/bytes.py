# SPDX-License-Identifier: Apache-2.0
"""Bytes that are made of floats, or of bytes: scaled, added up, looked up, the largest of windows; means of bytes."""

from dataclasses import dataclass

from nndeploy.values.size import Dim
from nndeploy_native.expression_program import program_of
from nndeploy_native.expressions import Expression, label_of
from nndeploy_native.steps.convolution import Window
from nndeploy_native.steps.step import Words, Written
from nndeploy_native.tensors import Array, Tensor

MOST_FACTOR = 2.0**20
"""Larger factors of bytes are left to programs: NND_MOST_FACTOR of the kernel library."""


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

    def written(self) -> Written:
        return Written("int8_quantise", "floats as bytes" + (", channels last" if self.channels > 1 else ""), self)


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

    def written(self) -> Written:
        first, second = (*self.terms, None)[:2]
        assert first is not None
        words = Words(self, first=first.x, second=second and second.x, of_first=first, of_second=second or (0, 0.0))
        is_sum = len(self.terms) > 1
        return Written("int8_line", f"bytes of {len(self.terms)} scaled and added" if is_sum else "bytes scaled", words)


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

    def written(self) -> Written:
        program = program_of(self.expression, 1)
        return Written("int8_table", f"table of {label_of(self.expression)}", Words(self, program=program))


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

    def written(self) -> Written:
        rows, columns = self.window.kernel
        return Written("int8_pool", f"max {rows}x{columns} of bytes", self)


@dataclass(frozen=True, slots=True)
class ByteMean:
    """The mean of each channel of an image (N, ..., C), plain: (x - zero) * scale, of float32 (N, C)."""

    output: Tensor
    x: Tensor
    zero: int
    scale: float

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.x,)

    def written(self) -> Written:
        return Written("int8_mean", "mean of bytes", self)


@dataclass(frozen=True, slots=True)
class ByteTimes:
    """output = (x - zero) * factor * by, rounded, plus `out_zero`; x is (N, ..., C), by are floats (N or 1, ..., C)."""

    output: Tensor
    x: Tensor
    by: Tensor
    zero: int
    factor: float
    out_zero: int

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.x, self.by)

    def written(self) -> Written:
        return Written("int8_times", "bytes times channels", self)
