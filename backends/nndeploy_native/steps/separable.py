# SPDX-License-Identifier: Apache-2.0
"""depthwise -> pointwise as one step: the first result lives in a buffer, window by window."""

from dataclasses import dataclass

from nndeploy_native.steps.convolution import Convolution, written_chain
from nndeploy_native.steps.step import Epilogue, Written
from nndeploy_native.tensors import Tensor

PLANAR_TAPS = 49
"""Most taps of a depthwise kernel that reads planes: what its windows reach is copied."""


@dataclass(frozen=True, slots=True, eq=False)
class Separable:
    """`second`, a pointwise convolution, of what `first`, a depthwise one, gives."""

    first: Convolution
    second: Convolution

    @property
    def output(self) -> Tensor:
        """What the step writes."""
        return self.second.output

    @property
    def epilogue(self) -> Epilogue:
        """The end of the second."""
        return self.second.epilogue

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (*self.first.inputs, *self.second.epilogue.inputs)

    @property
    def has_planes(self) -> bool:
        """Whether it reads or writes planes, in the order of ONNX."""
        return not (self.first.x.is_blocked and self.output.is_blocked)

    @property
    def is_of_lines(self) -> bool:
        """Whether its images are one pixel high or wide: no two windows share rows."""
        return 1 in self.output.shape[2:]

    @property
    def takes_planes(self) -> bool:
        """Whether the operator that changes the layout window by window can do it: a residual lies in blocks."""
        _, _, height, width = self.first.weights.shape
        return height * width <= PLANAR_TAPS and self.epilogue.residual is None

    def written(self) -> Written:
        return written_chain("planar_separable" if self.has_planes else "separable", self.first, self.second)
