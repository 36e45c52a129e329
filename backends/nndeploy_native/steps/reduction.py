# SPDX-License-Identifier: Apache-2.0
"""Steps along one axis of plain tensors (outer, size, inner): softmax, reductions, running sums, places of extremes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from nndeploy.values.size import Dim
from nndeploy_native.steps.step import Words, Written
from nndeploy_native.tensors import Tensor


@dataclass(frozen=True, slots=True)
class AlongAxis:
    """`kind` is an operator of the library, as "softmax", which keeps the shape, or "reduce_mean".

    `numbers` are the words that it takes behind the sizes, by name.
    """

    output: Tensor
    x: Tensor
    kind: str
    outer: Dim
    size: Dim
    inner: Dim
    numbers: Mapping[str, float] = field(default_factory=dict)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.x,)

    def written(self) -> Written:
        return Written(self.kind, self.kind, Words(self, along=self, **self.numbers))
