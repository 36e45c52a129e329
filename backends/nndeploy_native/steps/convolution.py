# SPDX-License-Identifier: Apache-2.0
"""Convolutions on blocked tensors: dense (also first and pointwise), depthwise, grouped, transposed.

Weights are constants, (O, I / groups, H, W) here and packed for the kernel of the call:

    dense       [O / panel][H][W][I][panel]     panel = vectors of output channels; transposed too
    depthwise   [C / c][H * W][c]
    grouped     [O][H][W][I / groups]           of O padded to whole blocks
"""

from dataclasses import dataclass, replace

import numpy as np

from nndeploy_native.expressions import label_of
from nndeploy_native.isa import Isa
from nndeploy_native.steps.step import PLAIN, Call, Epilogue, Machine
from nndeploy_native.steps.templated import templated_convolution
from nndeploy_native.tensors import Array, Tensor, padded


@dataclass(frozen=True, slots=True)
class Window:
    """How a window moves over an image: (height, width) each; `pads` are those before the first element."""

    kernel: tuple[int, int]
    strides: tuple[int, int] = (1, 1)
    pads: tuple[int, int] = (0, 0)
    dilations: tuple[int, int] = (1, 1)

    @property
    def is_point(self) -> bool:
        """Whether output pixels are made of the input pixel at the same place alone."""
        return self.kernel == (1, 1) and self.strides == (1, 1) and self.pads == (0, 0)

    def sizes(self) -> dict[str, int]:
        """Returns the fields of the kernel's struct."""
        return {
            "kernel_h": self.kernel[0],
            "kernel_w": self.kernel[1],
            "stride_h": self.strides[0],
            "stride_w": self.strides[1],
            "pad_top": self.pads[0],
            "pad_left": self.pads[1],
            "dilation_h": self.dilations[0],
            "dilation_w": self.dilations[1],
        }


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
        """Whether each output channel is made of the input channel at the same place."""
        fits = self.groups == self.x.shape[1] == self.output.shape[1] and self.weights.shape[1] == 1
        return fits and not self.is_transposed

    @property
    def is_pointwise(self) -> bool:
        """Whether it is a product of matrices, pixel by pixel."""
        return self.groups == 1 and self.window.is_point and not self.is_transposed

    @property
    def kernel(self) -> str:
        """The kernel that computes it."""
        if self.is_transposed:
            return "transposed"
        if self.groups == 1:
            return "dense"
        return "depthwise" if self.is_depthwise else "grouped"

    def with_epilogue(self, epilogue: Epilogue, output: Tensor) -> "Convolution":
        """Returns the step with another end."""
        return replace(self, epilogue=epilogue, output=output)

    def call(self, machine: Machine) -> Call:
        """Returns what to call."""
        isa = machine.isa
        kernel = f"{self.kernel}_plain" if not self.x.is_blocked else self.kernel
        call = Call(
            kernel,
            {**image_sizes(self.x, self.output), **self.window.sizes(), "groups": self.groups},
            self.output,
            (
                self.x,
                self.packed_weights(isa),
                self.packed_bias(isa),
                self.epilogue.residual,
                packed_channel(self.epilogue, self.output, isa),
            ),
            (self.epilogue.expression,),
            notes=self.notes(),
        )
        return templated_convolution(self, call, machine)

    def packed_weights(self, isa: Isa) -> Array:
        """Returns the weights as the kernel reads them."""
        match self.kernel:
            case "dense" | "transposed":
                return dense_panels(self.weights, isa.panel)
            case "depthwise":
                return depthwise_blocks(self.weights, isa.lanes)
        wide = _padded_outputs(self.weights, isa.lanes)
        return np.ascontiguousarray(wide.transpose(0, 2, 3, 1))

    def packed_bias(self, isa: Isa) -> Array:
        """Returns one number for each output channel, with zeros up to a whole panel."""
        bias = np.zeros(padded(self.output.shape[1], isa.panel), np.float32)
        if self.bias is not None:
            bias[: self.bias.size] = self.bias
        return bias

    def notes(self) -> dict[str, int | str]:
        """Returns what the plan says of it."""
        height, width = self.window.kernel
        kind = "pointwise" if self.is_pointwise else self.kernel
        notes: dict[str, int | str] = {
            "what": f"{kind} {height}x{width} {self.x.shape[1]}->{self.output.shape[1]}",
            "multiply_adds": self.output.size * self.weights[0].size,
        }
        if label := label_of(self.epilogue.expression):
            notes["then"] = label
        return notes


def image_sizes(x: Tensor, output: Tensor) -> dict[str, int]:
    """Returns the fields of a kernel's struct that tell the two images."""
    (batch, channels, height, width), (_, out_channels, out_height, out_width) = x.shape, output.shape
    return {
        "batch": batch,
        "in_c": channels,
        "in_h": height,
        "in_w": width,
        "out_c": out_channels,
        "out_h": out_height,
        "out_w": out_width,
    }


def packed_channel(epilogue: Epilogue, output: Tensor, isa: Isa) -> Array | None:
    """Returns the epilogue's number for each channel, padded to a whole panel."""
    if epilogue.channel is None:
        return None
    packed = np.zeros(padded(output.shape[1], isa.panel), np.float32)
    packed[: output.shape[1]] = epilogue.channel
    return packed


def dense_panels(weights: Array, panel: int) -> Array:
    """Returns (O, I, H, W) as [O / panel][H][W][I][panel]."""
    wide = _padded_outputs(weights, panel)
    outputs, inputs, height, width = wide.shape
    return np.ascontiguousarray(wide.reshape(outputs // panel, panel, inputs, height, width).transpose(0, 3, 4, 2, 1))


def depthwise_blocks(weights: Array, lanes: int) -> Array:
    """Returns (C, 1, H, W) as [C / c][H * W][c]."""
    wide = _padded_outputs(weights, lanes)
    channels, _, height, width = wide.shape
    return np.ascontiguousarray(wide.reshape(channels // lanes, lanes, height * width).transpose(0, 2, 1))


def _padded_outputs(weights: Array, multiple: int) -> Array:
    wide = np.zeros((padded(weights.shape[0], multiple), *weights.shape[1:]), np.float32)
    wide[: weights.shape[0]] = weights
    return wide
