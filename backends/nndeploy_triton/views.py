# SPDX-License-Identifier: Apache-2.0
"""Tensors as views: which value, and where its elements lie in it. What steps read and write.

A view names a value of the submodel and says shape, strides and offset in elements of its dtype. Transpose, Expand,
Slice and Reshape are arithmetic on views; nothing is moved. Sizes may depend on the inputs (`sizes/size.py`): two that
are only sometimes equal count as different. Law: every element of a view lies inside its value.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from nndeploy.values.size import Dim, product

Shape: TypeAlias = tuple[Dim, ...]

DTYPE_BYTES = {
    "float16": 2, "float32": 4, "bool": 1, "uint8": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4,
    "int64": 8, "uint64": 8, "float64": 8, "bfloat16": 2,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class View:
    """Elements of the value `name`: element (i, j, ...) is number `offset + i * strides[0] + j * strides[1] + ...`.

    An axis of size 1 has stride 0, so that equal layouts are equal values.
    """

    name: str
    dtype: str
    shape: Shape
    strides: Shape
    offset: Dim = 0

    def __post_init__(self) -> None:
        """Sets the strides that do not count to 0."""
        strides = tuple(0 if size == 1 else stride for size, stride in zip(self.shape, self.strides, strict=True))
        object.__setattr__(self, "strides", strides)

    @property
    def size(self) -> Dim:
        """The number of elements of the view."""
        return product(self.shape)

    @property
    def is_dense(self) -> bool:
        """Whether the elements lie one after the other, in row-major order."""
        return _without_ones(self.shape, self.strides) == _without_ones(self.shape, dense_strides(self.shape))

    def reshaped(self, shape: Shape) -> "View | None":
        """Returns the same elements under another shape, None where the layout does not allow it."""
        if product(shape) != self.size:
            return None
        if self.is_dense:
            return replace(self, shape=shape, strides=dense_strides(shape))
        strides = _strides_after_reshape(self, shape)
        return None if strides is None else replace(self, shape=shape, strides=strides)

    def transposed(self, axes: Sequence[int]) -> "View":
        """Returns the view with its axes in another order."""
        return replace(self, shape=tuple(self.shape[a] for a in axes), strides=tuple(self.strides[a] for a in axes))

    def broadcast_to(self, shape: Shape) -> "View | None":
        """Returns the view stretched to `shape` by numpy's rules, None where they forbid it."""
        missing = len(shape) - len(self.shape)
        if missing < 0:
            return None
        own_shape, own_strides = (1,) * missing + self.shape, (0,) * missing + self.strides
        if any(own not in (1, size) for own, size in zip(own_shape, shape, strict=True)):
            return None
        strides = tuple(0 if own == 1 else stride for own, stride in zip(own_shape, own_strides, strict=True))
        return replace(self, shape=shape, strides=strides)

    def sliced(self, axis: int, start: Dim, step: int, length: Dim) -> "View":
        """Returns `length` elements of an axis, from `start`, `step` apart."""
        shape, strides = list(self.shape), list(self.strides)
        offset = self.offset + start * strides[axis] if length else self.offset
        shape[axis], strides[axis] = length, strides[axis] * step
        return replace(self, shape=tuple(shape), strides=tuple(strides), offset=offset)

    def strides_of_groups(self, groups: Sequence[Sequence[int]]) -> Shape | None:
        """Returns one stride for each group of neighbouring axes, as if a group were one axis.

        None where a group's axes do not lie in one line (neither row-major nor all broadcast).
        """
        found = [_stride_of_group(self, group) for group in groups]
        known = tuple(stride for stride in found if stride is not None)
        return known if len(known) == len(found) else None


def dense(name: str, dtype: str, shape: Sequence[Dim]) -> View:
    """Returns the view of a whole value."""
    return View(name, dtype, tuple(shape), dense_strides(shape))


def dense_strides(shape: Sequence[Dim]) -> Shape:
    """Returns the strides of a row-major array, in elements."""
    return tuple(product(shape[axis + 1 :]) for axis in range(len(shape)))


def collapsed(shape: Shape, views: Sequence[View]) -> tuple[Shape, list[Shape]]:
    """Returns an equal iteration space of fewest axes, and the strides of each view in it.

    Axes of size 1 go; two neighbours become one where every view steps over them in one line. Law: walking the new
    space in row-major order visits the same elements in the same order.
    """
    axes = [axis for axis, size in enumerate(shape) if size != 1]
    sizes: list[Dim] = []
    strides: list[list[Dim]] = [[] for _ in views]
    for axis in axes:
        if sizes and all(own[-1] == view.strides[axis] * shape[axis] for own, view in zip(strides, views, strict=True)):
            sizes[-1] = sizes[-1] * shape[axis]
            for own, view in zip(strides, views, strict=True):
                own[-1] = view.strides[axis]
            continue
        sizes.append(shape[axis])
        for own, view in zip(strides, views, strict=True):
            own.append(view.strides[axis])
    return tuple(sizes), [tuple(own) for own in strides]


def _without_ones(shape: Shape, strides: Shape) -> list[tuple[Dim, Dim]]:
    return [(size, stride) for size, stride in zip(shape, strides, strict=True) if size != 1]


def _stride_of_group(view: View, group: Sequence[int]) -> "Dim | None":
    axes = [axis for axis in group if view.shape[axis] != 1]
    if not axes:
        return 0
    for outer, inner in itertools.pairwise(axes):
        if view.strides[outer] != view.strides[inner] * view.shape[inner]:
            return None
    return view.strides[axes[-1]]


def _strides_after_reshape(view: View, shape: Shape) -> Shape | None:
    """Returns strides for `shape` by splitting and joining the view's axes; None where an axis would need two."""
    sizes, (strides,) = collapsed(view.shape, [view])
    old = list(zip(sizes, strides, strict=True))
    found: list[Dim] = []
    for size in reversed(shape):
        if size == 1:
            found.append(0)
            continue
        while old and old[-1][0] == 1:
            old.pop()
        if not old or old[-1][0] % size != 0:
            return None
        left, stride = old.pop()
        found.append(stride)
        old.append((left // size, stride * size))
    return tuple(reversed(found))
