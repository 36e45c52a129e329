# SPDX-License-Identifier: Apache-2.0
"""Resizing of blocked images: each output place is a weighted sum of few rows and few columns."""

from dataclasses import dataclass

import numpy as np

from nndeploy_native.tensors import Array, Tensor


@dataclass(frozen=True, slots=True)
class Repeat:
    """Every pixel is there `times` (rows, columns) more often, side by side."""

    output: Tensor
    x: Tensor
    times: tuple[int, int]

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.x,)


@dataclass(frozen=True, slots=True, eq=False)
class Resize:
    """`rows` and `columns` are (places, weights), each (size of the output, taps)."""

    output: Tensor
    x: Tensor
    rows: tuple[Array, Array]
    columns: tuple[Array, Array]

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.x,)

    @property
    def copies(self) -> bool:
        """Whether every output place is one input place."""
        return all(weights.shape[1] == 1 and bool(np.all(weights == 1)) for _, weights in (self.rows, self.columns))
