# SPDX-License-Identifier: Apache-2.0
"""What all steps share: what they read and write, and epilogues.

Law: a step writes every element of its output; padding lanes of a blocked output, and room for what will be appended,
hold anything.
"""

from dataclasses import dataclass, field
from typing import Protocol

from nndeploy_native.expressions import Expression, operand
from nndeploy_native.tensors import Array, Tensor


@dataclass(frozen=True, slots=True)
class Epilogue:
    """What becomes of an output element x: an expression over x (0), the residual (1) and a number a channel (2).

    `residual` has the shape and layout of the output.
    """

    expression: Expression = field(default=operand(0))
    residual: Tensor | None = None
    channel: Array | None = None

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the epilogue reads."""
        return () if self.residual is None else (self.residual,)


PLAIN = Epilogue()


class NativeStep(Protocol):
    """One call of an operator of the kernel library."""

    @property
    def output(self) -> Tensor:
        """What the step writes."""

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads, constants that only it knows excluded."""
