# SPDX-License-Identifier: Apache-2.0
"""Matrix products, for kernels/matmul.py."""

from dataclasses import dataclass, replace

from nndeploy_triton.gpu import GpuFacts
from nndeploy_triton.steps.step import PLAIN, Epilogue, Request, Tile, epilogue_arguments, grid
from nndeploy_triton.tiles import matrix_tiles
from nndeploy_triton.views import DTYPE_BYTES, View


@dataclass(frozen=True, slots=True)
class Matmul:
    """output[b, i, j] = sum over k of left[b, i, k] * right[b, k, j].

    The sides are views of three axes; a batch stride of 0 broadcasts one. `output` keeps the shape of the model.
    """

    output: View
    left: View
    right: View
    epilogue: Epilogue = PLAIN

    @property
    def inputs(self) -> tuple[View, ...]:
        """What the step reads."""
        return self.left, self.right, *self.epilogue.extras

    @property
    def epilogue_axes(self) -> tuple[tuple[int, ...], ...]:
        """The output's axes as (batch, rows, columns); an output of one or two axes lacks the first ones."""
        if self.left.shape[0] == 1:  # no batch: all leading axes are rows, which is the freest grouping
            leading = tuple(range(len(self.output.shape) - 1))
            return (), leading, (len(self.output.shape) - 1,)
        rank = len(self.output.shape)
        return tuple(range(rank - 2)), (rank - 2,), (rank - 1,)

    def with_epilogue(self, epilogue: Epilogue, output: View) -> "Matmul":
        """Returns the step with another epilogue that writes `output`."""
        return replace(self, epilogue=epilogue, output=output)

    def tiles(self, gpu: GpuFacts) -> list[Tile]:
        """Returns the tiles to choose from."""
        batch, rows, depth = self.left.shape
        found = matrix_tiles(gpu, rows, self.right.shape[2], depth, batch, DTYPE_BYTES[self.left.dtype])
        return [
            Tile(
                (("BLOCK_M", one.rows), ("BLOCK_N", one.columns), ("BLOCK_K", one.depth)),
                one.num_warps,
                one.num_stages,
            )
            for one in found
        ]

    def request(self, gpu: GpuFacts, tile: Tile) -> Request:
        """Returns what to launch."""
        extras = epilogue_arguments(self.epilogue, self.epilogue_axes)
        assert extras is not None
        left, right = self.left, self.right
        return Request(
            kernel="matmul",
            tensors=(("out", self.output), ("left", left), ("right", right), *extras.tensors),
            sizes=(
                ("num_rows", left.shape[1]), ("num_columns", right.shape[2]), ("depth", left.shape[2]),
                ("num_batch", left.shape[0]),
                ("left_batch_stride", left.strides[0]), ("left_row_stride", left.strides[1]),
                ("left_k_stride", left.strides[2]), ("right_batch_stride", right.strides[0]),
                ("right_k_stride", right.strides[1]), ("right_column_stride", right.strides[2]), *extras.sizes,
            ),
            constants=(
                ("EXTRAS", extras.kinds), ("PROGRAM", self.epilogue.program.steps),
                ("PRECISION", gpu.float32_precision), *tile.blocks,
            ),
            grid=grid([("num_rows", tile["BLOCK_M"])], [("num_columns", tile["BLOCK_N"])], [("num_batch", 1)]),
            tile=tile,
            layout="rm",
            labels=self.epilogue.program.labels,
            grid_only=("num_batch",),
        )  # fmt: skip
