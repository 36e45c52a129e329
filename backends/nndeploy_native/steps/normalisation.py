# SPDX-License-Identifier: Apache-2.0
"""Steps that normalise: along one axis of plain tensors (outer, size, inner), and channels of images in blocks."""

from dataclasses import dataclass, field, replace

from nndeploy.values.size import Dim
from nndeploy_native.steps.step import PLAIN, Epilogue, Words, Written
from nndeploy_native.tensors import Tensor


@dataclass(frozen=True, slots=True)
class Normalise:
    """output = x / norm * scale + bias, x less its mean where the norm is "standard".

    Of scale and bias, (groups, parts) numbers, element k of row r takes those of r % groups and k // (size // parts).
    """

    output: Tensor
    x: Tensor
    norm: str
    outer: Dim
    size: Dim
    inner: Dim
    epsilon: float = 0.0
    scale: Tensor | None = None
    bias: Tensor | None = None
    groups: Dim = 1
    parts: Dim = 1

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return tuple(one for one in (self.x, self.scale, self.bias) if one is not None)

    def written(self) -> Written:
        return Written("normalise", f"{self.norm} norm of {self.size}", Words(self, along=self))


@dataclass(frozen=True, slots=True, eq=False)
class InstanceNorm:
    """output = epilogue((x - mean) / deviation * scale + bias) of each channel of each image in blocks.

    `scale` and `bias` are plain, a number a channel.
    """

    output: Tensor
    x: Tensor
    scale: Tensor
    bias: Tensor
    epsilon: float
    epilogue: Epilogue = field(default=PLAIN)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.x, self.scale, self.bias, *self.epilogue.inputs)

    def with_epilogue(self, epilogue: Epilogue, output: Tensor) -> "InstanceNorm":
        """Returns the step with another end."""
        return replace(self, epilogue=epilogue, output=output)

    def written(self) -> Written:
        return Written("instance_norm", "instance norm", self)
