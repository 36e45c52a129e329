# SPDX-License-Identifier: Apache-2.0
"""What all steps share: the call of a kernel, the facts of the machine it is made for, and epilogues.

Law: a call writes every element of its output; padding lanes of a blocked output hold anything.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from nndeploy.values.size import Dim
from nndeploy_native.expressions import Expression, operand
from nndeploy_native.isa import Isa
from nndeploy_native.shuffles import Lane
from nndeploy_native.tensors import Array, Tensor

DEFAULT_L2_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Machine:
    """What steps are made for: an instruction set, the bytes of L2 (0: not known) and of the window buffer.

    `buffer_bytes` is what the user set, 0 where it follows from L2. `threads` is the number that will run, 0 where
    that is not known: windows then come in two variants where it matters, for one thread and for several. `fuses`
    is False only to measure what fusing convolutions gains.
    """

    isa: Isa
    l2_bytes: int = 0
    buffer_bytes: int = 0
    threads: int = 0
    fuses: bool = True

    @property
    def l2(self) -> int:
        """The bytes of L2, a usual number where they are not known."""
        return self.l2_bytes or DEFAULT_L2_BYTES


@dataclass(frozen=True, slots=True)
class Axis:
    """struct nnd_axis: one axis of a window, `size` of the input, `pad` before it."""

    size: Dim
    out_size: Dim
    kernel: Dim
    stride: int
    dilation: int
    pad: Dim

    @property
    def over(self) -> Dim:
        """How far the last window reaches beyond the end."""
        return (self.out_size - 1) * self.stride - self.pad + (self.kernel - 1) * self.dilation - (self.size - 1)


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


@dataclass(frozen=True, slots=True)
class Formula:
    """What becomes of the operands of an elementwise step, up to four."""

    expression: Expression


@dataclass(frozen=True, slots=True)
class Shuffle:
    """Which lane of the inputs' channel blocks each lane of each output block is."""

    blocks: tuple[tuple[Lane, ...], ...]


Field: TypeAlias = "Dim | Axis | Epilogue | Formula | Shuffle | Sequence[Field]"
"""A member of a step's struct; an `Epilogue` is a struct nnd_end, a `Formula` or `Shuffle` a function's address."""
Note: TypeAlias = "Dim | str"


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a kernel of c/: `nnd_<kernel>_step(&fields, out, arguments..., part)`.

    `fields` fill `struct nnd_<struct>_step`; `shared_fields` are those that are others where several threads run.
    `arguments` are tensors, packed constants or None (a null pointer), in order. `scratch_bytes` are those of each
    thread, `chunks` the parts of the step for each. `notes` are for whoever inspects the plan.
    """

    kernel: str
    fields: Mapping[str, Field]
    output: Tensor
    arguments: tuple[Tensor | Array | None, ...]
    struct: str = ""
    shared_fields: Mapping[str, Field] = field(default_factory=dict)
    scratch_bytes: Dim = 0
    chunks: int = 4
    notes: Mapping[str, Note] = field(default_factory=dict)


class NativeStep(Protocol):
    """One call of a kernel."""

    @property
    def output(self) -> Tensor:
        """What the step writes."""

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads, constants that only it knows excluded."""

    def call(self, machine: Machine) -> Call:
        """Returns what to call, with constants packed for the machine."""
