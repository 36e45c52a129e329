# SPDX-License-Identifier: Apache-2.0
"""What products and convolutions of bytes have in common: exact sums, and what becomes of them."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Self

from nndeploy_native.expression_program import program_of
from nndeploy_native.expressions import Expression
from nndeploy_native.steps.step import PLAIN, Epilogue, Words, Written
from nndeploy_native.tensors import Array, Shape, Tensor


@dataclass(frozen=True, slots=True, eq=False)
class IntegerSums(ABC):
    """output = epilogue(sums * factors * factor + bias), with one of each for a column of the output, or one of all.

    sums = (a - zero) by (weights - zeros) + whole_bias, in int32, which wraps; `a` and `weights` are uint8 or int8,
    and so are `zero`, a tensor of one element or a constant, and `zeros`, one or one a column. An output of bytes holds
    the nearest number of those that it has, after `output_zero` was added, and then what `table`, an expression of one
    byte, makes of it. One of int32 holds the sums.
    """

    output: Tensor
    a: Tensor
    weights: Array
    zero: Tensor | Array | None = None
    zeros: Array | None = None
    whole_bias: Array | None = None
    factors: Array | None = None
    factor: Tensor | None = None
    bias: Array | None = None
    epilogue: Epilogue = PLAIN
    output_zero: int = 0
    table: "Expression | None" = None

    @property
    def sizes(self) -> Shape:
        """The axes of the sums."""
        return self.output.shape

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        given = (self.zero if isinstance(self.zero, Tensor) else None, self.factor)
        return (self.a, *(one for one in given if one is not None), *self.epilogue.inputs)

    def with_epilogue(self, epilogue: Epilogue, output: Tensor) -> Self:
        """Returns the step with another end."""
        return replace(self, epilogue=epilogue, output=output)

    @abstractmethod
    def written(self) -> Written:
        """Returns the step as a plan has it: the product or convolution that it is."""

    @property
    def numbered_first(self) -> tuple[Array, ...]:
        """A zero point that is a constant."""
        return () if self.zero is None or isinstance(self.zero, Tensor) else (self.zero,)

    def sums(self, weights: Array) -> Words:
        """Returns the words that all such steps have."""
        table = None if self.table is None else program_of(self.table, 1)
        return Words(self, weights=weights, table=table)
