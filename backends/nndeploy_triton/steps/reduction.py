# SPDX-License-Identifier: Apache-2.0
"""Reductions, softmax and normalisations, for kernels/reduction.py. A tensor is seen as (outer, length, inner)."""

from dataclasses import dataclass

from nndeploy.values.size import Dim, product
from nndeploy_triton.gpu import GpuFacts
from nndeploy_triton.steps.step import Request, Tile, grid
from nndeploy_triton.tiles import axis_tiles, row_tiles
from nndeploy_triton.views import Shape, View


@dataclass(frozen=True, slots=True)
class Axis:
    """How a dense tensor is seen: `length` is what a step runs along."""

    outer: Dim
    length: Dim
    inner: Dim


def axis_of(shape: Shape, first: int, last: int) -> Axis:
    """Returns the view of a shape along its axes first..last, both included."""
    return Axis(product(shape[:first]), product(shape[first : last + 1]), product(shape[last + 1 :]))


@dataclass(frozen=True, slots=True)
class Reduction:
    """One value for each (outer, inner); `kind` is one of the kernel's."""

    output: View
    x: View
    axis: Axis
    kind: str

    @property
    def inputs(self) -> tuple[View, ...]:
        """What the step reads."""
        return (self.x,)

    def tiles(self, gpu: GpuFacts) -> list[Tile]:  # noqa: ARG002  # the same everywhere: memory is the limit
        """Returns the tiles to choose from."""
        return axis_tiles(self.axis.length, self.axis.inner)

    def request(self, gpu: GpuFacts, tile: Tile) -> Request:  # noqa: ARG002
        """Returns what to launch."""
        return Request(
            kernel="reduction",
            tensors=(("out", self.output), ("x", self.x)),
            sizes=(("length", self.axis.length), ("inner", self.axis.inner), ("outer", self.axis.outer)),
            constants=(("KIND", self.kind), *tile.blocks),
            grid=grid([("outer", 1)], [("inner", tile["BLOCK_I"])]),
            tile=tile,
            layout="rm",
            labels=(self.kind,),
            grid_only=("outer",),
        )


@dataclass(frozen=True, slots=True)
class Softmax:
    """exp(x - max) / sum along an axis; `is_log` its logarithm."""

    output: View
    x: View
    axis: Axis
    is_log: bool = False

    @property
    def inputs(self) -> tuple[View, ...]:
        """What the step reads."""
        return (self.x,)

    def tiles(self, gpu: GpuFacts) -> list[Tile]:  # noqa: ARG002  # the same everywhere: memory is the limit
        """Returns the tiles to choose from."""
        return axis_tiles(self.axis.length, self.axis.inner)

    def request(self, gpu: GpuFacts, tile: Tile) -> Request:  # noqa: ARG002
        """Returns what to launch."""
        return Request(
            kernel="softmax",
            tensors=(("out", self.output), ("x", self.x)),
            sizes=(("length", self.axis.length), ("inner", self.axis.inner), ("outer", self.axis.outer)),
            constants=(("LOG", self.is_log), *tile.blocks),
            grid=grid([("outer", 1)], [("inner", tile["BLOCK_I"])]),
            tile=tile,
            layout="rm",
            labels=("log",) if self.is_log else (),
            grid_only=("outer",),
        )


@dataclass(frozen=True, slots=True)
class ScalePlaces:
    """Which scale belongs to (row, column): number `row % num_rows * row_step + column // columns_each`."""

    num_rows: Dim
    row_step: Dim
    columns_each: Dim


@dataclass(frozen=True, slots=True)
class Normalization:
    """(x - mean) / sqrt(variance + epsilon) * scale + shift of each row; without `centered` no mean is taken off."""

    output: View
    x: View
    scale: View | None
    shift: View | None
    num_rows: Dim
    length: Dim
    places: ScalePlaces
    epsilon: float
    centered: bool = True

    @property
    def inputs(self) -> tuple[View, ...]:
        """What the step reads."""
        return self.x, *(view for view in (self.scale, self.shift) if view is not None)

    def tiles(self, gpu: GpuFacts) -> list[Tile]:  # noqa: ARG002  # the same everywhere: memory is the limit
        """Returns the tiles to choose from."""
        return row_tiles(self.length)

    def request(self, gpu: GpuFacts, tile: Tile) -> Request:  # noqa: ARG002
        """Returns what to launch."""
        optional = (("scale", self.scale), ("shift", self.shift))
        return Request(
            kernel="normalization",
            tensors=(
                ("out", self.output),
                ("x", self.x),
                *((name, view) for name, view in optional if view is not None),
            ),
            sizes=(
                ("length", self.length), ("num_scale_rows", self.places.num_rows),
                ("scale_row_step", self.places.row_step), ("columns_per_scale", self.places.columns_each),
                ("num_rows", self.num_rows),
            ),
            constants=(
                *((name, None) for name, view in optional if view is None),
                ("EPSILON", self.epsilon), ("CENTERED", self.centered), ("HAS_SCALE", self.scale is not None),
                ("HAS_SHIFT", self.shift is not None), *tile.blocks,
            ),
            grid=grid([("num_rows", 1)]),
            tile=tile,
            layout="rm",
            labels=() if self.centered else ("rms",),
            grid_only=("num_rows",),
        )  # fmt: skip
