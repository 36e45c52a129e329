# SPDX-License-Identifier: Apache-2.0
"""The walk of an LSTM through its steps, from gates that hold what the input adds."""

from dataclasses import dataclass

from nndeploy_native.tensors import Array, Tensor


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
