# SPDX-License-Identifier: Apache-2.0
"""Pixels of blocked images at places that are data: by a grid, or of regions."""

from dataclasses import dataclass

from nndeploy.values.size import Dim
from nndeploy_native.steps.step import Words, Written
from nndeploy_native.tensors import Tensor

KINDS = ("linear", "nearest", "cubic")
PADDINGS = ("zeros", "border", "reflection")


@dataclass(frozen=True, slots=True)
class GridSample:
    """Pixels of x (N, C, depth * H, W) at the places of a plain grid (N, ..., axes), the last axis first."""

    output: Tensor
    x: Tensor
    grid: Tensor
    axes: int
    kind: str
    padding: str
    is_aligned: bool
    depth: Dim = 1

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.x, self.grid)

    def written(self) -> Written:
        return Written("grid_sample", f"sampled by a grid, {self.kind}, {self.padding}", self)


@dataclass(frozen=True, slots=True)
class AffineGrid:
    """The places (N, sizes..., axes) to which matrices (N, axes, axes + 1) take those of the pixels."""

    output: Tensor
    matrices: Tensor
    is_aligned: bool

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.matrices,)

    def written(self) -> Written:
        return Written("affine_grid", "grid", Words(self, axes=len(self.output.shape) - 2))


@dataclass(frozen=True, slots=True)
class RoiAlign:
    """Regions (R, 4) of x, each of the image that `images` says, as (R, C, rows, columns).

    Each bin is the mean, or the largest, of `samples` along each side; 0: of as many as it has pixels.
    """

    output: Tensor
    x: Tensor
    rois: Tensor
    images: Tensor
    is_max: bool
    samples: int
    scale: float
    offset: float
    is_least_one: bool

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.x, self.rois, self.images)

    def written(self) -> Written:
        label = f"regions, {'largest' if self.is_max else 'mean'}"
        return Written("roi_align", label, self, indices=self.images.name)


@dataclass(frozen=True, slots=True)
class RoiMaxPool:
    """Regions (R, 5) of x, the image first, as the largest of the pixels in each bin: (R, C, rows, columns)."""

    output: Tensor
    x: Tensor
    rois: Tensor
    scale: float

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.x, self.rois)

    def written(self) -> Written:
        return Written("roi_max_pool", "regions, largest of pixels", self)
