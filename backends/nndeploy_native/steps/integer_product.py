# SPDX-License-Identifier: Apache-2.0
"""Products of rows of bytes by a constant matrix of bytes, whose sums are exact."""

from dataclasses import dataclass

from nndeploy_native.steps.integer_sums import IntegerSums
from nndeploy_native.tensors import Shape


@dataclass(frozen=True, slots=True, eq=False)
class IntegerProduct(IntegerSums):
    """Sums (..., columns), of a (..., inner) and weights (inner, columns)."""

    @property
    def sizes(self) -> Shape:
        """The axes of the product: (..., columns)."""
        return (*self.a.shape[:-1], self.weights.shape[1])
