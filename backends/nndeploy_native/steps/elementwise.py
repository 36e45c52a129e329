# SPDX-License-Identifier: Apache-2.0
"""Elementwise steps: an expression over operands of one layout, each whole or broadcast."""

from dataclasses import dataclass, replace

from nndeploy_native.expression_program import program_of
from nndeploy_native.expressions import Domain, Expression, label_of
from nndeploy_native.plan import DTYPES
from nndeploy_native.steps.step import Words, Written
from nndeploy_native.tensors import Array, Shape, Tensor, fixed_shape

MAX_OPERANDS = 4


@dataclass(frozen=True, slots=True, eq=False)
class Operand:
    """A tensor, or a constant in `array`, of a shape that is broadcast to the output's."""

    shape: Shape
    tensor: Tensor | None = None
    array: Array | None = None

    @property
    def element(self) -> str:
        """The element of the tensor or of the constant."""
        if self.tensor is not None:
            return self.tensor.element
        assert self.array is not None
        return next(element for element, dtype in DTYPES.items() if dtype == self.array.dtype.name)

    def is_same(self, other: "Operand") -> bool:
        """Whether both are the same tensor in the same shape."""
        return self.tensor is not None and self.tensor == other.tensor and self.shape == other.shape

    @property
    def value(self) -> Tensor | Array:
        """The tensor or the constant in its shape."""
        if self.array is not None:
            return self.array.reshape(fixed_shape(self.shape))
        assert self.tensor is not None
        return replace(self.tensor, shape=self.shape)


@dataclass(frozen=True, slots=True, eq=False)
class Elementwise:
    """output = expression(operands); blocked outputs take operands (N or 1, C, H, W) and (N or 1, C, 1, 1) only.

    Operands of any element are converted to the domain, and the result to the element of the output: whole numbers
    wrap, what is not zero is true. An expression whose output is a truth gives one or zero.
    """

    output: Tensor
    operands: tuple[Operand, ...]
    expression: Expression
    domain: Domain = Domain.FLOAT32

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return tuple(one.tensor for one in self.operands if one.tensor is not None)

    def written(self) -> Written:
        program = program_of(self.expression, len(self.operands), self.domain)
        operands = tuple(one.value for one in self.operands)
        words = Words(self, program=program, operands=operands)
        return Written("elementwise", label_of(self.expression) or "copy", words, numbered_first=operands)
