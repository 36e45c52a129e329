# SPDX-License-Identifier: Apache-2.0
"""Elementwise steps: an expression over operands of one layout, each whole or broadcast."""

from dataclasses import dataclass

import numpy as np

from nndeploy.values.size import Dim
from nndeploy_native.expressions import Expression, label_of
from nndeploy_native.isa import Isa
from nndeploy_native.packing import to_bf16
from nndeploy_native.steps.step import Call, Field, Formula, Machine
from nndeploy_native.tensors import Array, Shape, Tensor, blocked_array

MAX_OPERANDS = 4
MAX_RANK = 6


@dataclass(frozen=True, slots=True, eq=False)
class Operand:
    """A tensor, or a constant in `array`, of a shape that is broadcast to the output's."""

    shape: Shape
    tensor: Tensor | None = None
    array: Array | None = None

    def is_same(self, other: "Operand") -> bool:
        """Whether both are the same tensor in the same shape."""
        return self.tensor is not None and self.tensor == other.tensor and self.shape == other.shape


@dataclass(frozen=True, slots=True, eq=False)
class Elementwise:
    """output = expression(operands); blocked outputs take operands (N or 1, C, H, W) and (N or 1, C, 1, 1) only."""

    output: Tensor
    operands: tuple[Operand, ...]
    expression: Expression

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return tuple(one.tensor for one in self.operands if one.tensor is not None)

    def call(self, machine: Machine) -> Call:
        """Returns what to call."""
        blocked = self.output.is_blocked
        fields = self._blocked_fields(machine.isa) if blocked else self._plain_fields()
        kernel = f"elementwise_{'blocked' if blocked else 'plain'}"
        arguments = [self._argument(one, machine.isa) for one in self.operands]
        arguments += [None] * (MAX_OPERANDS - len(arguments))
        notes = {"what": label_of(self.expression) or "copy"}
        return Call(kernel, {**fields, "then": Formula(self.expression)}, self.output, tuple(arguments), notes=notes)

    def _argument(self, one: Operand, isa: Isa) -> Tensor | Array | None:
        if one.array is None or not self.output.is_blocked:
            return one.tensor if one.array is None else np.ascontiguousarray(one.array, np.float32)
        blocked = blocked_array(one.array.reshape(one.shape), isa.lanes)
        return to_bf16(blocked) if isa.precision == "bf16" else blocked

    def _blocked_fields(self, isa: Isa) -> dict[str, Field]:
        """Steps in vectors: over images, over channel blocks, over pixels."""
        batch, _, height, width = self.output.shape
        blocks = isa.blocks(self.output.channels)
        sizes = [one.shape[2] * one.shape[3] for one in self.operands]
        return {
            "images": batch,
            "blocks": blocks,
            "pixels": height * width,
            "step_n": [
                0 if one.shape[0] == 1 else blocks * pixels for one, pixels in zip(self.operands, sizes, strict=True)
            ],
            "step_b": sizes,
            "step_p": [0 if pixels == 1 else 1 for pixels in sizes],
        }

    def _plain_fields(self) -> dict[str, Field]:
        dims, strides = collapsed(self.output.shape, [one.shape for one in self.operands])
        return {"size": dims, "step": [list(one) for one in strides]}


def collapsed(shape: Shape, operand_shapes: list[Shape]) -> tuple[Shape, list[Shape]]:
    """Returns the fewest axes that do, up to `MAX_RANK`, and the step of each operand along each; ones in front."""
    rank = len(shape)
    strides = [_broadcast_strides(one, rank) for one in operand_shapes]
    dims: list[Dim] = []
    steps: list[list[Dim]] = [[] for _ in strides]
    for axis in range(rank):
        if shape[axis] == 1:
            continue
        here = [one[axis] for one in strides]
        if dims and all(of[-1] == step * shape[axis] for of, step in zip(steps, here, strict=True)):
            dims[-1] *= shape[axis]
            for of, step in zip(steps, here, strict=True):
                of[-1] = step
            continue
        dims.append(shape[axis])
        for of, step in zip(steps, here, strict=True):
            of.append(step)
    front = MAX_RANK - len(dims)
    assert front >= 0
    return (*[1] * front, *dims), [(*[0] * front, *one) for one in steps]


def _broadcast_strides(shape: Shape, rank: int) -> list[Dim]:
    full = (*[1] * (rank - len(shape)), *shape)
    strides: list[Dim] = [0] * rank
    step: Dim = 1
    for axis in reversed(range(rank)):
        strides[axis] = 0 if full[axis] == 1 else step
        step *= full[axis]
    return strides
