# SPDX-License-Identifier: Apache-2.0
"""pointwise -> depthwise -> pointwise as one step: the wide tensors between live in a buffer, window by window."""

from dataclasses import dataclass, replace

from nndeploy_native.steps.convolution import Convolution, image_sizes, packed_channel
from nndeploy_native.steps.separable import Separable
from nndeploy_native.steps.step import Call, Epilogue, Machine
from nndeploy_native.steps.templated import templated_inverted_residual
from nndeploy_native.tensors import Tensor, padded
from nndeploy_native.windows import buffer_bytes, expanded_window_bytes, expanded_window_for


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
    def epilogue(self) -> Epilogue:
        """The end of the last."""
        return self.pair.epilogue

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.expand.x, *self.pair.epilogue.inputs)

    def with_epilogue(self, epilogue: Epilogue, output: Tensor) -> "InvertedResidual":
        """Returns the step with another end."""
        return replace(self, pair=self.pair.with_epilogue(epilogue, output))

    def call(self, machine: Machine) -> Call:
        """Returns what to call, with the window that fits the buffer."""
        isa, (expand, first, second) = machine.isa, (self.expand, self.pair.first, self.pair.second)
        capacity = buffer_bytes(machine, expand.output.num_bytes(isa.lanes))
        channels = expand.output.shape[1]
        window = expanded_window_for(capacity, first, isa.panel)
        sizes = image_sizes(expand.x, second.output)
        sizes.update(first.window.sizes(), mid_c=channels)
        sizes.update(window_rows=window.rows, window_columns=window.columns, window_channels=window.channels)
        steps = (expand, first, second)
        wide = expand.output.size + first.output.size
        call = Call(
            "inverted_residual",
            sizes,
            second.output,
            (
                expand.x,
                expand.packed_weights(isa),
                expand.packed_bias(isa),
                packed_channel(expand.epilogue, expand.output, isa),
                first.packed_weights(isa),
                first.packed_bias(isa),
                packed_channel(first.epilogue, first.output, isa),
                second.packed_weights(isa),
                second.packed_bias(isa),
                second.epilogue.residual,
                packed_channel(second.epilogue, second.output, isa),
            ),
            tuple(step.epilogue.expression for step in steps),
            scratch_bytes=expanded_window_bytes(window.rows, window.channels, first),
            notes={
                "what": " then ".join(str(step.notes()["what"]) for step in steps),
                "multiply_adds": sum(int(step.notes()["multiply_adds"]) for step in steps),
                "window": str(window),
                "buffer_bytes": capacity,
                "not_written_bytes": 4 * wide // channels * padded(channels, isa.lanes),
            },
        )
        return templated_inverted_residual(self, call, machine, capacity)
