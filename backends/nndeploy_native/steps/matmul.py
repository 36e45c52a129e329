# SPDX-License-Identifier: Apache-2.0
"""Products of plain matrices: by constant weights, packed, of floats or of few bits, or of two values."""

from dataclasses import dataclass, field, replace

import numpy as np

from nndeploy.values.size import Dim
from nndeploy_native.steps.movement import View, contiguous
from nndeploy_native.steps.step import PLAIN, Epilogue, Words, Written
from nndeploy_native.tensors import Array, Shape, Tensor


@dataclass(frozen=True, slots=True, eq=False)
class OfBlocks:
    """Numbers of blocks of columns: that of block b of column c is number b * block_step + c * column_step."""

    numbers: Array
    block_step: int
    column_step: int


@dataclass(frozen=True, slots=True, eq=False)
class BitWeights:
    """A matrix (inner, columns) of (number - zero point) * scale, with one of each for each block along a column.

    Element (k, c) is number k * steps[0] + c * steps[1] of `numbers`, which are bytes: numbers of 4 bits two a byte,
    the first one low. Zero points are numbers of the same kind, or float32; `zero` is that of all where there are none.
    Where `rounds_rows`, what they are multiplied by may be rounded to bytes, block by block; of 4 bits alone.
    """

    numbers: Array
    bits: int
    is_signed: bool
    inner: int
    columns: int
    steps: tuple[int, int]
    block: int
    scales: OfBlocks | None
    zeros: OfBlocks | None = None
    zero: int = 0
    rounds_rows: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """The sizes of the matrix."""
        return self.inner, self.columns

    def words(self) -> Words:
        """Returns their words."""
        return Words(self, scales=self.scales or (None, 0, 0), zeros=self.zeros or (None, 0, 0))


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """output (..., rows, columns) = epilogue(a (..., rows, inner) by b (..., inner, columns) + bias (columns)).

    `b` is a view of as many axes as `a`, of the same batch, or constant weights whose batch is broadcast, of few bits
    where they are one matrix. Columns lie side by side in the output; `strides`, where there are any, are those of its
    other axes, which may stand in any order and fill it.
    """

    output: Tensor
    a: View
    b: View | Array | BitWeights
    bias: Array | None = None
    epilogue: Epilogue = field(default=PLAIN)
    strides: Shape | None = None

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        b = (self.b.base,) if isinstance(self.b, View) else ()
        return (self.a.base, *b, *self.epilogue.inputs)

    @property
    def b_view(self) -> View:
        """The second operand as a view with the batch of the first."""
        b = self.b if isinstance(self.b, View) else View.of(Tensor("", self.b.shape))
        return b.expanded((*self.a.sizes[:-2], *b.sizes[-2:]))

    @property
    def sizes(self) -> Shape:
        """The axes of the product: (..., rows, columns)."""
        columns = self.b.sizes[-1] if isinstance(self.b, View) else self.b.shape[-1]
        return (*self.a.sizes[:-1], columns)

    @property
    def out_strides(self) -> Shape:
        """How many elements of the output lie from one place of each axis to the next."""
        return contiguous(self.sizes) if self.strides is None else self.strides

    def with_epilogue(self, epilogue: Epilogue, output: Tensor) -> "Product":
        """Returns the step with another end."""
        return replace(self, epilogue=epilogue, output=output)

    def written(self) -> Written:
        a, b, out = self.a, self.b_view, self.out_strides
        (*batch, rows, columns), inner = self.sizes, a.sizes[-1]
        words = Words(
            self,
            a=a.base,
            sizes=(rows, inner, columns, b.sizes[-2], a.offset, *a.strides[-2:]),
            of_b=(b.offset, *b.strides[-2:]),
            of_out=(out[-2], tuple(zip(batch, a.strides, b.strides, out, strict=False)), self.output),
        )
        if isinstance(self.b, View):
            return Written("product", f"product {rows}x{inner}x{columns}", words.but(b=self.b.base))
        if isinstance(self.b, BitWeights):
            what = "float16" if self.b.scales is None else f"{self.b.bits} bits in blocks of {self.b.block}"
            label = f"fully connected {inner}->{columns}, {what}"
            return Written("bits_connected", label, words.but(bits=self.b.words()))
        weights, turned = np.asarray(self.b, np.float32), np.asarray(self.b, np.float32).swapaxes(-1, -2)
        is_transposed = turned.flags.c_contiguous and not weights.flags.c_contiguous
        words = words.but(weights=turned if is_transposed else weights, is_transposed=is_transposed)
        return Written("fully_connected", f"fully connected {inner}->{columns}", words)


@dataclass(frozen=True, slots=True, eq=False)
class DoubleProduct:
    """output (rows, columns) = a (rows, inner) by b (inner, columns), all of float64."""

    output: Tensor
    a: Tensor
    b: Tensor
    rows: Dim
    inner: Dim
    columns: Dim

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.a, self.b)

    def written(self) -> Written:
        return Written("double_product", f"product of float64, {self.inner}->{self.columns}", Words(self))
