# SPDX-License-Identifier: Apache-2.0
"""Softmax attention: scores of queries by keys, what becomes of each, and the mean of values that they weigh."""

from dataclasses import dataclass, field

from nndeploy_native.expression_program import program_of
from nndeploy_native.expressions import Expression, operand
from nndeploy_native.steps.elementwise import Operand
from nndeploy_native.steps.movement import View, contiguous
from nndeploy_native.steps.step import Written
from nndeploy_native.tensors import Shape, Tensor

MAX_OTHERS = 3
"""Operands of the score beside the products: NND_MOST_OTHERS of the kernel library."""


@dataclass(frozen=True, slots=True, eq=False)
class Attention:
    """output (..., rows, columns) = softmax(score(q by k)) by v (..., keys, columns).

    q is (..., rows, inner) and k (..., inner, keys); softmax goes along the keys.
    `score` is an expression over the product (0) and `others`, which are broadcast to (..., rows, keys). Views are of
    equally many axes, those of the batch are equal. A row whose softmax is NaN is zeros where it `is_guarded`. Columns
    lie side by side in the output; `strides`, where there are any, are those of its other axes, which may stand in any
    order and fill it.
    """

    output: Tensor
    q: View
    k: View
    v: View
    score: Expression = field(default=operand(0))
    others: tuple[Operand, ...] = ()
    is_guarded: bool = False
    strides: Shape | None = None

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        others = (one.tensor for one in self.others if one.tensor is not None)
        return (self.q.base, self.k.base, self.v.base, *others)

    @property
    def out_strides(self) -> Shape:
        """From element to element of the output along each axis."""
        return self.strides or contiguous((*self.q.sizes[:-1], self.v.sizes[-1]))

    def written(self) -> Written:
        q, k, v, out = self.q, self.k, self.v, self.out_strides
        program = None if self.score == operand(0) else program_of(self.score, len(self.others) + 1)
        batch = len(q.sizes) - 2
        of_q, of_k, of_v = ((one.offset, *one.strides[-2:]) for one in (q, k, v))
        words = (
            q.base, k.base, v.base, program, self.is_guarded, tuple(one.value for one in self.others),
            *q.sizes[-2:], k.sizes[-1], v.sizes[-1], k.sizes[-2], v.sizes[-2], *of_q, *of_k, *of_v, out[-2],
            tuple(zip(q.sizes[:batch], q.strides, k.strides, v.strides, out, strict=False)), self.output,
        )  # fmt: skip
        return Written("attention", f"attention of {q.sizes[-2]} by {k.sizes[-1]} keys, {q.sizes[-1]} each", words)
