# SPDX-License-Identifier: Apache-2.0
"""Steps that read where tables say, for kernels/gathering.py."""

from dataclasses import dataclass

from nndeploy.backend_kit.kernels.resize_lines import PlaceLine
from nndeploy.values.size import fixed
from nndeploy_triton.gpu import GpuFacts
from nndeploy_triton.steps.reduction import Axis
from nndeploy_triton.steps.step import Request, Tile, grid
from nndeploy_triton.tiles import flat_tiles, pixel_tiles
from nndeploy_triton.views import View


@dataclass(frozen=True, slots=True)
class Resize:
    """Each output row and column is a weighted sum of `taps` (rows, columns) of the input, as the tables say.

    `rows` (height, taps) holds int32 places and `row_weights` float32 factors; columns likewise.
    """

    output: View
    x: View
    rows: View
    row_weights: View
    columns: View
    column_weights: View

    @property
    def inputs(self) -> tuple[View, ...]:
        """What the step reads."""
        return self.x, self.rows, self.row_weights, self.columns, self.column_weights

    def tiles(self, gpu: GpuFacts) -> list[Tile]:  # noqa: ARG002  # the same everywhere: memory is the limit
        """Returns the tiles to choose from."""
        return pixel_tiles(self.output.shape[2] * self.output.shape[3])

    def request(self, gpu: GpuFacts, tile: Tile) -> Request:  # noqa: ARG002
        """Returns what to launch."""
        images, channels, height, width = self.output.shape
        return Request(
            kernel="resize",
            tensors=(
                ("out", self.output), ("x", self.x), ("rows", self.rows), ("row_weights", self.row_weights),
                ("columns", self.columns), ("column_weights", self.column_weights),
            ),
            sizes=(
                ("num_pixels", height * width), ("out_width", width), ("in_width", self.x.shape[3]),
                ("in_pixels", self.x.shape[2] * self.x.shape[3]), ("num_planes", images * channels),
            ),
            constants=(("TAPS_H", fixed(self.rows.shape[1])), ("TAPS_W", fixed(self.columns.shape[1])), *tile.blocks),
            grid=grid([("num_planes", 1)], [("num_pixels", tile["BLOCK_P"])]),
            tile=tile,
            layout="nchw",
            grid_only=("num_planes",),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Interpolate:
    """A Resize whose places are computed by the kernel: `kind` is one of `resize_lines.KINDS`."""

    output: View
    x: View
    kind: str
    rows: PlaceLine
    columns: PlaceLine

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
            kernel="interpolate",
            tensors=(("out", self.output), ("x", self.x)),
            sizes=(
                ("num_pixels", height * width), ("out_width", width), ("in_height", self.x.shape[2]),
                ("in_width", self.x.shape[3]), ("row_factor", self.rows.factor), ("row_offset", self.rows.offset),
                ("row_divisor", self.rows.divisor), ("column_factor", self.columns.factor),
                ("column_offset", self.columns.offset), ("column_divisor", self.columns.divisor),
                ("num_planes", images * channels),
            ),
            constants=(("KIND", self.kind), *tile.blocks),
            grid=grid([("num_planes", 1)], [("num_pixels", tile["BLOCK_P"])]),
            tile=tile,
            layout="nchw",
            labels=(self.kind.replace("_prefer", ""),),
            grid_only=("num_planes",),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Gather:
    """out[o, i, j] = x[o, table[i], j], `fill` where the entry is outside. `axis` is how x is seen.

    With `wraps` a negative entry counts from the end.
    """

    output: View
    x: View
    table: View
    axis: Axis
    fill: float = 0.0
    wraps: bool = False

    @property
    def inputs(self) -> tuple[View, ...]:
        """What the step reads."""
        return self.x, self.table

    def tiles(self, gpu: GpuFacts) -> list[Tile]:  # noqa: ARG002  # the same everywhere: memory is the limit
        """Returns the tiles to choose from."""
        return flat_tiles(self.output.size)

    def request(self, gpu: GpuFacts, tile: Tile) -> Request:  # noqa: ARG002
        """Returns what to launch."""
        return Request(
            kernel="gather",
            tensors=(("out", self.output), ("x", self.x), ("table", self.table)),
            sizes=(
                ("num_elements", self.output.size), ("out_length", self.table.size), ("in_length", self.axis.length),
                ("inner", self.axis.inner),
            ),
            constants=(("FILL", self.fill), ("WRAPS", self.wraps), *tile.blocks),
            grid=grid([("num_elements", tile["BLOCK"])]),
            tile=tile,
            layout="rm",
        )  # fmt: skip
