# SPDX-License-Identifier: Apache-2.0
"""The walk of an LSTM through its steps, from gates that hold what the input adds."""

from dataclasses import dataclass

from nndeploy_native.isa import Isa
from nndeploy_native.packing import pack_gates
from nndeploy_native.steps.step import Call, Field, Machine, Note
from nndeploy_native.tensors import Array, Tensor

GATES = 4


def most_sequences(isa: Isa) -> int:
    """Returns how many sequences meet the weights at once: NND_MOST_SEQUENCES of c/recurrent.h."""
    return isa.accumulators // GATES - 1


@dataclass(frozen=True, slots=True, eq=False)
class Lstm:
    """output (T, batch, directions, hidden) of gates (T, batch, directions, 4, hidden) with bias, T steps.

    An output of T + 2 rows ends with the last h and the last c. `weights` are the recurrent ones, (directions,
    4 * hidden, hidden), gates in the order of ONNX. First states are (directions, batch, hidden), None for zeros. The
    first of two directions goes forwards, a lone one backwards where `is_reverse`.
    """

    output: Tensor
    gates: Tensor
    weights: Array
    first_h: Tensor | None
    first_c: Tensor | None
    is_reverse: bool

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.gates, *(one for one in (self.first_h, self.first_c) if one is not None))

    def call(self, machine: Machine) -> Call:
        """Returns what to call: directions and sequences are independent, which threads share."""
        directions, _, hidden = self.weights.shape
        steps, batch = self.gates.shape[:2]
        fields: dict[str, Field] = {
            "steps": steps,
            "batch": batch,
            "directions": directions,
            "hidden": hidden,
            "reverse": self.is_reverse,
            "keeps_last": self.output.shape[0] != steps,
            "most_sequences": most_sequences(machine.isa),
        }
        notes: dict[str, Note] = {
            "what": f"lstm of {hidden}, {directions} direction{'s' * (directions > 1)}",
            "multiply_adds": self.gates.size * hidden,
        }
        arguments = (self.gates, pack_gates(self.weights, machine.isa), self.first_h, self.first_c)
        scratch = 4 * hidden * most_sequences(machine.isa)
        return Call("lstm", fields, self.output, arguments, scratch_bytes=scratch, chunks=1, notes=notes)
