# SPDX-License-Identifier: Apache-2.0
"""depthwise -> pointwise as one step: the first result lives in a buffer of the target's capacity only."""

from dataclasses import dataclass, replace

from nndeploy.sizes.size import Dim, is_fixed, most, typical
from nndeploy_native.isa import Isa
from nndeploy_native.steps.convolution import Convolution, come_from_afar, is_streamed
from nndeploy_native.steps.step import Call, Epilogue, Field, Machine
from nndeploy_native.tensors import Layout, Tensor, padded
from nndeploy_native.windows import SlidingWindow, rows_read, separable_capacity, shared_rows, window_for

PLANAR_ROWS = 4
"""At least of a window of planes, where L2 holds them: rows that windows share are copied by each. 64->64 at 320 x 320
takes 0.89 of the time that it takes with one: AMD Zen 5, L2 1 MiB, 2026-11-20."""
PLANAR_TAPS = 49
"""At most of a kernel over planes, whose rows and columns are all unrolled."""


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
            "window_rows": rows,
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
            shared_fields={} if machine.threads or shared == rows else {"window_rows": shared},
            scratch_bytes=self._scratch_bytes(window, machine),
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

    def _scratch_bytes(self, window: SlidingWindow, machine: Machine) -> Dim:
        """Returns the bytes of the first result, and of the second and some rows of the input where they are kept."""
        isa, lanes = machine.isa, machine.isa.lanes
        vectors = window.rows * window.columns * (window.channels // lanes)
        if not self.output.is_blocked:
            vectors += window.rows * self.output.shape[3] * isa.blocks(self.output.channels)
        if self.first.x.is_blocked:
            return isa.elem_bytes * lanes * vectors
        y, x = self.first.axes().values()
        read = padded(x.out_size, lanes) + (x.kernel - 1) * x.dilation // x.stride
        phase = padded(-(-x.pad // x.stride), lanes) + padded(most(read, -(-x.size // x.stride)), lanes)
        rows = 2 * isa.group * rows_read(y, window.rows)
        return isa.elem_bytes * lanes * (vectors + 2) + 4 * rows * x.stride * phase
