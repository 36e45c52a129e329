# SPDX-License-Identifier: Apache-2.0
"""Products of plain matrices: by constant weights, packed, or of two values."""

from dataclasses import dataclass, field, replace

from nndeploy_native.steps.step import PLAIN, Epilogue
from nndeploy_native.tensors import Array, Tensor


@dataclass(frozen=True, slots=True, eq=False)
class FullyConnected:
    """output (rows, outputs) = epilogue(x (rows, inputs) by weights (inputs, outputs) + bias)."""

    output: Tensor
    x: Tensor
    weights: Array
    bias: Array | None
    epilogue: Epilogue = field(default=PLAIN)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.x, *self.epilogue.inputs)

    def with_epilogue(self, epilogue: Epilogue, output: Tensor) -> "FullyConnected":
        """Returns the step with another end."""
        return replace(self, epilogue=epilogue, output=output)


@dataclass(frozen=True, slots=True)
class Product:
    """output (..., rows, columns) of a (..., rows, inner) and b (..., inner, columns); batches equal, or b has none."""

    output: Tensor
    a: Tensor
    b: Tensor
    b_is_shared: bool

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.a, self.b)
