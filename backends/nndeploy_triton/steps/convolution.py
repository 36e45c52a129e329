# SPDX-License-Identifier: Apache-2.0
"""Convolutions of NCHW images: general, depthwise and separable, for the kernels of the same names."""

from dataclasses import dataclass, replace

from nndeploy.values.size import Dim, fixed
from nndeploy_triton.gpu import GpuFacts
from nndeploy_triton.steps.step import (
    PLAIN,
    Constant,
    Epilogue,
    Request,
    Tile,
    epilogue_arguments,
    grid,
)
from nndeploy_triton.tiles import matrix_tiles, plane_tiles
from nndeploy_triton.views import DTYPE_BYTES, View

IMAGE_AXES = ((0,), (1,), (2, 3))
"""An NCHW output as (batch, row, column) of an epilogue."""


@dataclass(frozen=True, slots=True)
class Window:
    """How a window moves over an image: each pair is (height, width); `pads` are those before."""

    kernel: tuple[int, int]
    strides: tuple[int, int] = (1, 1)
    pads: tuple[Dim, Dim] = (0, 0)
    dilations: tuple[int, int] = (1, 1)

    @property
    def num_taps(self) -> int:
        """The number of elements under the window."""
        return self.kernel[0] * self.kernel[1]

    def constants(self) -> tuple[tuple[str, Constant], ...]:
        """Returns the kernel's names and values for the window, but for the padding."""
        return (
            ("KERNEL_H", self.kernel[0]), ("KERNEL_W", self.kernel[1]),
            ("STRIDE_H", self.strides[0]), ("STRIDE_W", self.strides[1]),
            ("DILATION_H", self.dilations[0]), ("DILATION_W", self.dilations[1]),
        )  # fmt: skip

    def __str__(self) -> str:
        return f"{self.kernel[0]}x{self.kernel[1]}s{self.strides[0]}"


def _image_sizes(output: View, x: View, window: Window) -> tuple[tuple[str, Dim], ...]:
    _, _, out_height, out_width = output.shape
    return (
        ("num_pixels", out_height * out_width), ("out_width", out_width),
        ("in_height", x.shape[2]), ("in_width", x.shape[3]), ("pad_top", window.pads[0]), ("pad_left", window.pads[1]),
        ("x_image_stride", x.strides[0]), ("out_image_stride", output.strides[0]),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Convolution:
    """A convolution over all channels of a group; `weights` is (outputs, channels of a group, height, width).

    A transposed one has weights (group, outputs of a group, channels of a group, height, width), made by the rule.
    """

    output: View
    x: View
    weights: View
    window: Window
    num_groups: int = 1
    transposed: bool = False
    epilogue: Epilogue = PLAIN

    @property
    def inputs(self) -> tuple[View, ...]:
        """What the step reads."""
        return self.x, self.weights, *self.epilogue.extras

    @property
    def epilogue_axes(self) -> tuple[tuple[int, ...], ...]:
        """The output's axes as the epilogue sees them."""
        return IMAGE_AXES

    @property
    def is_pointwise(self) -> bool:
        """Whether each output pixel reads the one input pixel at its own place; padding at the end is some, too."""
        window, same_size = self.window, self.x.shape[2:] == self.output.shape[2:]
        is_point = window.num_taps == 1 and window.strides == (1, 1) and window.pads == (0, 0)
        return is_point and same_size and not self.transposed

    def with_epilogue(self, epilogue: Epilogue, output: View) -> "Convolution":
        """Returns the step with another epilogue that writes `output`."""
        return replace(self, epilogue=epilogue, output=output)

    def tiles(self, gpu: GpuFacts) -> list[Tile]:
        """Returns the tiles to choose from."""
        images, outputs, height, width = self.output.shape
        channels = self.x.shape[1] // self.num_groups * self.window.num_taps
        batch, bytes_each = images * self.num_groups, DTYPE_BYTES[self.x.dtype]
        found = matrix_tiles(gpu, outputs // self.num_groups, height * width, channels, batch, bytes_each)
        return [
            Tile(
                (("BLOCK_O", one.rows), ("BLOCK_P", one.columns), ("BLOCK_K", one.depth)),
                one.num_warps,
                one.num_stages,
            )
            for one in found
        ]

    def request(self, gpu: GpuFacts, tile: Tile) -> Request:
        """Returns what to launch."""
        extras = epilogue_arguments(self.epilogue, IMAGE_AXES)
        assert extras is not None
        return Request(
            kernel="convolution",
            tensors=(("out", self.output), ("x", self.x), ("weights", self.weights), *extras.tensors),
            sizes=(
                *_image_sizes(self.output, self.x, self.window),
                ("num_outputs", self.output.shape[1] // self.num_groups),
                ("num_channels", self.x.shape[1] // self.num_groups),
                ("num_groups", self.num_groups),
                ("num_images", self.output.shape[0]),
                *extras.sizes,
            ),
            constants=(
                *self.window.constants(), ("POINTWISE", self.is_pointwise),
                ("TRANSPOSED", self.transposed), ("EXTRAS", extras.kinds), ("PROGRAM", self.epilogue.program.steps),
                ("PRECISION", gpu.float32_precision), *tile.blocks,
            ),
            grid=grid(
                [("num_pixels", tile["BLOCK_P"])],
                [("num_outputs", tile["BLOCK_O"])],
                [("num_images", 1), ("num_groups", 1)],
            ),
            tile=tile,
            layout=f"{self.window}_nchw",
            labels=(*(("transposed",) if self.transposed else ()), *self.epilogue.program.labels),
            grid_only=("num_images",),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Depthwise:
    """A convolution in which every output channel reads one input channel; `weights` is (outputs, 1, height, width)."""

    output: View
    x: View
    weights: View
    window: Window
    epilogue: Epilogue = PLAIN

    @property
    def inputs(self) -> tuple[View, ...]:
        """What the step reads."""
        return self.x, self.weights, *self.epilogue.extras

    @property
    def epilogue_axes(self) -> tuple[tuple[int, ...], ...]:
        """The output's axes as the epilogue sees them."""
        return IMAGE_AXES

    @property
    def multiplier(self) -> int:
        """The number of output channels of each input channel, which are fixed as the weights are."""
        return fixed(self.output.shape[1] // self.x.shape[1])

    def with_epilogue(self, epilogue: Epilogue, output: View) -> "Depthwise":
        """Returns the step with another epilogue that writes `output`."""
        return replace(self, epilogue=epilogue, output=output)

    def tiles(self, gpu: GpuFacts) -> list[Tile]:  # noqa: ARG002  # the same everywhere: memory is the limit
        """Returns the tiles to choose from."""
        _, channels, height, width = self.output.shape
        return plane_tiles(height * width, channels)

    def request(self, gpu: GpuFacts, tile: Tile) -> Request:  # noqa: ARG002
        """Returns what to launch."""
        extras = epilogue_arguments(self.epilogue, IMAGE_AXES)
        assert extras is not None
        return Request(
            kernel="depthwise",
            tensors=(("out", self.output), ("x", self.x), ("weights", self.weights), *extras.tensors),
            sizes=(
                *_image_sizes(self.output, self.x, self.window),
                ("num_channels", self.output.shape[1]),
                ("num_images", self.output.shape[0]),
                *extras.sizes,
            ),
            constants=(
                *self.window.constants(), ("MULTIPLIER", self.multiplier), ("EXTRAS", extras.kinds),
                ("PROGRAM", self.epilogue.program.steps), *tile.blocks,
            ),
            grid=grid(
                [("num_pixels", tile["BLOCK_P"])], [("num_channels", tile["BLOCK_C"])], [("num_images", 1)]
            ),
            tile=tile,
            layout=f"{self.window}_nchw",
            labels=self.epilogue.program.labels,
            grid_only=("num_images",),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Separable:
    """A depthwise step and the pointwise convolution that alone reads it, as one."""

    output: View
    depthwise: Depthwise
    point_weights: View
    epilogue: Epilogue = PLAIN

    @property
    def inputs(self) -> tuple[View, ...]:
        """What the step reads."""
        return *self.depthwise.inputs, self.point_weights, *self.epilogue.extras

    @property
    def epilogue_axes(self) -> tuple[tuple[int, ...], ...]:
        """The output's axes as the epilogue sees them."""
        return IMAGE_AXES

    def with_epilogue(self, epilogue: Epilogue, output: View) -> "Separable":
        """Returns the step with another epilogue that writes `output`."""
        return replace(self, epilogue=epilogue, output=output)

    def tiles(self, gpu: GpuFacts) -> list[Tile]:
        """Returns the tiles to choose from."""
        images, outputs, height, width = self.output.shape
        depth, bytes_each = self.depthwise.x.shape[1], DTYPE_BYTES[self.output.dtype]
        found = matrix_tiles(gpu, outputs, height * width, depth, images, bytes_each)
        return [
            Tile((("BLOCK_O", one.rows), ("BLOCK_P", one.columns), ("BLOCK_C", one.depth)), one.num_warps, 1)
            for one in found  # one stage: what the loop loads feeds arithmetic first, not the matrix product
        ]

    def request(self, gpu: GpuFacts, tile: Tile) -> Request:
        """Returns what to launch."""
        inner = epilogue_arguments(self.depthwise.epilogue, IMAGE_AXES, "inner_extra")
        extras = epilogue_arguments(self.epilogue, IMAGE_AXES)
        assert inner is not None
        assert extras is not None
        x, window = self.depthwise.x, self.depthwise.window
        inner_sizes = tuple((name.replace("inner_extra_strides", "inner_strides"), size) for name, size in inner.sizes)
        return Request(
            kernel="separable",
            tensors=(
                ("out", self.output), ("x", x), ("depth_weights", self.depthwise.weights),
                ("point_weights", self.point_weights), *inner.tensors, *extras.tensors,
            ),
            sizes=(
                *_image_sizes(self.output, x, window),
                ("num_channels", x.shape[1]),
                ("num_outputs", self.output.shape[1]),
                ("num_images", self.output.shape[0]),
                *inner_sizes,
                *extras.sizes,
            ),
            constants=(
                *window.constants(), ("INNER_EXTRAS", inner.kinds),
                ("INNER_PROGRAM", self.depthwise.epilogue.program.steps), ("EXTRAS", extras.kinds),
                ("PROGRAM", self.epilogue.program.steps), ("PRECISION", gpu.float32_precision), *tile.blocks,
            ),
            grid=grid([("num_pixels", tile["BLOCK_P"])], [("num_outputs", tile["BLOCK_O"])], [("num_images", 1)]),
            tile=tile,
            layout=f"{window}_nchw",
            labels=(*self.depthwise.epilogue.program.labels, *self.epilogue.program.labels),
            grid_only=("num_images",),
        )  # fmt: skip
