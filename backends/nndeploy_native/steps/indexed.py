# SPDX-License-Identifier: Apache-2.0
"""Steps whose places are data: elements and slices that whole numbers pick, or that are put where these say.

Numbers are int32 or int64, negative ones count from the end. One that is out of range is an error of the call.
"""

from dataclasses import dataclass

import numpy as np

from nndeploy_native.steps.step import Words, Written
from nndeploy_native.tensors import Tensor

REDUCTIONS = ("none", "add", "mul", "max", "min")
"""What becomes of an element that an update meets."""


@dataclass(frozen=True, slots=True)
class Picked:
    """A plain tensor of elements or slices of `data`: one of `PICKS`; `axis` is what ONNX calls axis or batch_dims."""

    kind: str
    output: Tensor
    data: Tensor
    numbers: Tensor
    axis: int

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.data, self.numbers)

    def written(self) -> Written:
        label = f"{self.kind} of {self.numbers.element}"
        return Written(self.kind, label, self, indices=self.numbers.name)


PICKS = {"Gather": "gather", "GatherElements": "gather_elements", "GatherND": "gather_nd"}
"""The operators of the kernel library by those of ONNX."""


@dataclass(frozen=True, slots=True)
class Scattered:
    """`data` with `updates` put in, or combined by one of `REDUCTIONS`: elements along `axis`, slices where it is None.

    Updates of the same place are taken in their order.
    """

    output: Tensor
    data: Tensor
    numbers: Tensor
    updates: Tensor
    reduction: str
    axis: int | None

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.data, self.numbers, self.updates)

    def written(self) -> Written:
        kind = "scatter_nd" if self.axis is None else "scatter_elements"
        label = f"{kind} by {self.numbers.element}, {self.reduction}"
        return Written(kind, label, self, indices=self.numbers.name)


@dataclass(frozen=True, slots=True)
class OneHot:
    """Numbers as an axis of `output` on which one element is the second of `values`, all others the first."""

    output: Tensor
    numbers: Tensor
    values: Tensor
    axis: int

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.numbers, self.values)

    def written(self) -> Written:
        return Written("one_hot", f"one hot along axis {self.axis}", self)


@dataclass(frozen=True, slots=True)
class ReverseSequence:
    """The first `lengths[b]` elements of each sequence b backwards: x (time, batch, ...), or (batch, time, ...)."""

    output: Tensor
    x: Tensor
    lengths: Tensor
    is_time_first: bool

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.x, self.lengths)

    def written(self) -> Written:
        return Written("reverse_sequence", "sequences backwards", self, indices=self.lengths.name)


@dataclass(frozen=True, slots=True)
class Triangle:
    """Matrices x (..., rows, columns) that are zero on one side of a diagonal, a number of its own."""

    output: Tensor
    x: Tensor
    diagonal: Tensor | int
    is_upper: bool

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.x, self.diagonal) if isinstance(self.diagonal, Tensor) else (self.x,)

    def written(self) -> Written:
        diagonal = self.diagonal if isinstance(self.diagonal, Tensor) else np.array([self.diagonal], np.int64)
        label = "upper triangle" if self.is_upper else "lower triangle"
        return Written("triangle", label, Words(self, diagonal=diagonal), numbered_first=(diagonal,))
