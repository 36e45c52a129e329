# SPDX-License-Identifier: Apache-2.0
"""Where a value lies in memory: a buffer, an offset, and a stride for each axis, all in elements.

Reshape, transpose, slice and concat are mostly a matter of strides, so they cost nothing: a view is made from a view.
What strides cannot say is copied by the emitter. Law: element `i` of a view is at `offset + sum(i * strides)`.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

Dims = tuple[int, ...]

ITEM_BYTES = {"float16": 2, "bfloat16": 2, "float32": 4}
"""The element types that the backend computes with."""


@dataclass(frozen=True, slots=True)
class View:
    """`dims` and `strides` of a value of `dtype` that starts `offset` elements into the buffer number `buffer`."""

    buffer: int
    offset: int
    dims: Dims
    strides: Dims
    dtype: str

    @property
    def offset_bytes(self) -> int:
        """Where the value starts, in bytes."""
        return self.offset * ITEM_BYTES[self.dtype]

    @property
    def end_bytes(self) -> int:
        """One past the last byte that belongs to the value."""
        last = sum((size - 1) * stride for size, stride in zip(self.dims, self.strides, strict=True))
        return (self.offset + last + 1) * ITEM_BYTES[self.dtype]

    @property
    def is_row_major(self) -> bool:
        """Whether the elements lie one after the other, the last axis fastest."""
        return same_strides(self.dims, self.strides, row_major(self.dims))


def row_major(dims: Sequence[int]) -> Dims:
    """Returns the strides of a dense array whose last axis is the fastest."""
    return strides_in_order(dims, range(len(dims)))


def channels_last(dims: Sequence[int]) -> Dims:
    """Returns the strides of a dense array (N, C, ...) in which C is the fastest axis."""
    return strides_in_order(dims, channels_last_order(len(dims)))


def channels_last_order(rank: int) -> tuple[int, ...]:
    """Returns the axes (N, ..., C) from the slowest to the fastest."""
    return (0, *range(2, rank), 1)


def strides_in_order(dims: Sequence[int], order: Sequence[int]) -> Dims:
    """Returns the strides of a dense array whose axes lie in `order`, the slowest first."""
    strides, step = [0] * len(dims), 1
    for axis in reversed(order):
        strides[axis] = step
        step *= dims[axis]
    return tuple(strides)


def memory_order(dims: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """Returns the axes from the slowest to the fastest; axes of size 1 keep their place among the others."""
    wide = [axis for axis in range(len(dims)) if dims[axis] > 1]
    by_stride = iter(sorted(wide, key=lambda axis: -strides[axis]))
    return tuple(next(by_stride) if dims[axis] > 1 else axis for axis in range(len(dims)))


def same_strides(dims: Sequence[int], one: Sequence[int], other: Sequence[int]) -> bool:
    """Returns whether two strides of the same dims mean the same; the stride of an axis of size 1 means nothing."""
    return all(size == 1 or a == b for size, a, b in zip(dims, one, other, strict=True))


def filled(dims: Sequence[int], strides: Sequence[int], order: Sequence[int]) -> Dims:
    """Returns the strides with those of axes of size 1 set as if dense in `order`: cuDNN looks at them all."""
    found, step = list(strides), 1
    for axis in reversed(order):
        if dims[axis] == 1:
            found[axis] = step
        step = found[axis] * dims[axis]
    return tuple(found)


def reshaped(view: View, dims: Dims) -> View | None:
    """Returns the same elements under other dims, or None where their order in memory does not allow it."""
    strides = _reshaped_strides(view.dims, view.strides, dims)
    return None if strides is None else replace(view, dims=dims, strides=strides)


def transposed(view: View, permutation: Sequence[int]) -> View:
    """Returns the view whose axis `i` is axis `permutation[i]` of `view`."""
    dims, strides = (tuple(of[axis] for axis in permutation) for of in (view.dims, view.strides))
    return replace(view, dims=dims, strides=strides)


def sliced(view: View, axis: int, start: int, size: int, step: int = 1) -> View:
    """Returns `size` elements of one axis from `start`, every `step`-th."""
    dims, strides = list(view.dims), list(view.strides)
    dims[axis], strides[axis] = size, strides[axis] * step
    offset = view.offset + start * view.strides[axis]
    return replace(view, offset=offset, dims=tuple(dims), strides=tuple(strides))


def aligned(dims: Dims, strides: Dims, rank: int) -> tuple[Dims, Dims]:
    """Returns dims and strides with axes of size 1 put in front until there are `rank`, as broadcasting does."""
    missing = (1,) * (rank - len(dims))
    return (*missing, *dims), (*missing, *strides)


def broadcast_dims(*shapes: Dims) -> Dims:
    """Returns the dims that the shapes broadcast to; they are known to fit."""
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple(max(sizes) for sizes in zip(*padded, strict=True))


def _reshaped_strides(old: Dims, strides: Dims, new: Dims) -> Dims | None:
    found = [1] * len(new)
    wide = [axis for axis in range(len(old)) if old[axis] > 1]
    for old_axes, new_axes in _runs([old[axis] for axis in wide], new):
        axes = [wide[axis] for axis in old_axes]
        if any(strides[a] != strides[b] * old[b] for a, b in pairwise(axes)):
            return None
        step = strides[axes[-1]]
        for axis in reversed(new_axes):
            found[axis] = step
            step *= new[axis]
    return tuple(found)


def _runs(old: Sequence[int], new: Sequence[int]) -> Iterator[tuple[list[int], list[int]]]:
    """Yields the shortest runs of old and new axes that hold equally many elements; new axes of size 1 are left out."""
    wide = iter(axis for axis in range(len(new)) if new[axis] > 1)
    axes = iter(range(len(old)))
    for axis in axes:
        run, other = [axis], [next(wide)]
        while (have := math.prod(old[a] for a in run)) != (want := math.prod(new[a] for a in other)):
            if have < want:
                run.append(next(axes))
            else:
                other.append(next(wide))
        yield run, other
