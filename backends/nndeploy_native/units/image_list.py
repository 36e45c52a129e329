# SPDX-License-Identifier: Apache-2.0
"""Units of images by the number that a table's row names them by, and the lengths of their blocks.

Law: c/units/images_plan.h, images_tile.h and images_rows.h have the same numbers; a test compiles them and compares.
"""

from nndeploy_native.isa import Isa

PACK_PLANES = 96
TILES = range(97, 101)
"""`tile-1` to `tile-4`: so many vectors of pixels by up to a tile of output channels."""
DEPTHWISE, POOL_MAX, POOL_MEAN = 101, 102, 103
COLUMNS = 104
BY_ROWS = frozenset((DEPTHWISE, POOL_MAX, POOL_MEAN))
IMAGE_UNITS = {
    PACK_PLANES: "pack-planes",
    **{unit: f"tile-{vectors}" for vectors, unit in enumerate(TILES, 1)},
    DEPTHWISE: "depthwise-rows",
    POOL_MAX: "pool-max-rows",
    POOL_MEAN: "pool-mean-rows",
    COLUMNS: "columns",
}
PLANNED, MOST_KINDS, MOST_WINDOW_ROWS = 48, 3, 40
"""Lengths below `PLANNED` have a table of their own; kinds of blocks in one; rows of a window."""


def block_rows(isa: Isa) -> int:
    """Returns the most output rows of a block of one channel."""
    return 4 if isa.accumulators < 20 else 8


def tile_channels(isa: Isa) -> int:
    """Returns the most output channels of a tile of weights."""
    return isa.accumulators // 2


def column_positions(isa: Isa) -> int:
    """Returns the most positions of a block whose lanes are output channels."""
    return min(tile_channels(isa), isa.lanes)
