# SPDX-License-Identifier: Apache-2.0
"""What all steps share: the call of a kernel, the facts of the machine it is made for, and epilogues.

Law: a call writes every element of its output, padding lanes included.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from nndeploy_native.expressions import Expression, operand
from nndeploy_native.isa import Isa
from nndeploy_native.tensors import Array, Tensor

if TYPE_CHECKING:
    from nndeploy_native.activations import Activation


@dataclass(frozen=True, slots=True)
class Machine:
    """What steps are made for: an instruction set and the bytes of L2 (0: not known) and of the window buffer.

    `buffer_bytes` is what the user set, 0 where it follows from L2.
    """

    isa: Isa
    l2_bytes: int = 0
    buffer_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a kernel of c/: `nnd_<kernel>(&sizes, epilogues or activations..., out, arguments..., scratch)`.

    `sizes` fill the kernel's struct; `arguments` are tensors, packed constants or None (a null pointer), in order.
    `epilogues` are over (x, residual, channel); elementwise kernels take one over up to four operands.
    `activations` are what templates take instead. `scratch` is
    passed where `scratch_bytes` are asked for. `notes` are for whoever inspects the plan.
    """

    kernel: str
    sizes: Mapping[str, int]
    output: Tensor
    arguments: tuple[Tensor | Array | None, ...]
    epilogues: tuple[Expression, ...] = ()
    activations: "tuple[Activation, ...]" = ()
    scratch_bytes: int = 0
    notes: Mapping[str, int | str] = field(default_factory=dict)


class Step(Protocol):
    """One call of a kernel."""

    @property
    def output(self) -> Tensor:
        """What the step writes."""

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads, constants that only it knows excluded."""

    def call(self, machine: Machine) -> Call:
        """Returns what to call, with constants packed for the machine."""


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


PLAIN = Epilogue()
