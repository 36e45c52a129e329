# SPDX-License-Identifier: Apache-2.0
"""Elementwise steps: an expression over operands of one layout, each whole or broadcast."""

from dataclasses import dataclass

from nndeploy_native.expressions import Domain, Expression
from nndeploy_native.plan import DTYPES
from nndeploy_native.tensors import Array, Shape, Tensor

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
