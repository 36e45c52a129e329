# SPDX-License-Identifier: Apache-2.0
"""Convolutions on blocked tensors: dense (also first and pointwise), depthwise, grouped, transposed.

Weights are constants, (O, I / groups, H, W); the kernel library packs them.
"""

from dataclasses import dataclass, replace
from typing import TypeVar

from nndeploy.values.size import Dim
from nndeploy_native.steps.step import PLAIN, Epilogue, Unstored, Words, Written
from nndeploy_native.tensors import Array, Tensor

AnyDim = TypeVar("AnyDim", int, Dim)
WINDOW_OF_DEVICE = "chosen by the device"
"""What people are shown as the window of a fused step, which follows from the caches of the machine that runs it."""


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


@dataclass(frozen=True, slots=True)
class Windows:
    """A window over one, two or three axes, in their order: `begins` and `ends` are the padding on either side."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begins: tuple[Dim, ...]
    ends: tuple[Dim, ...]

    @property
    def keeps_planes(self) -> bool:
        """Whether a window over volumes is one over their depth alone."""
        return all(one[1:] == (1, 1) for one in (self.kernel, self.strides)) and self.begins[1:] == (0, 0)

    def of_image(self) -> tuple[Window, tuple[Dim, Dim]]:
        """Returns how it moves over height and width, and the padding after each; over a row one pixel high."""
        kernel, strides, dilations = (_of_image(one, 1) for one in (self.kernel, self.strides, self.dilations))
        begins, ends = (_of_image(one, 0) for one in (self.begins, self.ends))
        return Window(kernel, strides, begins, dilations), ends

    def of_depth(self) -> tuple[Window, tuple[Dim, Dim]]:
        """Returns how it moves over the depth of a volume, as over columns."""
        window = Window((self.kernel[0], 1), (self.strides[0], 1), (self.begins[0], 0), (self.dilations[0], 1))
        return window, (self.ends[0], 0)


@dataclass(frozen=True, slots=True)
class Depth:
    """How a window moves over the first axis of volumes, the images of which lie below each other."""

    kernel: int
    stride: int
    dilation: int
    pad: Dim
    size: Dim
    out_size: Dim


@dataclass(frozen=True, slots=True, eq=False)
class Convolution:
    """output = epilogue(convolution(x) + bias); `x` is plain only for a dense convolution.

    A transposed one spreads each input pixel over a window of the output. With a `depth` the weights are those of
    volumes, (O, I / groups, D * H, W), and x and the output (N, C, D * H, W).
    """

    output: Tensor
    x: Tensor
    weights: Array
    bias: Array | None
    window: Window
    groups: int = 1
    epilogue: Epilogue = PLAIN
    is_transposed: bool = False
    depth: Depth | None = None

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
        return fits and not self.is_transposed and not self.is_pointwise and self.depth is None

    @property
    def is_pointwise(self) -> bool:
        """Whether it is a product of matrices, pixel by pixel; zeros behind the image make other ones."""
        keeps_size = self.x.shape[2:] == self.output.shape[2:]
        is_point = self.window.is_point and keeps_size and self.depth is None
        return self.groups == 1 and is_point and not self.is_transposed

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
        kernel = (*((self.depth.kernel,) if self.depth else ()), *self.window.kernel)
        return f"{self.kind} {'x'.join(map(str, kernel))} {self.x.channels}->{self.output.channels}"

    @property
    def is_column(self) -> bool:
        """Whether it goes down images that are one pixel wide: tiles of pixels lie along rows."""
        is_column = self.x.is_column and (self.output.shape[3], self.window.kernel[1]) == (1, 1)
        return is_column and self.depth is None

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

    def written(self) -> Written:
        if self.is_column:
            return self.lying().written()
        if not self.is_transposed and self.depth is None:
            return Written("convolution", self.label, self)
        words = (self, self.depth or Depth(1, 1, 1, 0, 1, 1))
        return Written("transposed" if self.is_transposed else "volume_convolution", self.label, words)


def written_chain(operator: str, *convolutions: Convolution) -> Written:
    """Returns convolutions, each of what the one before gives, as one step: what is between them is never stored."""
    ends = {0: {"x"}, len(convolutions) - 1: {"output"}}
    words = tuple(
        Words(one, **{side: Unstored(getattr(one, side)) for side in {"x", "output"} - ends.get(number, set())})
        for number, one in enumerate(convolutions)
    )
    sides = ("NCHWc" if one.is_blocked else "NCHW" for one in (convolutions[0].x, convolutions[-1].output))
    label = " then ".join(one.label for one in convolutions)
    return Written(operator, label, words, window=WINDOW_OF_DEVICE, layout=" to ".join(dict.fromkeys(sides)))


def _turned(tensor: Tensor) -> Tensor:
    batch, channels, height, width = tensor.shape
    return replace(tensor, shape=(batch, channels, width, height))


def _of_image(numbers: tuple[AnyDim, ...], of_height: AnyDim) -> tuple[AnyDim, AnyDim]:
    """Returns what holds for height and width, from what holds for the last axes."""
    return (numbers[-2], numbers[-1]) if len(numbers) > 1 else (of_height, numbers[0])
