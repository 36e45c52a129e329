# SPDX-License-Identifier: Apache-2.0
"""Steps that only move elements: between layouts, whole channels, parts of a concatenation, or one by one."""

from dataclasses import dataclass, replace

import numpy as np

from nndeploy.errors import BuildRefusedError
from nndeploy.values.size import Dim, fixed, is_fixed, product
from nndeploy_native.plan import DTYPES
from nndeploy_native.steps.step import Words, Written
from nndeploy_native.tensors import Array, Shape, Tensor, fixed_shape

ZERO = -1
"""A place that stands for a zero rather than for an element."""


@dataclass(frozen=True, slots=True)
class Convert:
    """One value in the other layout."""

    output: Tensor
    x: Tensor

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.x,)

    def written(self) -> Written:
        return Written("to_plain" if self.x.is_blocked else "to_blocked", "layout conversion", self)


@dataclass(frozen=True, slots=True)
class ChannelParts:
    """A blocked tensor whose channels are channels of others: channel j is `channels[j]` = (number of input, channel).

    Concat, Split and Slice along channels and channel shuffles are of this kind.
    """

    output: Tensor
    xs: tuple[Tensor, ...]
    channels: tuple[tuple[int, int], ...]

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return self.xs

    def written(self) -> Written:
        return Written("channel_parts", f"{len(self.channels)} channels moved", self)


MAX_PARTS = 16
"""Inputs of a step that joins: NND_MOST_PARTS of the kernel library."""
MAX_VIEW_AXES = 16
"""Axes of a view: NND_VIEW_AXES of the kernel library."""


@dataclass(frozen=True, slots=True, eq=False)
class Gather:
    """A plain tensor whose element i is element `places[i]` of x, counted in the order of ONNX, or `ZERO`."""

    output: Tensor
    x: Tensor
    places: Array

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.x,)

    def written(self) -> Written:
        flat = self.places.reshape(-1)
        if self.x.is_blocked and flat.size == self.x.size:
            image = np.arange(flat.size).reshape(fixed_shape(self.x.shape))
            if np.array_equal(flat, image.transpose(0, 2, 3, 1).reshape(-1)):
                return Written("channels_last", "channels last", self)
        even = None if self.x.is_blocked else strides_of(self.places.reshape(fixed_shape(self.output.shape)))
        if even is not None:
            return StridedCopy(self.output, View(self.x, *even)).written()
        if flat.max(initial=0) > np.iinfo(np.int32).max:
            raise BuildRefusedError("a table of places beyond 32 bits")
        return Written("gather_places", "elements moved", Words(self, places=flat))


@dataclass(frozen=True, slots=True)
class View:
    """Elements of a plain tensor: element (i, j, ...) is its number offset + i * strides[0] + j * strides[1] + ..."""

    base: Tensor
    offset: Dim
    sizes: Shape
    strides: Shape

    @staticmethod
    def of(tensor: Tensor) -> "View":
        """Returns a whole tensor."""
        return View(tensor, 0, tensor.shape, contiguous(tensor.shape))

    @property
    def is_whole(self) -> bool:
        """Whether it is all elements of the base in their order, in whatever shape."""
        return self.offset == 0 and product(self.sizes) == self.base.size and self.is_in_order

    @property
    def is_in_order(self) -> bool:
        """Whether elements follow each other."""
        expected = zip(self.sizes, self.strides, contiguous(self.sizes), strict=True)
        return all(size == 1 or stride == other for size, stride, other in expected)

    def transposed(self, order: tuple[int, ...]) -> "View":
        """Returns the view with its axes in another order."""
        sizes, strides = (tuple(of[axis] for axis in order) for of in (self.sizes, self.strides))
        return replace(self, sizes=sizes, strides=strides)

    def parted(self, axis: int, outer: Dim, inner: Dim) -> "View":
        """Returns the view with an axis of outer * inner elements as two."""
        sizes, strides = ([*of] for of in (self.sizes, self.strides))
        sizes[axis : axis + 1], strides[axis : axis + 1] = [outer, inner], [strides[axis] * inner, strides[axis]]
        return replace(self, sizes=tuple(sizes), strides=tuple(strides))

    def taken(self, axis: int, first: Dim, count: Dim, step: int) -> "View":
        """Returns `count` elements along an axis from `first` on."""
        sizes, strides = list(self.sizes), list(self.strides)
        offset = self.offset + first * strides[axis]
        sizes[axis], strides[axis] = count, strides[axis] * step
        return View(self.base, offset, tuple(sizes), tuple(strides))

    def without(self, axis: int) -> "View":
        """Returns the view without an axis of one element."""
        sizes, strides = ((*of[:axis], *of[axis + 1 :]) for of in (self.sizes, self.strides))
        return replace(self, sizes=sizes, strides=strides)

    def expanded(self, sizes: Shape) -> "View":
        """Returns the view broadcast to a shape."""
        front = len(sizes) - len(self.sizes)
        pairs = zip((*[1] * front, *self.sizes), (*[0] * front, *self.strides), sizes, strict=True)
        return replace(self, sizes=sizes, strides=tuple(0 if one == 1 != size else by for one, by, size in pairs))

    def reshaped(self, sizes: Shape) -> "View | None":
        """Returns the view in another shape; None where its elements do not follow each other."""
        if self.is_in_order:
            return replace(self, sizes=sizes, strides=contiguous(sizes))
        if [size for size in sizes if size != 1] != [size for size in self.sizes if size != 1]:
            return None
        strides = iter(by for size, by in zip(self.sizes, self.strides, strict=True) if size != 1)
        return replace(self, sizes=sizes, strides=tuple(0 if size == 1 else next(strides) for size in sizes))

    @property
    def has_fixed_places(self) -> bool:
        """Whether each element has the same number in the base in every call."""
        strides = (stride for size, stride in zip(self.sizes, self.strides, strict=True) if size != 1)
        return is_fixed((self.offset, *self.sizes, *strides))

    def places(self) -> Array:
        """Returns the number of each element in the base.

        Raises:
            UndecidedError: a size is not fixed.
        """
        places: Array = np.full((), fixed(self.offset), np.int64)
        for size, stride in zip(self.sizes, self.strides, strict=True):
            places = places[..., None] + np.arange(fixed(size)) * (0 if size == 1 else fixed(stride))
        return places

    def words(self, output: Tensor, **others: object) -> Words:
        """Returns the words of a copy of it; axes of one element are left out."""
        axes = tuple(axis for axis in zip(self.sizes, self.strides, strict=True) if axis[0] != 1)
        return Words(self, x=self.base, output=output, axes=axes, **others)


def contiguous(sizes: Shape) -> Shape:
    """Returns the strides of elements that follow each other."""
    return tuple(product(sizes[axis + 1 :]) for axis in range(len(sizes)))


@dataclass(frozen=True, slots=True)
class StridedCopy:
    """A plain tensor that is a view of another."""

    output: Tensor
    view: View

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.view.base,)

    def written(self) -> Written:
        return Written("view_copy", "strided copy", self.view.words(self.output))


@dataclass(frozen=True, slots=True)
class Move:
    """By which of some numbers a view is moved along an axis of `size` elements that lie `stride` apart.

    Negative numbers count from the end; one that is not from `low` to `high` is the nearer of both.
    """

    number: int
    size: Dim
    stride: Dim
    low: Dim
    high: Dim


@dataclass(frozen=True, slots=True)
class ViewAt:
    """A plain tensor that is a view of another, moved by whole numbers that are data."""

    output: Tensor
    view: View
    numbers: Tensor
    moves: tuple[Move, ...]

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.view.base, self.numbers)

    def written(self) -> Written:
        words = self.view.words(self.output, numbers=self.numbers, moves=self.moves)
        return Written("view_at", "strided copy by numbers", words)


PAD_MODES = ("constant", "edge", "reflect", "wrap")
"""What stands around elements."""


@dataclass(frozen=True, slots=True, eq=False)
class PaddedCopy:
    """A plain tensor that is a view of another with more around it: `begins` elements before each axis.

    `value` is one element, or None for 0: what mode "constant" puts there.
    """

    output: Tensor
    view: View
    begins: Shape
    mode: str = "constant"
    value: Array | Tensor | None = None

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.view.base, self.value) if isinstance(self.value, Tensor) else (self.view.base,)

    def written(self) -> Written:
        view, value = self.view, _padding(self.view.base, self.value)
        axes = tuple(zip(self.output.shape, self.begins, view.sizes, view.strides, strict=True))
        words = Words(self, x=view.base, value=value, offset=view.offset, axes=axes)
        return Written("padded_copy", f"padding, {self.mode}", words, numbered_first=(value,))


@dataclass(frozen=True, slots=True, eq=False)
class PaddedAt:
    """A plain tensor that is a view of another with more around it, as much as whole numbers say that are data.

    `which` tells for each axis which of the numbers counts what comes before it, negative ones what is left out.
    """

    output: Tensor
    view: View
    numbers: Tensor
    which: tuple[int | None, ...]
    mode: str = "constant"
    value: Array | Tensor | None = None

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        read = (self.view.base, self.numbers)
        return (*read, self.value) if isinstance(self.value, Tensor) else read

    def written(self) -> Written:
        view, value = self.view, _padding(self.view.base, self.value)
        which = (-1 if one is None else one for one in self.which)
        axes = tuple(zip(self.output.shape, view.sizes, view.strides, which, strict=True))
        words = Words(self, x=view.base, value=value, offset=view.offset, axes=axes)
        first = (value, view.base, self.output)
        return Written("padded_at", f"padding by numbers, {self.mode}", words, numbered_first=first)


@dataclass(frozen=True, slots=True, eq=False)
class PaddedImage:
    """A blocked image with more around it; `rows` and `columns` are each (before, first, count).

    `count` of them from `first` on are taken, and `before` are put before these.
    """

    output: Tensor
    x: Tensor
    rows: Shape
    columns: Shape
    mode: str = "constant"
    value: Array | Tensor | None = None

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.x, self.value) if isinstance(self.value, Tensor) else (self.x,)

    def written(self) -> Written:
        value = _padding(self.x, self.value)
        label = f"padding in blocks, {self.mode}"
        return Written("padded_image", label, Words(self, value=value), numbered_first=(value,))


@dataclass(frozen=True, slots=True)
class JoinPlain:
    """Plain tensors one after the other along an axis: each (outer, its size) of (outer, total)."""

    output: Tensor
    xs: tuple[Tensor, ...]
    outer: Dim

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return self.xs

    def written(self) -> Written:
        return Written("join", "concatenation", self)


@dataclass(frozen=True, slots=True)
class Append:
    """A plain tensor that begins with `past`, has `new` behind it along an axis, and then room that holds anything.

    With `places`, one for each element of the first axis, `new` begins there, and zeros are behind it, up to `length`.
    """

    output: Tensor
    past: Tensor
    new: Tensor
    axis: int
    places: Tensor | None = None
    length: Dim = 0

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.past, self.new) if self.places is None else (self.past, self.new, self.places)

    def written(self) -> Written:
        if self.places is None:
            return Written("append", "appended to a cache", self)
        return Written("append_at", "put into a cache", self, indices=self.places.name)


def _padding(x: Tensor, value: Array | Tensor | None) -> Array | Tensor:
    """Returns one element of the type of x: the value that it is padded with, 0 where there is none."""
    if isinstance(value, Tensor):
        return value
    dtype = DTYPES[x.element]
    return np.zeros(1, dtype) if value is None else value.reshape(1).astype(dtype)


def strides_of(places: Array) -> tuple[int, tuple[int, ...], tuple[int, ...]] | None:
    """Returns (offset, sizes, strides) if places are even along each of at most `MAX_VIEW_AXES` axes; None otherwise.

    An axis may count as two: of its even runs, and within one.
    """
    if not places.size or places.flat[0] < 0:
        return None
    sizes = [part for axis in range(places.ndim) for part in _even_runs(_line(places, axis))]
    if len(sizes) > MAX_VIEW_AXES:
        return None
    grid = places.reshape(sizes or [1])
    strides = even_strides(grid)
    return None if strides is None else (int(grid[(0,) * grid.ndim]), tuple(sizes), strides[: len(sizes)])


def even_strides(places: Array) -> tuple[int, ...] | None:
    """Returns by how much places grow along each axis, 0 along one of one place; None where they do not grow evenly."""
    origin = (0,) * places.ndim
    strides = tuple(int(_line(places, axis)[:2][-1] - places[origin]) for axis in range(places.ndim))
    made = np.full((), int(places[origin]), np.int64)
    for axis, step in enumerate(strides):
        shape = [1] * places.ndim
        shape[axis] = places.shape[axis]
        made = made + np.arange(places.shape[axis]).reshape(shape) * step
    return strides if np.array_equal(np.broadcast_to(made, places.shape), places) else None


def _line(grid: Array, axis: int) -> Array:
    """Returns the elements along an axis, from the first element of all."""
    line: Array = grid[tuple(slice(None) if one == axis else 0 for one in range(grid.ndim))]
    return line


def _even_runs(line: Array) -> list[int]:
    """Returns [number of runs, length of one] where the first even run divides the line, else [length]; no ones."""
    steps = np.diff(line)
    length = int(np.argmax(steps != steps[0])) + 1 if np.any(steps != steps[:1]) else line.size
    sizes = [line.size // length, length] if line.size % length == 0 else [line.size]
    return [size for size in sizes if size > 1]
