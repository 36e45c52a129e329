# SPDX-License-Identifier: Apache-2.0
"""How the axes of values become the dimensions of cuDNN's tensors.

A frame says for each cuDNN dimension which axes of the result lie in it, one inside the other. Whatever broadcasts to
the result fits the same frame: an operand with 1 in all of a dimension's axes has 1 there. What cuDNN's engines take:

    pointwise     [1, rows, columns] or [batch, rows, columns] with the last axis dense, any broadcasting;
                  without broadcasting also [n, c, d, h, w] with c dense
    convolution   [n, c, h, w] or [n, c, d, h, w] in any memory order (cuDNN converts in its workspace where it must)

Law: a tensor in a frame has the same elements at the same addresses as the view it is made from.
Source: tried on cuDNN 9.28; see docs/internals/cudnn.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from nndeploy_cudnn.views import Dims, View, aligned, channels_last_order, filled, memory_order, strides_in_order

MAX_COLUMNS = 1024
MAX_RANK = 5


class MisfitError(Exception):
    """A value does not lie in memory as a frame needs it; a dense copy may."""


@dataclass(frozen=True, slots=True)
class Frame:
    """`axes[i]` are the axes of the result in cuDNN dimension i; `order` the dimensions from slowest to fastest.

    `full` are the dims of the result. `columns` is not 0 where one dense axis is cut into rows of so many columns.
    """

    full: Dims
    axes: tuple[tuple[int, ...], ...]
    order: tuple[int, ...]
    columns: int = 0

    def fit(self, dims: Dims, strides: Dims) -> tuple[Dims, Dims]:
        """Returns cuDNN's dims and strides of an operand that broadcasts to the result.

        Raises:
            MisfitError: axes that share a dimension do not lie one inside the other.
        """
        dims, strides = aligned(dims, strides, len(self.full))
        steps = tuple(self._step(dims, strides, axes) for axes in self.axes)
        if self.columns and math.prod(dims) > 1:
            if steps[-1] != 1:
                raise MisfitError("elements that do not lie one after the other")
            steps = (0, self.columns, 1)
        sizes = self._sizes(dims)
        return sizes, filled(sizes, steps, self.order)

    def is_thin(self, dims: Dims) -> bool:
        """Returns whether an operand of [batch, rows, columns] has one element for a row of every batch.

        cuDNN's pointwise kernels read beyond it from the second batch on (9.19 and 9.28 on an H200); an operand that
        broadcasts along the batch alone, or along rows or columns alone, is right.
        """
        if len(self.axes) != 3 or self.columns:
            return False
        sizes, full = self._sizes(aligned(dims, dims, len(self.full))[0]), self._sizes(self.full)
        return sizes[0] == 1 < full[0] and sizes[1] > 1 and sizes[2] == 1 < full[2]

    def inside(self, dims: Dims) -> tuple[Dims, Dims]:
        """Returns cuDNN's dims and strides of a value that exists only inside a graph."""
        sizes = self._sizes(aligned(dims, dims, len(self.full))[0])
        return sizes, strides_in_order(sizes, self.order)

    def _sizes(self, dims: Dims) -> Dims:
        sizes = tuple(math.prod(dims[axis] for axis in axes) for axes in self.axes)
        if self.columns and sizes[-1] > 1:
            return (1, sizes[-1] // self.columns, self.columns)
        return sizes

    def _step(self, dims: Dims, strides: Dims, axes: tuple[int, ...]) -> int:
        wide = [axis for axis in axes if dims[axis] > 1]
        if not wide:
            return 0
        if any(dims[axis] == 1 < self.full[axis] for axis in axes):
            raise MisfitError("broadcast along a part of a dimension")
        if any(strides[a] != strides[b] * dims[b] for a, b in pairwise(wide)):
            raise MisfitError("axes that do not lie one inside the other")
        return strides[wide[-1]]


def pointwise_frame(y: View, operands: Sequence[tuple[Dims, Dims]]) -> Frame:
    """Returns the frame with the fewest dimensions that y and all operands (dims, strides) fit.

    Raises:
        MisfitError: it would have more dimensions than cuDNN's pointwise engines take.
    """
    everything = [(y.dims, y.strides), *(aligned(dims, strides, len(y.dims)) for dims, strides in operands)]
    runs = _runs(y, everything)
    if any(_last_step(dims, strides, runs) != 1 for dims, strides in everything):
        raise MisfitError("the fastest axis is not dense")
    if len(runs) <= 3:
        axes = ((),) * (3 - len(runs)) + tuple(runs)
        return Frame(y.dims, axes, (0, 1, 2), columns_of(math.prod(y.dims)) if len(runs) == 1 else 0)
    if len(runs) > MAX_RANK:
        raise MisfitError(f"{len(runs)} axes that cannot be seen as fewer")
    return Frame(y.dims, (runs[0], runs[-1], *runs[1:-1]), channels_last_order(len(runs)))


def image_frame(dims: Dims, is_channels_last: bool) -> Frame:
    """Returns the frame (N, C, ...) of a result of three to five axes; with three, H is 1."""
    axes: tuple[tuple[int, ...], ...] = tuple((axis,) for axis in range(len(dims)))
    if len(dims) == 3:
        axes = (axes[0], axes[1], (), axes[2])
    return Frame(dims, axes, channels_last_order(len(axes)) if is_channels_last else tuple(range(len(axes))))


def merged_image_frame(dims: Dims) -> Frame:
    """Returns the frame (N * C, 1, ...): every channel is an image of its own."""
    spatial = tuple((axis,) for axis in range(2, len(dims)))
    axes = ((0, 1), (), *(((),) if len(dims) == 3 else ()), *spatial)
    return Frame(dims, axes, tuple(range(len(axes))))


def rows_frame(dims: Dims) -> Frame:
    """Returns the frame [1, columns, rows, 1] of a matrix whose leading axes are all rows: an image of rows pixels."""
    last = len(dims) - 1
    return Frame(dims, ((), (last,), tuple(range(last)), ()), (0, 2, 3, 1))


def batch_frame(dims: Dims) -> Frame:
    """Returns the frame [batch, rows, columns] of matrices."""
    rank = len(dims)
    return Frame(dims, (tuple(range(rank - 2)), (rank - 2,), (rank - 1,)), (0, 1, 2))


def stacked_frame(dims: Dims) -> Frame:
    """Returns the frame [1, batch * rows, columns, 1] of matrices one below the other."""
    last = len(dims) - 1
    return Frame(dims, ((), tuple(range(last)), (last,), ()), (0, 1, 2, 3))


def copy_runs(source: View, target: View) -> list[tuple[int, int, int]]:
    """Returns (size, source stride, target stride) of the fewest axes that two views of the same dims can have."""
    runs = _runs(target, [(source.dims, source.strides), (target.dims, target.strides)])
    return [
        (math.prod(target.dims[axis] for axis in run), source.strides[run[-1]], target.strides[run[-1]]) for run in runs
    ]


def columns_of(size: int) -> int:
    """Returns into how many columns to cut so many elements: cuDNN's kernels work on tiles of rows and columns."""
    return max((columns for columns in range(1, min(size, MAX_COLUMNS) + 1) if size % columns == 0), default=1)


def _runs(y: View, everything: Sequence[tuple[Dims, Dims]]) -> list[tuple[int, ...]]:
    """Returns the axes of y in memory order, those together that lie one inside the other everywhere."""
    runs: list[tuple[int, ...]] = []
    for axis in memory_order(y.dims, y.strides):
        if y.dims[axis] == 1:
            continue
        if runs and all(_joins(dims, strides, runs[-1][-1], axis) for dims, strides in everything):
            runs[-1] = (*runs[-1], axis)
        else:
            runs.append((axis,))
    return runs


def _joins(dims: Dims, strides: Dims, outer: int, inner: int) -> bool:
    if dims[outer] == 1 or dims[inner] == 1:
        return dims[outer] == dims[inner]
    return strides[outer] == strides[inner] * dims[inner]


def _last_step(dims: Dims, strides: Dims, runs: Sequence[tuple[int, ...]]) -> int:
    if not runs or dims[runs[-1][-1]] == 1:
        return 1
    return strides[runs[-1][-1]]
