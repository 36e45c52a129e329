# SPDX-License-Identifier: Apache-2.0
"""Resizing of blocked images: each output place is a weighted sum of few rows and few columns."""

from dataclasses import dataclass

import numpy as np

from nndeploy_native.steps.step import Call, Field, Machine
from nndeploy_native.tensors import Array, Tensor


@dataclass(frozen=True, slots=True)
class Repeat:
    """Every pixel is there `times` (rows, columns) more often, side by side."""

    output: Tensor
    x: Tensor
    times: tuple[int, int]

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.x,)

    def call(self, machine: Machine) -> Call:  # noqa: ARG002
        """Returns what to call."""
        batch, channels, height, width = self.x.shape
        fields: dict[str, Field] = {"images": batch, "channels": channels, "in_h": height, "in_w": width}
        fields.update(times_h=self.times[0], times_w=self.times[1])
        notes = {"what": f"repeat {self.times[0]}x{self.times[1]}"}
        return Call("repeat", fields, self.output, (self.x,), notes=notes)


@dataclass(frozen=True, slots=True, eq=False)
class Resize:
    """`rows` and `columns` are (places, weights), each (size of the output, taps)."""

    output: Tensor
    x: Tensor
    rows: tuple[Array, Array]
    columns: tuple[Array, Array]

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.x,)

    @property
    def copies(self) -> bool:
        """Whether every output place is one input place."""
        return all(weights.shape[1] == 1 and bool(np.all(weights == 1)) for _, weights in (self.rows, self.columns))

    def call(self, machine: Machine) -> Call:
        """Returns what to call."""
        batch, channels, height, width = self.x.shape
        fields: dict[str, Field] = {"images": batch, "channels": channels, "in_h": height, "in_w": width}
        fields.update(out_h=self.output.shape[2], out_w=self.output.shape[3])
        fields.update(taps_h=self.rows[0].shape[1], taps_w=self.columns[0].shape[1])
        fields.update(copies=self.copies)
        tables = [np.ascontiguousarray(one[0], np.int32) for one in (self.rows, self.columns)]
        weights = [np.ascontiguousarray(one[1], np.float32) for one in (self.rows, self.columns)]
        arguments = (self.x, tables[0], weights[0], tables[1], weights[1])
        scratch_bytes = 0 if self.copies else 4 * machine.isa.lanes * width
        notes = {"what": f"resize {height}x{width}, {'copied' if self.copies else 'weighted'}"}
        return Call("resize", fields, self.output, arguments, scratch_bytes=scratch_bytes, notes=notes)
