# SPDX-License-Identifier: Apache-2.0
"""Products of rows of bytes by a constant matrix of bytes, whose sums are exact."""

from dataclasses import dataclass

from nndeploy_native.steps.integer_sums import IntegerSums
from nndeploy_native.steps.step import Written
from nndeploy_native.tensors import Shape


@dataclass(frozen=True, slots=True, eq=False)
class IntegerProduct(IntegerSums):
    """Sums (..., columns), of a (..., inner) and weights (inner, columns)."""

    @property
    def sizes(self) -> Shape:
        """The axes of the product: (..., columns)."""
        return (*self.a.shape[:-1], self.weights.shape[1])

    def written(self) -> Written:
        turned, shape = self.weights.T, self.weights.shape
        is_transposed = turned.flags.c_contiguous and not self.weights.flags.c_contiguous
        sums = self.sums(turned if is_transposed else self.weights)
        label = f"fully connected of bytes, {shape[0]}->{shape[-1]}"
        return Written("int8_connected", label, (is_transposed, sums), numbered_first=self.numbered_first)
