# SPDX-License-Identifier: Apache-2.0
"""depthwise -> pointwise as one step: the first result lives in a buffer of the target's capacity only."""

from dataclasses import dataclass, replace

from nndeploy_native.steps.convolution import Convolution, image_sizes, packed_channel
from nndeploy_native.steps.step import Call, Epilogue, Machine
from nndeploy_native.steps.templated import templated_separable
from nndeploy_native.tensors import Tensor, padded
from nndeploy_native.windows import buffer_bytes, window_for


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

    def call(self, machine: Machine) -> Call:
        """Returns what to call, with the window that fits the buffer."""
        isa, (first, second) = machine.isa, (self.first, self.second)
        capacity = buffer_bytes(machine, first.x.num_bytes(isa.lanes))
        _, channels, height, width = first.output.shape
        window = window_for(capacity, height, width, channels, isa.lanes)
        sizes = image_sizes(first.x, second.output)
        sizes.update(first.window.sizes())
        sizes.update(window_rows=window.rows, window_columns=window.columns, window_channels=window.channels)
        call = Call(
            "separable",
            sizes,
            second.output,
            (
                first.x,
                first.packed_weights(isa),
                first.packed_bias(isa),
                packed_channel(first.epilogue, first.output, isa),
                second.packed_weights(isa),
                second.packed_bias(isa),
                second.epilogue.residual,
                packed_channel(second.epilogue, second.output, isa),
            ),
            (first.epilogue.expression, second.epilogue.expression),
            scratch_bytes=window.num_bytes,
            notes={
                "what": f"{first.notes()['what']} then {second.notes()['what']}",
                "multiply_adds": int(first.notes()["multiply_adds"]) + int(second.notes()["multiply_adds"]),
                "window": str(window),
                "buffer_bytes": capacity,
                "not_written_bytes": 4 * first.output.size // channels * padded(channels, isa.lanes),
            },
        )
        return templated_separable(self, call, machine)
