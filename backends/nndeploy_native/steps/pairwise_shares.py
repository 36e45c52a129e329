# SPDX-License-Identifier: Apache-2.0
"""Shares of classes, from scores of their pairs."""

from dataclasses import dataclass

from nndeploy_native.steps.step import Words, Written
from nndeploy_native.tensors import Array, Tensor


@dataclass(frozen=True, slots=True, eq=False)
class PairwiseShares:
    """output (rows, classes) of scores x (rows, pairs) of the pairs (i, j), i < j, of which those of i stand together.

    The share of i against j is 1 / (1 + exp(slope * score + offset)), with a slope and an offset (pairs) of each.
    """

    output: Tensor
    x: Tensor
    classes: int
    slopes: Array
    offsets: Array

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.x,)

    def written(self) -> Written:
        return Written("pairwise_shares", f"shares of {self.classes} classes by pairs", Words(self))
