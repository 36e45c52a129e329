# SPDX-License-Identifier: Apache-2.0
"""Convolutions of images of bytes, whose channels lie side by side, by constant weights of bytes; sums are exact."""

from dataclasses import dataclass, replace

from nndeploy_native.steps.convolution import Window
from nndeploy_native.steps.step import PLAIN, Epilogue
from nndeploy_native.tensors import Array, Shape, Tensor


@dataclass(frozen=True, slots=True, eq=False)
class IntegerConvolution:
    """output (N, H, W, O) = epilogue(sums * factors * factor + bias), of a (N, H, W, C) by (O, C / groups, H, W).

    Images are plain tensors, or rows (N, W, C), which are one pixel high. All else is as in `IntegerProduct`, with
    a column for each output channel; pixels outside of the image hold the zero point.
    """

    output: Tensor
    a: Tensor
    weights: Array
    window: Window
    groups: int = 1
    zero: Tensor | Array | None = None
    zeros: Array | None = None
    whole_bias: Array | None = None
    factors: Array | None = None
    factor: Tensor | None = None
    bias: Array | None = None
    epilogue: Epilogue = PLAIN
    output_zero: int = 0

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        given = (self.zero if isinstance(self.zero, Tensor) else None, self.factor)
        return (self.a, *(one for one in given if one is not None), *self.epilogue.inputs)

    @property
    def sizes(self) -> Shape:
        """The axes of the output: (N, H, W, O)."""
        return self.output.shape

    @property
    def label(self) -> str:
        """What a plan shows of it."""
        outputs, channels, *kernel = self.weights.shape
        kind = "depthwise" if self.groups == outputs and channels == 1 < self.groups else "dense"
        kind = "grouped" if kind == "dense" and self.groups > 1 else kind
        return f"{kind} {'x'.join(map(str, kernel))} of bytes, {channels * self.groups}->{outputs}"

    def as_images(self) -> "IntegerConvolution":
        """Returns the step with rows as images."""
        residual = self.epilogue.residual
        end = self.epilogue if residual is None else replace(self.epilogue, residual=_image(residual))
        return replace(self, output=_image(self.output), a=_image(self.a), epilogue=end)

    def with_epilogue(self, epilogue: Epilogue, output: Tensor) -> "IntegerConvolution":
        """Returns the step with another end."""
        return replace(self, epilogue=epilogue, output=output)


def _image(tensor: Tensor) -> Tensor:
    return replace(tensor, shape=(tensor.shape[0], 1, *tensor.shape[1:])) if len(tensor.shape) == 3 else tensor
