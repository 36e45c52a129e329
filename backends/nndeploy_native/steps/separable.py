# SPDX-License-Identifier: Apache-2.0
"""depthwise -> pointwise as one step: the first result lives in a buffer of the target's capacity only."""

from dataclasses import dataclass, replace

from nndeploy.values.size import Dim, ceil_div, is_fixed, most, typical
from nndeploy_native.isa import Isa
from nndeploy_native.scratch import Scratch, scratch_of
from nndeploy_native.steps.convolution import Convolution, come_from_afar, is_streamed
from nndeploy_native.steps.step import Call, Epilogue, Field, Machine
from nndeploy_native.tensors import Layout, Tensor, padded
from nndeploy_native.windows import SlidingWindow, rows_read, separable_capacity, shared_rows, window_for

PLANAR_ROWS = 4
"""Least rows of a window of planes, where L2 holds them: windows copy the rows that they share. 64->64 at 320 x 320
takes 0.89 of the time that it takes with one: AMD Zen 5, L2 1 MiB, 2026-11-20."""
PLANAR_TAPS = 49
"""Most taps of a kernel over planes, whose rows and columns are all unrolled."""


@dataclass(frozen=True, slots=True, eq=False)
class Separable:
    """`second`, a pointwise convolution, of what `first`, a depthwise one, gives."""

    first: Convolution
    second: Convolution

    @property
    def output(self) -> Tensor:
        """What the step writes."""
        return self.second.output

    @property
    def epilogue(self) -> Epilogue:
        """The end of the second."""
        return self.second.epilogue

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (*self.first.inputs, *self.second.epilogue.inputs)

    def window(self, machine: Machine) -> SlidingWindow:
        """Returns the window that fits the buffer."""
        output = self.first.output
        _, _, height, width = output.shape
        return window_for(self.capacity(machine), height, width, output.channels, machine.isa)

    def capacity(self, machine: Machine) -> int:
        """Returns the bytes of the buffer."""
        result = self._inner_first.output
        num_bytes = result.num_bytes(machine.isa)
        row_bytes = num_bytes // (result.shape[0] * result.shape[2])
        input_bytes = self._inner_first.x.num_bytes(machine.isa)
        capacity = separable_capacity(machine, typical(input_bytes), typical(num_bytes), typical(row_bytes))
        if machine.buffer_bytes or self.first.x.is_blocked or self.first.window.strides[0] > 1:
            return capacity
        return max(capacity, min(PLANAR_ROWS * typical(row_bytes), machine.l2 // 2))

    @property
    def has_planes(self) -> bool:
        """Whether it reads or writes planes, in the order of ONNX."""
        return not (self.first.x.is_blocked and self.output.is_blocked)

    def takes_planes(self, machine: Machine) -> bool:
        """Whether the kernel that changes the layout window by window can do it: it knows whole rows only."""
        if not is_fixed(self.first.x.shape[1:]):
            return False
        window, weights = self.window(machine), self.first.weights
        return (
            weights.shape[2] * weights.shape[3] <= PLANAR_TAPS
            and self.epilogue.residual is None
            and window.columns == self.first.output.shape[3]
            and window.channels >= self.first.x.channels
        )

    def call(self, machine: Machine) -> Call:
        """Returns what to call."""
        isa, first, second = machine.isa, self._inner_first, self.second
        window, height = self.window(machine), first.output.shape[2]
        shared = shared_rows(window.rows, height, first.x.shape[0], machine.threads or 2)
        rows = shared if machine.threads > 1 else window.rows
        fields: dict[str, Field] = {
            **first.axes(),
            "images": first.x.shape[0],
            "channels": first.x.channels,
            "out_channels": second.output.channels,
            **self._window_fields(rows, machine),
            "stream": is_streamed(second.output, machine),
            "prefetch_weights": come_from_afar(second.weights, machine),
            "prefetch_input": typical(first.x.num_bytes(isa)) > machine.l2,
            "first_end": first.epilogue,
            "end": second.epilogue,
        }
        if self.has_planes:
            fields |= {"planar_in": not self.first.x.is_blocked, "planar_out": not self.output.is_blocked}
            if not self.output.is_blocked:
                fields["stream"] = is_streamed(second.output, machine) and self._begins_at_vectors(isa)
        else:
            fields |= {"window_columns": window.columns, "window_channels": window.channels}
        weights = (self.first.x, *first.packed(isa), first.packed_numbers(isa), *second.packed(isa))
        residual = () if self.has_planes else (second.epilogue.residual,)
        return Call(
            "planar_separable" if self.has_planes else "separable",
            fields,
            second.output,
            (*weights, *residual, second.packed_numbers(isa)),
            shared_fields={} if machine.threads or shared == rows else self._window_fields(shared, machine),
            scratch_bytes=self._scratch(rows, machine).num_bytes,
            notes={
                "what": f"{first.notes()['what']} then {second.notes()['what']}",
                "multiply_adds": first.multiply_adds + second.multiply_adds,
                "layout": self._layout(isa),
                "window": str(replace(window, rows=rows)),
                "buffer_bytes": self.capacity(machine),
                "not_written_bytes": replace(first.output, layout=Layout.BLOCKED).num_bytes(isa),
            },
        )

    @property
    def _inner_first(self) -> Convolution:
        """The depthwise convolution as the kernel sees it: whatever the layout before it, it reads blocks."""
        return replace(self.first, x=replace(self.first.x, layout=Layout.BLOCKED))

    def _layout(self, isa: Isa) -> str:
        sides = ("NCHW" if not tensor.is_blocked else f"NCHW{isa.lanes}c" for tensor in (self.first.x, self.output))
        return " to ".join(dict.fromkeys(sides))

    def _begins_at_vectors(self, isa: Isa) -> bool:
        """Whether each row of the output's planes does."""
        _, _, height, width = self.output.shape
        if not self.output.is_fixed:
            return False
        return width % isa.lanes == 0 and height * width % isa.lanes == 0

    def _window_fields(self, rows: Dim, machine: Machine) -> dict[str, Dim]:
        """Returns what windows of `rows` rows are to the kernel."""
        if not self.has_planes:
            return {"window_rows": rows}
        planes = {**self._copied_row(machine), "group_floats": self._group_floats(rows, machine)}
        return {"window_rows": rows, **planes, **self._scratch(rows, machine).places}

    def _copied_row(self, machine: Machine) -> dict[str, Dim]:
        """Returns how a row that is copied from a plane lies, in floats; c/planar_depthwise.h says what they are."""
        if self.first.x.is_blocked:
            return {"row_left": 0, "row_phase": 0}
        lanes, x = machine.isa.lanes, self.first.axes()["x"]
        left = padded(ceil_div(x.pad, x.stride), lanes)
        read = padded(x.out_size, lanes) + (x.kernel - 1) * x.dilation // x.stride
        return {"row_left": left, "row_phase": left + padded(most(read, ceil_div(x.size, x.stride)), lanes)}

    def _group_floats(self, rows: Dim, machine: Machine) -> Dim:
        """Returns the floats of the rows that a window of `rows` rows reads, copied, of a group of channels."""
        y, x = self.first.axes().values()
        return machine.isa.group * rows_read(y, rows) * x.stride * self._copied_row(machine)["row_phase"]

    def _scratch(self, rows: Dim, machine: Machine) -> Scratch:
        """Returns the first result of windows of `rows` rows, and where planes are read or written what is beside it.

        From planes that is, twice, the rows of the input that a window reads of a group of channels; for planes the
        second result. The depthwise part over planes writes up to a vector of groups behind its last pixel.
        """
        isa, window = machine.isa, self.window(machine)
        vector_bytes = isa.elem_bytes * isa.lanes
        if not self.has_planes:
            return scratch_of(first=vector_bytes * rows * window.columns * isa.blocks(window.channels))
        pixels, beside = rows * window.columns, 0 if self.first.x.is_blocked else isa.group
        second = 0 if self.output.is_blocked else pixels * isa.blocks(self.output.channels)
        return scratch_of(
            rows=2 * 4 * self._group_floats(rows, machine),
            first=vector_bytes * (pixels * isa.blocks(self.first.output.channels) + beside),
            second=vector_bytes * second,
        )
