# SPDX-License-Identifier: Apache-2.0
"""Windowed pooling of NCHW images, for kernels/pooling.py."""

from dataclasses import dataclass

from nndeploy.values.size import Dim
from nndeploy_triton.gpu import GpuFacts
from nndeploy_triton.steps.convolution import Window
from nndeploy_triton.steps.step import Request, Tile, grid
from nndeploy_triton.tiles import pixel_tiles
from nndeploy_triton.views import View


@dataclass(frozen=True, slots=True)
class Pooling:
    """`kind` "max" or "mean" of each window; `end_pads` (bottom, right) matter where padding is counted."""

    output: View
    x: View
    window: Window
    end_pads: tuple[Dim, Dim]
    kind: str
    counts_padding: bool = False

    @property
    def inputs(self) -> tuple[View, ...]:
        """What the step reads."""
        return (self.x,)

    def tiles(self, gpu: GpuFacts) -> list[Tile]:  # noqa: ARG002  # the same everywhere: memory is the limit
        """Returns the tiles to choose from."""
        return pixel_tiles(self.output.shape[2] * self.output.shape[3])

    def request(self, gpu: GpuFacts, tile: Tile) -> Request:  # noqa: ARG002
        """Returns what to launch."""
        images, channels, height, width = self.output.shape
        return Request(
            kernel="pooling",
            tensors=(("out", self.output), ("x", self.x)),
            sizes=(
                ("num_pixels", height * width), ("out_width", width), ("in_height", self.x.shape[2]),
                ("in_width", self.x.shape[3]), ("pad_top", self.window.pads[0]), ("pad_left", self.window.pads[1]),
                ("pad_bottom", self.end_pads[0]), ("pad_right", self.end_pads[1]), ("num_planes", images * channels),
            ),
            constants=(
                *self.window.constants(), ("KIND", self.kind), ("COUNT_PADDING", self.counts_padding), *tile.blocks,
            ),
            grid=grid([("num_planes", 1)], [("num_pixels", tile["BLOCK_P"])]),
            tile=tile,
            layout=f"{self.window}_nchw",
            labels=(self.kind,),
            grid_only=("num_planes",),
        )  # fmt: skip
