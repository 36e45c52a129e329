# SPDX-License-Identifier: Apache-2.0
"""Pooling of blocked tensors: a window's maximum or mean, or the whole image's."""

from dataclasses import dataclass

from nndeploy.values.size import Dim
from nndeploy_native.steps.convolution import Window
from nndeploy_native.tensors import Tensor


@dataclass(frozen=True, slots=True)
class Pooling:
    """`kind` is "max" or "mean"; `end_pads` count, for a mean that includes padding, how far a window may reach."""

    output: Tensor
    x: Tensor
    window: Window
    end_pads: tuple[Dim, Dim]
    kind: str
    includes_padding: bool = False

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.x,)
