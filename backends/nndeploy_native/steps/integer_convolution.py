# SPDX-License-Identifier: Apache-2.0
"""Convolutions of images of bytes, whose channels lie side by side, by constant weights of bytes; sums are exact."""

from dataclasses import dataclass, field, replace

from nndeploy_native.steps.convolution import Window
from nndeploy_native.steps.integer_sums import IntegerSums
from nndeploy_native.steps.step import Words, Written
from nndeploy_native.tensors import Tensor


@dataclass(frozen=True, slots=True, eq=False)
class IntegerConvolution(IntegerSums):
    """Sums (N, H, W, O), of an image (N, H, W, C) by (O, C / groups, H, W), with a column for each output channel.

    Images are plain tensors, or rows (N, W, C), which are one pixel high. Pixels outside of the image hold the zero
    point.
    """

    window: Window = field(kw_only=True)
    groups: int = field(default=1, kw_only=True)

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

    def written(self) -> Written:
        sums = self.as_images().sums(self.weights.transpose(0, 2, 3, 1))
        first = (*self.window.pads, *self.numbered_first)
        return Written("int8_convolution", self.label, Words(self, sums=sums), numbered_first=first)


def _image(tensor: Tensor) -> Tensor:
    return replace(tensor, shape=(tensor.shape[0], 1, *tensor.shape[1:])) if len(tensor.shape) == 3 else tensor
