# SPDX-License-Identifier: Apache-2.0
"""The walk of a recurrent layer through its steps, from gates that hold what the input adds."""

from dataclasses import dataclass

import numpy as np

from nndeploy_native.expression_program import program_of
from nndeploy_native.expressions import Expression
from nndeploy_native.steps.step import Words, Written
from nndeploy_native.tensors import Array, Tensor

GATES = {"lstm": 4, "gru": 3, "rnn": 1}
ACTIVATIONS = {"lstm": 3, "gru": 2, "rnn": 1}


@dataclass(frozen=True, slots=True)
class States:
    """What a sequence begins with, tensors (directions, batch, hidden); None for zeros."""

    h: Tensor | None = None
    c: Tensor | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Recurrent:
    """output (T, batch, directions, hidden) of gates (T, batch, directions, gates, hidden) with bias, T steps.

    `kind` is "lstm", "gru" or "rnn". An output of more rows than T ends with the last h and, of an lstm, the last c.
    `weights` are the recurrent ones, (directions, gates * hidden, hidden), gates in the order of ONNX; those of an lstm
    may be int8, with `scales` and, where they are not zero, `zeros` (directions, gates * hidden) of float32: states are
    quantised by their range then. The first of two directions goes forwards, a lone one backwards where `is_reverse`.
    `lengths` are those of the sequences, int32. `activations` are functions of operand 0, those of one direction behind
    those of the other; None the usual.
    `reset_bias` (directions, hidden) belongs to a gru that `resets_after` the product.
    """

    kind: str
    output: Tensor
    gates: Tensor
    weights: Array
    first: States = States()
    lengths: Tensor | None = None
    is_reverse: bool = False
    peepholes: Array | None = None
    is_joined: bool = False
    reset_bias: Array | None = None
    resets_after: bool = False
    scales: Array | None = None
    zeros: Array | None = None
    activations: "tuple[Expression | None, ...]" = ()

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.gates, *(one for one in (self.first.h, self.first.c, self.lengths) if one is not None))

    def written(self) -> Written:
        directions, _, hidden = self.weights.shape
        usual = (None,) * (directions * ACTIVATIONS[self.kind])
        activations = tuple(None if one is None else program_of(one, 1) for one in self.activations or usual)
        scales = self.scales
        if scales is not None and self.zeros is not None:
            scales = np.stack([scales, self.zeros])
        words = Words(self, activations=activations, scales=scales)
        return Written(self.kind, f"{self.kind} of {hidden}, {directions} direction{'s' * (directions > 1)}", words)
