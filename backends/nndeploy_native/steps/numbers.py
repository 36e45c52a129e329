# SPDX-License-Identifier: Apache-2.0
"""Steps that make numbers of sizes, or of a first one and a difference."""

from dataclasses import dataclass

from nndeploy_native.steps.step import Written
from nndeploy_native.tensors import Shape, Tensor


@dataclass(frozen=True, slots=True)
class Sizes:
    """output = sizes, which the shapes of the inputs give: int64."""

    output: Tensor
    sizes: Shape

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads: nothing."""
        return ()

    def written(self) -> Written:
        return Written("sizes", "sizes", self)


@dataclass(frozen=True, slots=True)
class Arange:
    """output[i] = start + i * step, one number each, of the output's element."""

    output: Tensor
    start: Tensor
    step: Tensor

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.start, self.step)

    def written(self) -> Written:
        return Written("arange", "numbers in order", self)
