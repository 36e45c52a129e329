# SPDX-License-Identifier: Apache-2.0
"""Pooling of blocked tensors: a window's maximum or mean, or the whole image's."""

from dataclasses import dataclass

from nndeploy.values.size import Dim
from nndeploy_native.steps.convolution import Window
from nndeploy_native.steps.step import Call, Field, Machine
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

    def call(self, machine: Machine) -> Call:  # noqa: ARG002
        """Returns what to call."""
        fields: dict[str, Field] = {
            **self.window.axes(self.x, self.output),
            "images": self.x.shape[0],
            "channels": self.x.channels,
            "pad_bottom": self.end_pads[0],
            "pad_right": self.end_pads[1],
            "counts_padding": self.includes_padding,
        }
        height, width = self.window.kernel
        notes = {"what": f"{self.kind} {height}x{width}"}
        return Call(f"pool_{self.kind}", fields, self.output, (self.x,), "pool", notes=notes)
