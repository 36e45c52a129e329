# SPDX-License-Identifier: Apache-2.0
"""Steps along one axis of plain tensors (outer, size, inner): softmax, reductions, running sums, places of extremes."""

from dataclasses import dataclass

from nndeploy.values.size import Dim
from nndeploy_native.tensors import Tensor


@dataclass(frozen=True, slots=True)
class AlongAxis:
    """`kind` is an operator of the library, as "softmax", which keeps the shape, or "reduce_mean".

    `numbers` are the words that it takes behind the sizes.
    """

    output: Tensor
    x: Tensor
    kind: str
    outer: Dim
    size: Dim
    inner: Dim
    numbers: tuple[int, ...] = ()

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.x,)
