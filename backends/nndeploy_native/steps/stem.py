# SPDX-License-Identifier: Apache-2.0
"""A dense convolution from NCHW and the separable pair after it as one step: the widest tensor is never written."""

from dataclasses import dataclass

from nndeploy_native.steps.convolution import Convolution, written_chain
from nndeploy_native.steps.separable import Separable
from nndeploy_native.steps.step import Written
from nndeploy_native.tensors import Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Stem:
    """`pair`, a depthwise and a pointwise convolution, of what `wide`, a dense one of a plain tensor, gives."""

    wide: Convolution
    pair: Separable

    @property
    def output(self) -> Tensor:
        """What the step writes."""
        return self.pair.output

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (*self.wide.inputs, *self.pair.epilogue.inputs)

    def written(self) -> Written:
        return written_chain("stem", self.wide, self.pair.first, self.pair.second)
