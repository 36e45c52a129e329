# SPDX-License-Identifier: Apache-2.0
"""Resizing: each output place is a weighted sum of few places along an axis, which the kernel library finds."""

from dataclasses import dataclass

from nndeploy.backend_kit.kernels.resize_tables import Mode
from nndeploy.values.size import Dim
from nndeploy_native.steps.step import Written
from nndeploy_native.tensors import Tensor


@dataclass(frozen=True, slots=True)
class ResizedAxis:
    """How an axis is resized: by `scale`, 0 where the ratio of the sizes counts; `begin` and `end` of a part of it."""

    scale: float = 0.0
    begin: float = 0.0
    end: float = 1.0


KEPT = ResizedAxis(1.0)
"""An axis that stays as it is."""


@dataclass(frozen=True, slots=True)
class Resize:
    """A blocked image (N, C, depth * H, W): rows and columns of each of the `depth` images below each other."""

    output: Tensor
    x: Tensor
    mode: Mode
    rows: ResizedAxis
    columns: ResizedAxis
    depth: Dim = 1

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.x,)

    def written(self) -> Written:
        return Written("resize", f"resize {self.mode.kind}", self)


@dataclass(frozen=True, slots=True)
class ResizeAxis:
    """A plain tensor along one axis."""

    output: Tensor
    x: Tensor
    axis: int
    mode: Mode
    rule: ResizedAxis

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.x,)

    def written(self) -> Written:
        return Written("resize_axis", f"resize {self.mode.kind} along axis {self.axis}", self)
