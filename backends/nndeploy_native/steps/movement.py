# SPDX-License-Identifier: Apache-2.0
"""Steps that only move elements: between layouts, whole channels, parts of a concatenation, or one by one."""

from dataclasses import dataclass, replace

import numpy as np

from nndeploy.errors import BuildRefusedError
from nndeploy.values.size import Dim, fixed, product
from nndeploy_native.shuffles import Lane
from nndeploy_native.steps.elementwise import MAX_RANK
from nndeploy_native.steps.step import Call, Field, Machine, Shuffle
from nndeploy_native.tensors import Array, Shape, Tensor, places_in_memory

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

    def call(self, machine: Machine) -> Call:  # noqa: ARG002
        """Returns what to call."""
        batch, channels, height, width = self.x.shape if self.x.is_blocked else self.output.shape
        kernel = "plain_from_blocked" if self.x.is_blocked else "blocked_from_plain"
        fields = {"images": batch, "channels": channels, "pixels": height * width}
        return Call(kernel, fields, self.output, (self.x,), "layout", notes={"what": "layout conversion"})


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

    def call(self, machine: Machine) -> Call:
        """Returns what to call."""
        lanes = machine.isa.lanes
        batch, channels, height, width = self.output.shape
        taken: list[Lane] = [(k, channel // lanes, channel % lanes) for k, channel in self.channels]
        taken += [None] * (-self.output.channels % lanes)
        fields: dict[str, Field] = {
            "images": batch,
            "blocks": machine.isa.blocks(self.output.channels),
            "pixels": height * width,
            "in_blocks": tuple(machine.isa.blocks(x.channels) for x in self.xs),
            "move": Shuffle(tuple(tuple(taken[i : i + lanes]) for i in range(0, len(taken), lanes))),
        }
        arguments = (*self.xs, *[None] * (MAX_PARTS - len(self.xs)))
        return Call("channel_parts", fields, self.output, arguments, notes={"what": f"{channels} channels moved"})


MAX_PARTS = 8


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

    def call(self, machine: Machine) -> Call:
        """Returns what to call: a copy by strides where the places are even, else by a table."""
        flat = self.places.reshape(-1).astype(np.int64)
        in_memory = np.where(flat < 0, ZERO, places_in_memory(self.x, machine.isa.lanes)[np.maximum(flat, 0)])
        even = strides_of(in_memory.reshape(self.output.shape))
        if even is None:
            table = in_memory.astype(np.int32)
            kernel, notes = self._kernel("gather"), {"what": "elements moved"}
            return Call(kernel, {"size": flat.size}, self.output, (self.x, table), "gather", notes=notes)
        offset, sizes, strides = even
        fields: dict[str, Field] = {"offset": offset, "size": sizes, "step": strides}
        kernel, notes = self._kernel("strided_copy"), {"what": "strided copy"}
        return Call(kernel, fields, self.output, (self.x,), "strided_copy", notes=notes)

    def _kernel(self, name: str) -> str:
        return f"{name}_blocked" if self.x.is_blocked else name


@dataclass(frozen=True, slots=True)
class GatherRows:
    """output (..., width) of the rows of table (rows, width...) that whole numbers pick; NaN where there is no row."""

    output: Tensor
    table: Tensor
    numbers: Tensor

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.table, self.numbers)

    def call(self, machine: Machine) -> Call:  # noqa: ARG002
        """Returns what to call."""
        rows, *rest = self.table.shape
        fields: dict[str, Field] = {
            "count": self.numbers.size,
            "rows": rows,
            "width": product(rest),
            "is_wide": self.numbers.element == "int64",
        }
        return Call("gather_rows", fields, self.output, self.inputs, notes={"what": "rows by number"})


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

    def taken(self, axis: int, first: Dim, count: Dim, step: int) -> "View":
        """Returns `count` elements along an axis from `first` on."""
        sizes, strides = list(self.sizes), list(self.strides)
        offset = self.offset + first * strides[axis]
        sizes[axis], strides[axis] = count, strides[axis] * step
        return View(self.base, offset, tuple(sizes), tuple(strides))

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

    def places(self) -> Array:
        """Returns the number of each element in the base.

        Raises:
            UndecidedError: a size is not fixed.
        """
        places: Array = np.full((), fixed(self.offset), np.int64)
        for size, stride in zip(self.sizes, self.strides, strict=True):
            places = places[..., None] + np.arange(fixed(size)) * fixed(stride)
        return places

    def fields(self) -> dict[str, Field]:
        """Returns offset, sizes and strides of `MAX_RANK` axes, ones in front.

        Raises:
            BuildRefusedError: there are more axes.
        """
        kept = [(size, by) for size, by in zip(self.sizes, self.strides, strict=True) if size != 1]
        if len(kept) > MAX_RANK:
            raise BuildRefusedError(f"more than {MAX_RANK} axes are moved")
        axes = [(1, 0)] * (MAX_RANK - len(kept)) + kept
        return {"offset": self.offset, "size": [size for size, _ in axes], "step": [by for _, by in axes]}


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

    def call(self, machine: Machine) -> Call:  # noqa: ARG002
        """Returns what to call."""
        notes = {"what": "strided copy"}
        return Call("strided_copy", self.view.fields(), self.output, (self.view.base,), "strided_copy", notes=notes)


@dataclass(frozen=True, slots=True)
class PaddedCopy:
    """A plain tensor that is a view of another with zeros around it: `begins` of them before each axis."""

    output: Tensor
    view: View
    begins: tuple[int, ...]

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the step reads."""
        return (self.view.base,)

    def call(self, machine: Machine) -> Call:  # noqa: ARG002
        """Returns what to call."""
        front = MAX_RANK - len(self.begins)
        if front < 0:
            raise BuildRefusedError(f"more than {MAX_RANK} axes are padded")
        fields: dict[str, Field] = {
            "offset": self.view.offset,
            "size": (*[1] * front, *self.output.shape),
            "begin": (*[0] * front, *self.begins),
            "count": (*[1] * front, *self.view.sizes),
            "step": (*[0] * front, *self.view.strides),
        }
        return Call("padded_copy", fields, self.output, (self.view.base,), notes={"what": "padding"})


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

    def call(self, machine: Machine) -> Call:  # noqa: ARG002
        """Returns what to call."""
        inner = tuple(x.size // self.outer for x in self.xs)
        arguments = (*self.xs, *[None] * (MAX_PARTS - len(self.xs)))
        return Call(
            "join_plain", {"outer": self.outer, "inner": inner}, self.output, arguments, notes={"what": "concatenation"}
        )


def strides_of(places: Array) -> tuple[int, tuple[int, ...], tuple[int, ...]] | None:
    """Returns (offset, sizes, strides) if places are even along each of at most `MAX_RANK` axes; None otherwise.

    An axis may count as two: of its even runs, and within one.
    """
    if not places.size or places.flat[0] < 0:
        return None
    sizes = [part for axis in range(places.ndim) for part in _even_runs(_line(places, axis))]
    if len(sizes) > MAX_RANK:
        return None
    grid = places.reshape(sizes or [1])
    origin = (0,) * grid.ndim
    strides = [int(_line(grid, axis)[1] - grid[origin]) for axis in range(len(sizes))]
    made = np.full((), int(grid[origin]), np.int64)
    for axis, step in enumerate(strides):
        shape = [1] * grid.ndim
        shape[axis] = sizes[axis]
        made = made + np.arange(sizes[axis]).reshape(shape) * step
    if not np.array_equal(np.broadcast_to(made, grid.shape), grid):
        return None
    front = MAX_RANK - len(sizes)
    return int(grid[origin]), (*[1] * front, *sizes), (*[0] * front, *strides)


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
