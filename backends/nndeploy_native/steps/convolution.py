# SPDX-License-Identifier: Apache-2.0
"""Convolutions on blocked tensors: dense (also first and pointwise), depthwise, grouped, transposed.

Weights are constants, (O, I / groups, H, W) here and packed for the kernel of the call.
"""

from dataclasses import dataclass, replace

from nndeploy.values.size import Dim, ceil_div, typical
from nndeploy_native.expressions import label_of
from nndeploy_native.isa import Isa
from nndeploy_native.packing import (
    grouped_blocks,
    pack_channels,
    pack_depthwise,
    pack_grouped,
    pack_products,
)
from nndeploy_native.steps.step import PLAIN, Axis, Call, Epilogue, Field, Machine, Note
from nndeploy_native.tensors import Array, Tensor
from nndeploy_native.windows import buffer_capacity, window_for

STREAM_FROM_BYTES = 16 << 20
"""Outputs from this size on are stored past the caches: AMD Zen 5, L3 32 MiB, 2026-11-20."""
LARGE_WEIGHTS_BYTES = 2 << 20
FEW_WINDOWS = 8
PREFETCHED_BYTES = 32 << 10


@dataclass(frozen=True, slots=True)
class Window:
    """How a window moves over an image: (height, width) each; `pads` are those before the first element."""

    kernel: tuple[Dim, Dim]
    strides: tuple[int, int] = (1, 1)
    pads: tuple[Dim, Dim] = (0, 0)
    dilations: tuple[int, int] = (1, 1)

    @property
    def is_point(self) -> bool:
        """Whether output pixels are made of the input pixel at the same place alone."""
        return self.kernel == (1, 1) and self.strides == (1, 1) and self.pads == (0, 0)

    def axes(self, x: Tensor, output: Tensor) -> dict[str, Axis]:
        """Returns the axes `y` and `x` of a kernel from image `x` to image `output`."""
        return {
            name: Axis(
                x.shape[2 + i], output.shape[2 + i], self.kernel[i], self.strides[i], self.dilations[i], self.pads[i]
            )
            for i, name in enumerate(("y", "x"))
        }


@dataclass(frozen=True, slots=True, eq=False)
class Convolution:
    """output = epilogue(convolution(x) + bias); `x` is plain only for a dense convolution.

    A transposed one spreads each input pixel over a window of the output; it has no groups.
    """

    output: Tensor
    x: Tensor
    weights: Array
    bias: Array | None
    window: Window
    groups: int = 1
    epilogue: Epilogue = PLAIN
    is_transposed: bool = False

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.x, *self.epilogue.inputs)

    @property
    def is_depthwise(self) -> bool:
        """Whether each output channel is made of the input channel at the same place, and of more than one pixel.

        Of one channel it may be pointwise too, which it then is.
        """
        fits = self.groups == self.x.channels == self.output.channels and self.weights.shape[1] == 1
        return fits and not self.is_transposed and not self.is_pointwise

    @property
    def is_pointwise(self) -> bool:
        """Whether it is a product of matrices, pixel by pixel."""
        return self.groups == 1 and self.window.is_point and not self.is_transposed

    @property
    def kernel(self) -> str:
        """The kernel that computes it."""
        if self.is_transposed:
            return "transposed"
        if not self.x.is_blocked:
            return "first_convolution"
        if self.is_pointwise:
            return "pointwise"
        if self.is_depthwise:
            return "depthwise"
        return "convolution" if self.groups == 1 else "grouped"

    @property
    def is_column(self) -> bool:
        """Whether it goes down images that are one pixel wide: tiles of pixels lie along rows."""
        return self.x.is_column and (self.output.shape[3], self.window.kernel[1]) == (1, 1)

    def lying(self) -> "Convolution":
        """Returns the same along rows: an image that is one pixel wide lies in memory as one that is one pixel high."""
        window, residual = self.window, self.epilogue.residual
        return replace(
            self,
            output=_turned(self.output),
            x=_turned(self.x),
            weights=self.weights.swapaxes(2, 3),
            window=Window(window.kernel[::-1], window.strides[::-1], window.pads[::-1], window.dilations[::-1]),
            epilogue=replace(self.epilogue, residual=None if residual is None else _turned(residual)),
        )

    def with_epilogue(self, epilogue: Epilogue, output: Tensor) -> "Convolution":
        """Returns the step with another end."""
        return replace(self, epilogue=epilogue, output=output)

    def call(self, machine: Machine) -> Call:
        """Returns what to call."""
        if self.is_column:
            return replace(self.lying().call(machine), output=self.output)
        fields: dict[str, Field] = {"images": self.x.shape[0], "end": self.epilogue}
        struct = ""
        match self.kernel:
            case "pointwise":
                fields |= self._pointwise_fields(machine)
            case "depthwise":
                fields |= {**self.axes(), "channels": self.x.channels}
            case "convolution" | "first_convolution":
                struct = "convolution"
                fields |= {**self.axes(), **self._channels(), "stream": is_streamed(self.output, machine)}
                fields["panels_outside"] = exceeds_half_of_l2(self.weights, machine)
            case _:
                struct = "grouped"
                span, _ = grouped_blocks(self.weights, self.groups, machine.isa)
                fields |= {**self.axes(), **self._channels(), "groups": self.groups, "span": span * machine.isa.lanes}
        residual = () if self.kernel == "depthwise" else (self.epilogue.residual,)
        arguments = (self.x, *self.packed(machine.isa), *residual, self.packed_numbers(machine.isa))
        return Call(self.kernel, fields, self.output, arguments, struct, notes=self.notes())

    def axes(self) -> dict[str, Axis]:
        """Returns the axes `y` and `x`."""
        return self.window.axes(self.x, self.output)

    def packed(self, isa: Isa) -> tuple[Array, Array]:
        """Returns weights and bias as the kernel reads them."""
        match self.kernel:
            case "depthwise":
                weights = pack_depthwise(self.weights, isa)
            case "grouped":
                weights = pack_grouped(self.weights, self.groups, isa)
            case kernel:
                weights = pack_products(self.weights, isa, as_floats=kernel == "first_convolution")
        return weights, pack_channels(self.bias, self.output.channels, isa)

    def packed_numbers(self, isa: Isa) -> Array | None:
        """Returns the epilogue's number for each channel, None where it reads none."""
        numbers = self.epilogue.channel
        return None if numbers is None else pack_channels(numbers, self.output.channels, isa)

    def notes(self) -> dict[str, Note]:
        """Returns what the plan says of it."""
        height, width = self.window.kernel
        kind = "dense" if self.kernel in ("convolution", "first_convolution") else self.kernel
        notes: dict[str, Note] = {
            "what": f"{kind} {height}x{width} {self.x.channels}->{self.output.channels}",
            "multiply_adds": self.multiply_adds,
        }
        if label := label_of(self.epilogue.expression):
            notes["then"] = label
        return notes

    @property
    def multiply_adds(self) -> Dim:
        """How many there are."""
        if self.is_transposed:
            return self.x.size * int(self.weights[:, 0].size)
        return self.output.size * int(self.weights[0].size)

    def _channels(self) -> dict[str, Field]:
        return {"in_channels": self.x.channels, "out_channels": self.output.channels}

    def _pointwise_fields(self, machine: Machine) -> dict[str, Field]:
        """Windows whose input fits the buffer; where they are few or the weights large, threads share the panels."""
        pixels = self.output.shape[2] * self.output.shape[3]
        capacity = buffer_capacity(machine, typical(self.x.num_bytes(machine.isa)))
        window = window_for(capacity, 1, pixels, self.x.channels, machine.isa).columns
        few = typical(self.x.shape[0] * ceil_div(pixels, window)) < FEW_WINDOWS
        return {
            **self._channels(),
            "pixels": pixels,
            "window": window,
            "stream": is_streamed(self.output, machine),
            "prefetch_weights": come_from_afar(self.weights, machine),
            "by_panels": few or 4 * self.weights.size >= LARGE_WEIGHTS_BYTES,
        }


def _turned(tensor: Tensor) -> Tensor:
    batch, channels, height, width = tensor.shape
    return replace(tensor, shape=(batch, channels, width, height))


def is_streamed(output: Tensor, machine: Machine) -> bool:
    """Whether an output is stored past the caches."""
    return typical(output.num_bytes(machine.isa)) > STREAM_FROM_BYTES


def exceeds_half_of_l2(weights: Array, machine: Machine) -> bool:
    """Whether weights leave too little of L2 for what they meet."""
    return machine.isa.elem_bytes * weights.size > machine.l2 // 2


def come_from_afar(weights: Array, machine: Machine) -> bool:
    """Whether weights are prefetched, panel by panel: inside a network other steps have driven all of them out of L2.

    MobileNetV1 and V2 at 224 take 0.985 of the time: AMD Zen 5, 2026-11-20.
    """
    return machine.isa.elem_bytes * weights.size > PREFETCHED_BYTES
