# SPDX-License-Identifier: Apache-2.0
"""Convolutions on blocked tensors: dense (also first and pointwise), depthwise, grouped, transposed.

Weights are constants, (O, I / groups, H, W); the kernel library packs them.
"""

from dataclasses import dataclass, replace

from nndeploy.values.size import Dim
from nndeploy_native.steps.step import PLAIN, Epilogue
from nndeploy_native.tensors import Array, Tensor


@dataclass(frozen=True, slots=True)
class Window:
    """How a window moves over an image: (height, width) each; `pads` are those before the first element."""

    kernel: tuple[Dim, Dim]
    strides: tuple[int, int] = (1, 1)
    pads: tuple[Dim, Dim] = (0, 0)
    dilations: tuple[int, int] = (1, 1)

    @property
    def is_point(self) -> bool:
        """Whether output pixels are made of the input pixel at the same place alone."""
        return self.kernel == (1, 1) and self.strides == (1, 1) and self.pads == (0, 0)


@dataclass(frozen=True, slots=True, eq=False)
class Convolution:
    """output = epilogue(convolution(x) + bias); `x` is plain only for a dense convolution.

    A transposed one spreads each input pixel over a window of the output; it has no groups.
    """

    output: Tensor
    x: Tensor
    weights: Array
    bias: Array | None
    window: Window
    groups: int = 1
    epilogue: Epilogue = PLAIN
    is_transposed: bool = False

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.x, *self.epilogue.inputs)

    @property
    def is_depthwise(self) -> bool:
        """Whether each output channel is made of the input channel at the same place, and of more than one pixel.

        Of one channel it may be pointwise too, which it then is.
        """
        fits = self.groups == self.x.channels == self.output.channels and self.weights.shape[1] == 1
        return fits and not self.is_transposed and not self.is_pointwise

    @property
    def is_pointwise(self) -> bool:
        """Whether it is a product of matrices, pixel by pixel; zeros behind the image make other ones."""
        keeps_size = self.x.shape[2:] == self.output.shape[2:]
        return self.groups == 1 and self.window.is_point and keeps_size and not self.is_transposed

    @property
    def kind(self) -> str:
        """What people call it."""
        if self.is_transposed:
            return "transposed"
        if self.is_pointwise:
            return "pointwise"
        if self.is_depthwise:
            return "depthwise"
        return "dense" if self.groups == 1 else "grouped"

    @property
    def label(self) -> str:
        """What a plan shows of it."""
        height, width = self.window.kernel
        return f"{self.kind} {height}x{width} {self.x.channels}->{self.output.channels}"

    @property
    def is_column(self) -> bool:
        """Whether it goes down images that are one pixel wide: tiles of pixels lie along rows."""
        return self.x.is_column and (self.output.shape[3], self.window.kernel[1]) == (1, 1)

    def lying(self) -> "Convolution":
        """Returns the same along rows: an image that is one pixel wide lies in memory as one that is one pixel high."""
        window, residual = self.window, self.epilogue.residual
        return replace(
            self,
            output=_turned(self.output),
            x=_turned(self.x),
            weights=self.weights.swapaxes(2, 3),
            window=Window(window.kernel[::-1], window.strides[::-1], window.pads[::-1], window.dilations[::-1]),
            epilogue=replace(self.epilogue, residual=None if residual is None else _turned(residual)),
        )

    def with_epilogue(self, epilogue: Epilogue, output: Tensor) -> "Convolution":
        """Returns the step with another end."""
        return replace(self, epilogue=epilogue, output=output)


def _turned(tensor: Tensor) -> Tensor:
    batch, channels, height, width = tensor.shape
    return replace(tensor, shape=(batch, channels, width, height))
