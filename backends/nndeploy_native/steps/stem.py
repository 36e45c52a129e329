# SPDX-License-Identifier: Apache-2.0
"""A dense convolution from NCHW and the separable pair after it as one step: the widest tensor is never written."""

from dataclasses import dataclass, replace

from nndeploy.values.size import Dim, is_fixed, typical
from nndeploy_native.scratch import Scratch, scratch_of
from nndeploy_native.steps.convolution import Convolution, come_from_afar, is_streamed
from nndeploy_native.steps.separable import Separable
from nndeploy_native.steps.step import Call, Field, Machine
from nndeploy_native.tensors import Tensor
from nndeploy_native.windows import SlidingWindow, buffer_capacity, rows_read, shared_rows, window_for


@dataclass(frozen=True, slots=True, eq=False)
class Stem:
    """`pair`, a depthwise and a pointwise convolution, of what `wide`, a dense one of a plain tensor, gives."""

    wide: Convolution
    pair: Separable

    @property
    def output(self) -> Tensor:
        """What the step writes."""
        return self.pair.output

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (*self.wide.inputs, *self.pair.epilogue.inputs)

    def window(self, machine: Machine) -> SlidingWindow:
        """Returns the window whose first result fits half of the buffer; the rows that it reads take the rest."""
        output = self.pair.first.output
        _, _, height, width = output.shape
        return window_for(self._capacity(machine) // 2, height, width, output.channels, machine.isa)

    def fits(self, machine: Machine) -> bool:
        """Whether the kernel can do it: it knows whole rows of all channels only."""
        if not is_fixed(self.wide.x.shape[1:]):
            return False
        window, first = self.window(machine), self.pair.first
        return window.columns == first.output.shape[3] and window.channels >= first.x.channels

    def call(self, machine: Machine) -> Call:
        """Returns what to call."""
        isa, wide, (first, second) = machine.isa, self.wide, (self.pair.first, self.pair.second)
        window = self.window(machine)
        shared = shared_rows(window.rows, first.output.shape[2], wide.x.shape[0], machine.threads or 2)
        rows = shared if machine.threads > 1 else window.rows
        axes = wide.axes()
        fields: dict[str, Field] = {
            "wide_y": axes["y"],
            "wide_x": axes["x"],
            **first.axes(),
            "images": wide.x.shape[0],
            "in_channels": wide.x.channels,
            "channels": wide.output.channels,
            "out_channels": second.output.channels,
            **self._window_fields(rows, machine),
            "stream": is_streamed(second.output, machine),
            "prefetch_weights": come_from_afar(second.weights, machine),
            "wide_end": wide.epilogue,
            "first_end": first.epilogue,
            "end": second.epilogue,
        }
        steps = (wide, first, second)
        return Call(
            "stem",
            fields,
            second.output,
            (
                wide.x,
                *(part for step in (wide, first) for part in (*step.packed(isa), step.packed_numbers(isa))),
                *second.packed(isa),
                second.epilogue.residual,
                second.packed_numbers(isa),
            ),
            shared_fields={} if machine.threads or shared == rows else self._window_fields(shared, machine),
            chunks=2,  # each makes again the rows that it shares with the one before
            scratch_bytes=self._scratch(rows, machine).num_bytes,
            notes={
                "what": " then ".join(str(step.notes()["what"]) for step in steps),
                "multiply_adds": wide.multiply_adds + first.multiply_adds + second.multiply_adds,
                "layout": f"NCHW to NCHW{isa.lanes}c",
                "window": str(replace(window, rows=rows)),
                "buffer_bytes": self._capacity(machine),
                "not_written_bytes": wide.output.num_bytes(isa) + first.output.num_bytes(isa),
            },
        )

    def _capacity(self, machine: Machine) -> int:
        return buffer_capacity(machine, typical(self.wide.x.num_bytes(machine.isa)))

    def _window_fields(self, rows: Dim, machine: Machine) -> dict[str, Dim]:
        y = self.pair.first.axes()["y"]
        return {"window_rows": rows, "ring_rows": rows_read(y, rows), **self._scratch(rows, machine).places}

    def _scratch(self, rows: Dim, machine: Machine) -> Scratch:
        """Returns the ring of the convolution's rows and the first result of windows of `rows` rows."""
        isa, (y, x) = machine.isa, self.pair.first.axes().values()
        of_pixel = isa.elem_bytes * isa.lanes * isa.blocks(self.pair.first.x.channels)
        return scratch_of(ring=of_pixel * rows_read(y, rows) * x.size, first=of_pixel * rows * x.out_size)
