# SPDX-License-Identifier: Apache-2.0
"""Steps along one axis of plain tensors (outer, size, inner): softmax and reductions."""

from dataclasses import dataclass

from nndeploy.values.size import Dim
from nndeploy_native.tensors import Tensor


@dataclass(frozen=True, slots=True)
class AlongAxis:
    """`kind` is an operator of the library that keeps the shape, as "softmax", or a reduction, as "reduce_mean"."""

    output: Tensor
    x: Tensor
    kind: str
    outer: Dim
    size: Dim
    inner: Dim

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.x,)
