# SPDX-License-Identifier: Apache-2.0
"""Block sizes by kind of GPU: the table that is used where nothing can be measured.

A matrix tile should be large (each value that is loaded is used more often) and there should be enough tiles for every
multiprocessor to have one. So the largest tile of the table is taken that fits the shared memory and makes enough
tiles, else the one that makes most. The figures are chosen by that rule and were not measured: no GPU was there.
autotune.py measures the same candidates where the target's GPU is present. Sizes that depend on the inputs count as in
the middle of their ranges: a block of any size is right at every one.
"""

import math
from dataclasses import dataclass

from nndeploy.values.size import Dim, typical
from nndeploy_triton.gpu import GpuFacts
from nndeploy_triton.steps.step import Tile, power_of_two


@dataclass(frozen=True, slots=True)
class MatrixTile:
    """Rows and columns of the output and the depth of one loop iteration."""

    rows: int
    columns: int
    depth: int
    num_warps: int
    num_stages: int

    def shared_bytes(self, element_bytes: int) -> int:
        """Returns what the loaded factors need, one copy for each stage."""
        return self.num_stages * self.depth * (self.rows + self.columns) * element_bytes


MATRIX_TILES = (
    MatrixTile(128, 128, 32, 8, 3),
    MatrixTile(64, 128, 32, 4, 3),
    MatrixTile(128, 64, 32, 4, 3),
    MatrixTile(64, 64, 32, 4, 3),
    MatrixTile(32, 128, 32, 4, 3),
    MatrixTile(128, 32, 32, 4, 3),
    MatrixTile(32, 64, 32, 4, 3),
    MatrixTile(64, 32, 32, 4, 3),
    MatrixTile(16, 128, 32, 4, 3),
    MatrixTile(32, 32, 32, 4, 2),
    MatrixTile(16, 64, 32, 4, 2),
    MatrixTile(16, 32, 32, 2, 2),
    MatrixTile(16, 16, 32, 1, 2),
)
"""The tiles of products, from large to small. Tensor cores need at least 16 in each direction."""

ELEMENTS_A_BLOCK = 1024
ROW_ELEMENTS = 4096


def matrix_tiles(
    gpu: GpuFacts, rows: Dim, columns: Dim, depth: Dim, batch: Dim, element_bytes: int
) -> list[MatrixTile]:
    """Returns the tiles for a product of (rows, depth) by (depth, columns), the one to use without measuring first."""
    rows, columns, depth, batch = (typical(size) for size in (rows, columns, depth, batch))
    stages = 3 if gpu.capability >= (8, 0) else 2  # Turing has no asynchronous copies to overlap more
    usable = [
        MatrixTile(
            tile.rows,
            tile.columns,
            min(tile.depth, power_of_two(depth, 32, 16)),
            tile.num_warps,
            min(stages, tile.num_stages),
        )
        for tile in MATRIX_TILES
        if tile.rows <= power_of_two(rows, 128, 16) and tile.columns <= power_of_two(columns, 128, 16)
    ]
    fitting = [tile for tile in usable if tile.shared_bytes(element_bytes) <= gpu.shared_bytes]
    enough = [tile for tile in fitting if _num_tiles(tile, rows, columns, batch) >= gpu.num_multiprocessors]
    most = max(_num_tiles(tile, rows, columns, batch) for tile in fitting)
    best = (enough or [tile for tile in fitting if _num_tiles(tile, rows, columns, batch) == most])[0]
    return [best, *(tile for tile in fitting if tile != best)]


def flat_tiles(size: Dim) -> list[Tile]:
    """Returns the tiles for `size` elements that are handled one by one."""
    block = power_of_two(typical(size), ELEMENTS_A_BLOCK, 128)
    return [Tile((("BLOCK", size),), _warps(size)) for size in dict.fromkeys((block, max(128, block // 2), block * 2))]


def plane_tiles(num_pixels: Dim, num_channels: Dim) -> list[Tile]:
    """Returns the tiles for images whose channels are handled apart: pixels first, for they are neighbours."""
    pixels = power_of_two(typical(num_pixels), 256, 16)
    channels = power_of_two(typical(num_channels), max(1, 512 // pixels))
    shapes = dict.fromkeys(((pixels, channels), (max(16, pixels // 2), channels), (pixels, max(1, channels // 2))))
    return [Tile((("BLOCK_P", p), ("BLOCK_C", c)), _warps(p * c)) for p, c in shapes]


def pixel_tiles(num_pixels: Dim) -> list[Tile]:
    """Returns the tiles for images whose channels are handled one by one."""
    pixels = power_of_two(typical(num_pixels), 256, 16)
    return [Tile((("BLOCK_P", size),), _warps(size)) for size in dict.fromkeys((pixels, max(16, pixels // 2)))]


def axis_tiles(length: Dim, inner: Dim) -> list[Tile]:
    """Returns the tiles for a reduction of `length` elements that lie `inner` apart."""
    across = power_of_two(typical(inner), 64)
    along = power_of_two(typical(length), max(1, ROW_ELEMENTS // across))
    return [Tile((("BLOCK_L", size), ("BLOCK_I", across)), _warps(size * across)) for size in _halves(along)]


def row_tiles(length: Dim) -> list[Tile]:
    """Returns the tiles for rows of `length` elements, one row a block."""
    return [Tile((("BLOCK_L", size),), _warps(size)) for size in _halves(power_of_two(typical(length), ROW_ELEMENTS))]


def _num_tiles(tile: MatrixTile, rows: int, columns: int, batch: int) -> int:
    return batch * math.ceil(rows / tile.rows) * math.ceil(columns / tile.columns)


def _halves(size: int) -> list[int]:
    return [size, size // 2] if size > 1 else [size]


def _warps(elements: int) -> int:
    """Returns the warps of a block: about eight elements a thread, one to eight warps."""
    return power_of_two(elements // 256, 8)
