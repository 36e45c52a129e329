# SPDX-License-Identifier: Apache-2.0
"""pointwise -> depthwise -> pointwise as one step: the wide tensors between live in a buffer, window by window."""

from dataclasses import dataclass

from nndeploy_native.steps.convolution import Convolution, written_chain
from nndeploy_native.steps.separable import Separable
from nndeploy_native.steps.step import Written
from nndeploy_native.tensors import Tensor


@dataclass(frozen=True, slots=True, eq=False)
class InvertedResidual:
    """`pair`, a depthwise and a pointwise convolution, of what `expand`, a pointwise one, gives."""

    expand: Convolution
    pair: Separable

    @property
    def output(self) -> Tensor:
        """What the step writes."""
        return self.pair.output

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.expand.x, *self.pair.epilogue.inputs)

    def written(self) -> Written:
        return written_chain("inverted_residual", self.expand, self.pair.first, self.pair.second)
