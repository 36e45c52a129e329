# SPDX-License-Identifier: Apache-2.0
"""Pooling: the largest element, the mean or the sum of a window or of the whole image, and where the largest lies."""

from dataclasses import dataclass

from nndeploy.values.size import Dim
from nndeploy_native.steps.convolution import Window, Windows
from nndeploy_native.steps.step import Words, Written
from nndeploy_native.tensors import Tensor


@dataclass(frozen=True, slots=True)
class Pooling:
    """A blocked image (N, C, depth * H, W): of each of the `depth` images below each other.

    `kind` is "max", "mean" or "sum"; `end_pads` count, for a mean that includes padding, how far a window may reach.
    """

    output: Tensor
    x: Tensor
    window: Window
    end_pads: tuple[Dim, Dim]
    kind: str
    includes_padding: bool = False
    depth: Dim = 1

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.x,)

    def written(self) -> Written:
        rows, columns = self.window.kernel
        return Written("pool", f"{self.kind} {rows}x{columns}", self)


@dataclass(frozen=True, slots=True)
class PooledPlaces:
    """The place, int64, of the largest element of each window of a plain tensor (N, C, ...), counted over all of it.

    With `is_column_major` the first axis of an image goes fastest in what is counted.
    """

    output: Tensor
    x: Tensor
    windows: Windows
    is_column_major: bool

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.x,)

    def written(self) -> Written:
        windows = self.windows
        axes = tuple(zip(windows.strides, windows.dilations, windows.kernel, windows.begins, strict=True))
        return Written("pool_places", "places of the largest", Words(self, axes=axes))
