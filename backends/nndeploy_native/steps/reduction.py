# SPDX-License-Identifier: Apache-2.0
"""Steps along one axis of plain tensors (outer, size, inner): softmax and reductions."""

from dataclasses import dataclass

from nndeploy.values.size import Dim
from nndeploy_native.tensors import Tensor


@dataclass(frozen=True, slots=True)
class AlongAxis:
    """`kind` is "softmax" or "log_softmax", which keep the shape, or "reduce_mean", "reduce_sum", "reduce_max"."""

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
