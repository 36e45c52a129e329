# SPDX-License-Identifier: Apache-2.0
"""pointwise -> depthwise -> pointwise as one step: the wide tensors between live in a buffer, window by window."""

from dataclasses import dataclass

from nndeploy.values.size import Dim, most, typical
from nndeploy_native.scratch import Scratch
from nndeploy_native.steps.convolution import Convolution, come_from_afar
from nndeploy_native.steps.separable import Separable
from nndeploy_native.steps.step import Axis, Call, Field, Machine
from nndeploy_native.tensors import Tensor, padded
from nndeploy_native.windows import (
    InvertedWindow,
    SlidingWindow,
    buffer_capacity,
    inverted_scratch,
    inverted_window_for,
    rows_read,
    shared_rows,
)


@dataclass(frozen=True, slots=True, eq=False)
class InvertedResidual:
    """`pair`, a depthwise and a pointwise convolution, of what `expand`, a pointwise one, gives."""

    expand: Convolution
    pair: Separable

    @property
    def output(self) -> Tensor:
        """What the step writes."""
        return self.pair.output

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.expand.x, *self.pair.epilogue.inputs)

    def call(self, machine: Machine) -> Call:
        """Returns what to call, with the window that fits the buffer."""
        isa, (expand, first, second) = machine.isa, (self.expand, self.pair.first, self.pair.second)
        capacity, images = buffer_capacity(machine, typical(expand.x.num_bytes(isa))), expand.x.shape[0]
        window = self._window(machine, capacity)
        shared = self._shared_window(machine, window)
        chosen = shared if machine.threads > 1 else window
        fields: dict[str, Field] = {
            **first.axes(),
            "images": images,
            "in_channels": expand.x.channels,
            "channels": expand.output.channels,
            "out_channels": second.output.channels,
            **self._window_fields(chosen, machine),
            "prefetch_weights": come_from_afar(expand.weights, machine) or come_from_afar(second.weights, machine),
            "prefetch_input": typical(expand.x.num_bytes(isa)) > machine.l2,
            "expand_end": expand.epilogue,
            "first_end": first.epilogue,
            "end": second.epilogue,
        }
        steps = (expand, first, second)
        hidden = min(padded(expand.output.channels, isa.lanes), chosen.group_panels * isa.panel * isa.lanes)
        return Call(
            "inverted_residual",
            fields,
            second.output,
            (
                expand.x,
                *(part for step in (expand, first) for part in (*step.packed(isa), step.packed_numbers(isa))),
                *second.packed(isa),
                second.epilogue.residual,
                second.packed_numbers(isa),
            ),
            shared_fields={} if machine.threads or shared == window else self._window_fields(shared, machine),
            chunks=2,  # each expands again what it shares with the one before
            scratch_bytes=most(*(self._scratch(one, machine).num_bytes for one in (window, shared))),
            notes={
                "what": " then ".join(str(step.notes()["what"]) for step in steps),
                "multiply_adds": expand.multiply_adds + first.multiply_adds + second.multiply_adds,
                "layout": f"NCHW{isa.lanes}c",
                "window": str(SlidingWindow(chosen.rows, first.output.shape[3], hidden)),
                "buffer_bytes": capacity,
                "not_written_bytes": expand.output.num_bytes(isa) + first.output.num_bytes(isa),
            },
        )

    def _axes(self) -> tuple[Axis, Axis]:
        axes = self.pair.first.axes()
        return axes["y"], axes["x"]

    def _window(self, machine: Machine, capacity: int) -> InvertedWindow:
        return inverted_window_for(capacity, *self._axes(), self.expand.output.channels, machine.isa)

    def _shared_window(self, machine: Machine, window: InvertedWindow) -> InvertedWindow:
        """Returns the window where several threads run: fewer rows of all hidden channels where one was the image."""
        y, _ = self._axes()
        rows = shared_rows(window.rows, y.out_size, self.expand.x.shape[0], machine.threads or 2)
        if rows == window.rows:
            return window
        all_panels = inverted_window_for(0, *self._axes(), self.expand.output.channels, machine.isa).group_panels
        return InvertedWindow(rows, all_panels)

    def _window_fields(self, window: InvertedWindow, machine: Machine) -> dict[str, Dim]:
        y, _ = self._axes()
        places = self._scratch(window, machine).places
        return {
            "window_rows": window.rows,
            "group_panels": window.group_panels,
            "ring_rows": rows_read(y, window.rows),
            **places,
        }

    def _scratch(self, window: InvertedWindow, machine: Machine) -> Scratch:
        return inverted_scratch(window, *self._axes(), self.expand.output.channels, machine.isa)
