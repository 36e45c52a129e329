# SPDX-License-Identifier: Apache-2.0
"""What all steps share: what they read and write, and epilogues.

Law: a step writes every element of its output; padding lanes of a blocked output, and room for what will be appended,
hold anything.
"""

from dataclasses import dataclass, field
from typing import Protocol

from nndeploy.values.size import Dim
from nndeploy_native.expression_program import Program, program_of
from nndeploy_native.expressions import Expression, operand
from nndeploy_native.tensors import Array, Tensor


@dataclass(frozen=True, slots=True)
class Epilogue:
    """What becomes of an output element x: an expression over x (0), the residual (1) and a number a channel (2).

    `residual` has the shape and layout of the output.
    """

    expression: Expression = field(default=operand(0))
    residual: Tensor | None = None
    channel: Array | None = None

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the epilogue reads."""
        return () if self.residual is None else (self.residual,)

    @property
    def program(self) -> Program | None:
        """The expression as a program; None where nothing becomes of x."""
        return None if self.expression == operand(0) else program_of(self.expression, 3)


PLAIN = Epilogue()


@dataclass(frozen=True, slots=True)
class Unstored:
    """A tensor between the parts of a fused step, which has no memory."""

    tensor: Tensor


class Words:
    """What stands for the words of an operator or of a part of one, by their names in nndeploy_kernels/plan_words.h.

    That is what is given here, or the attribute of `source`.
    """

    def __init__(self, source: object = None, **given: object) -> None:
        self._source, self._given = source, given

    def __getitem__(self, name: str) -> object:
        """Returns what stands for a word."""
        if name not in self._given:
            name = {"in": "x", "out": "output"}.get(name, name)
        return self._given[name] if name in self._given else getattr(self._source, name)

    def but(self, **given: object) -> "Words":
        """Returns the same with others given."""
        return Words(self._source, **self._given, **given)


class Written:
    """A step as a plan has it: an operator of the library, what people are shown of it, and its words.

    `words` are `Words`, a tuple in their order, or what has them as attributes. Equal tensors, constants and sizes have
    one number in a plan, in the order in which they are met: `numbered_first` before those of the words.
    """

    def __init__(
        self,
        operator: str,
        label: str,
        words: object,
        *,
        numbered_first: "tuple[Tensor | Array | Dim, ...]" = (),
        **notes: str,
    ) -> None:
        self.operator, self.label, self.words = operator, label, words
        self.numbered_first, self.notes = numbered_first, notes


class NativeStep(Protocol):
    """One call of an operator of the kernel library."""

    @property
    def output(self) -> Tensor:
        """What the step writes."""

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads, constants that only it knows excluded."""

    def written(self) -> Written:
        """Returns the step as a plan has it.

        Raises:
            BuildRefusedError: the library has no operator for it.
        """
