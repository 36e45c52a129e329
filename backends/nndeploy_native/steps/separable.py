# SPDX-License-Identifier: Apache-2.0
"""depthwise -> pointwise as one step: the first result lives in a buffer of the target's capacity only."""

from dataclasses import dataclass, replace

from nndeploy_native.steps.convolution import Convolution, exceeds_half_of_l2, is_streamed
from nndeploy_native.steps.step import Call, Epilogue, Field, Machine
from nndeploy_native.tensors import Tensor
from nndeploy_native.windows import DEFAULT_L2_BYTES, SlidingWindow, separable_capacity, shared_rows, window_for


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

    def with_epilogue(self, epilogue: Epilogue, output: Tensor) -> "Separable":
        """Returns the step with another end."""
        return replace(self, second=self.second.with_epilogue(epilogue, output))

    def window(self, machine: Machine) -> SlidingWindow:
        """Returns the window that fits the buffer."""
        _, channels, height, width = self.first.output.shape
        return window_for(self.capacity(machine), height, width, channels, machine.isa)

    def capacity(self, machine: Machine) -> int:
        """Returns the bytes of the buffer."""
        result = self.first.output
        num_bytes = result.num_bytes(machine.isa)
        row_bytes = num_bytes // (result.shape[0] * result.shape[2])
        return separable_capacity(machine, self.first.x.num_bytes(machine.isa), num_bytes, row_bytes)

    def call(self, machine: Machine) -> Call:
        """Returns what to call."""
        isa, (first, second) = machine.isa, (self.first, self.second)
        window, height = self.window(machine), first.output.shape[2]
        shared = shared_rows(window.rows, height, first.x.shape[0], machine.threads or 2)
        rows = shared if machine.threads > 1 else window.rows
        fields: dict[str, Field] = {
            **first.axes(),
            "images": first.x.shape[0],
            "channels": first.x.shape[1],
            "out_channels": second.output.shape[1],
            "window_rows": rows,
            "window_columns": window.columns,
            "window_channels": window.channels,
            "stream": is_streamed(second.output, machine),
            "prefetch_weights": exceeds_half_of_l2(second.weights, machine),
            "prefetch_input": first.x.num_bytes(isa) > (machine.l2_bytes or DEFAULT_L2_BYTES),
            "first_end": first.epilogue,
            "end": second.epilogue,
        }
        return Call(
            "separable",
            fields,
            second.output,
            (
                first.x,
                *first.packed(isa),
                first.packed_numbers(isa),
                *second.packed(isa),
                second.epilogue.residual,
                second.packed_numbers(isa),
            ),
            shared_fields={} if machine.threads or shared == rows else {"window_rows": shared},
            scratch_bytes=isa.elem_bytes * window.rows * window.columns * window.channels,
            notes={
                "what": f"{first.notes()['what']} then {second.notes()['what']}",
                "multiply_adds": int(first.notes()["multiply_adds"]) + int(second.notes()["multiply_adds"]),
                "layout": f"NCHW{isa.lanes}c",
                "window": str(replace(window, rows=rows)),
                "buffer_bytes": self.capacity(machine),
                "not_written_bytes": first.output.num_bytes(isa),
            },
        )
