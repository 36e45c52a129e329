# SPDX-License-Identifier: Apache-2.0
"""Elementwise chains and strided copies, for kernels/elementwise.py."""

from dataclasses import dataclass

from nndeploy_triton.gpu import GpuFacts
from nndeploy_triton.program import Program
from nndeploy_triton.steps.step import Request, Tile, grid
from nndeploy_triton.tiles import flat_tiles
from nndeploy_triton.views import View, collapsed, dense_strides

MAX_INPUTS = 8


@dataclass(frozen=True, slots=True)
class Elementwise:
    """output[i] = program(inputs[i]); the inputs were broadcast to the output's shape."""

    output: View
    operands: tuple[View, ...]
    program: Program

    @property
    def inputs(self) -> tuple[View, ...]:
        """What the step reads."""
        return self.operands

    @property
    def is_copy(self) -> bool:
        """Whether values are only moved, so that any element type will do."""
        return not self.program.steps and self.operands[0].dtype == self.output.dtype

    def tiles(self, gpu: GpuFacts) -> list[Tile]:  # noqa: ARG002  # the same everywhere: memory is the limit
        """Returns the tiles to choose from."""
        return flat_tiles(self.output.size)

    def request(self, gpu: GpuFacts, tile: Tile) -> Request:  # noqa: ARG002
        """Returns what to launch; dense views get no strides, so that their addresses need no division."""
        shape, strides = collapsed(self.output.shape, [self.output, *self.operands])
        flat = dense_strides(shape)
        named = [("out_strides", strides[0]), *((f"in_strides.{i}", own) for i, own in enumerate(strides[1:]))]
        some_strided = any(own != flat for own in strides)
        sizes = [(f"sizes.{axis}", size) for axis, size in enumerate(shape)] if some_strided else []
        empty: list[tuple[str, tuple[()]]] = [(name, ()) for name, own in named if own == flat]
        if not some_strided:
            empty.append(("sizes", ()))
        return Request(
            kernel="elementwise",
            tensors=(("out", self.output), *((f"inputs.{i}", view) for i, view in enumerate(self.operands))),
            sizes=(
                *sizes,
                *((f"{name}.{axis}", step) for name, own in named if own != flat for axis, step in enumerate(own)),
                ("num_elements", self.output.size),
            ),
            constants=(*empty, ("PROGRAM", self.program.steps), *tile.blocks),
            grid=grid([("num_elements", tile["BLOCK"])]),
            tile=tile,
            layout=f"{max(1, len(shape))}d",
            labels=self.program.labels or ("copy",),
        )
